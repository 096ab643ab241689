package sqlite

import (
	"context"
	"errors"

	"kontor/store/engine"
	"kontor/store/query"
)

// groupTally counts the rows of few values.
type groupTally struct {
	max     int // values; zero is no bound
	groups  []engine.Group
	texts   map[string]int // places in groups
	numbers map[int64]int
	null    int // place, or -1
	text    []byte
	last    int // place of text, or -1
}

// AddText counts a text. Rows with the same value often follow each other.
func (t *groupTally) AddText(text []byte) bool {
	if t.last >= 0 && string(text) == string(t.text) {
		t.groups[t.last].Rows++
		return true
	}
	place, known := t.texts[string(text)]
	if !known {
		place = t.added(string(text))
		t.texts[string(text)] = place
	}
	t.text, t.last = append(t.text[:0], text...), place
	return t.count(place)
}

// AddNumber counts a number.
func (t *groupTally) AddNumber(value int64) bool {
	place, known := t.numbers[value]
	if !known {
		place = t.added(value)
		t.numbers[value] = place
	}
	return t.count(place)
}

// AddNull counts NULL.
func (t *groupTally) AddNull() bool {
	if t.null < 0 {
		t.null = t.added(nil)
	}
	return t.count(t.null)
}

func (t *groupTally) added(value any) int {
	t.groups = append(t.groups, engine.Group{Value: value})
	return len(t.groups) - 1
}

func (t *groupTally) count(place int) bool {
	t.groups[place].Rows++
	return !t.full()
}

func (t *groupTally) full() bool { return t.max > 0 && len(t.groups) > t.max }

// countEach counts the values of a statement without groups. SQLite would sort the rows to group them, which takes several times as
// long. It returns one group more than c.MaxGroups when there are more. The statement also reads the number of the newest commit, which is
// therefore that of the counted state.
func (e *Engine) countEach(ctx context.Context, c *engine.Counting) (groups []engine.Group, at int64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	r, err := e.pool.Take(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer r.release()
	t := &groupTally{max: c.MaxGroups, texts: map[string]int{}, numbers: map[int64]int{}, null: -1, last: -1}
	if err := r.conn.SetTally(t); err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, r.conn.SetTally(nil)) }()
	var commits string
	err = query.NewRow(ctx, &view{reader: r}, "SELECT kontor_tally(each.value), "+selectCommit+" FROM ("+c.Each+") AS each", c.Args).Scan(query.Ignored, &commits)
	switch {
	case t.full():
		return t.groups, 0, nil
	case err != nil:
		return nil, 0, err
	}
	at, err = commitNumber(commits)
	return t.groups, at, err
}
