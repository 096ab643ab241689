package sqlite

import (
	"context"
	"errors"

	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
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
func (t *groupTally) AddText(text []byte, rows int64) bool {
	if t.last >= 0 && string(text) == string(t.text) {
		t.groups[t.last].Rows += rows
		return true
	}
	place, known := t.texts[string(text)]
	if !known {
		place = t.added(string(text))
		t.texts[string(text)] = place
	}
	t.text, t.last = append(t.text[:0], text...), place
	return t.count(place, rows)
}

// AddNumber counts a number.
func (t *groupTally) AddNumber(value, rows int64) bool {
	place, known := t.numbers[value]
	if !known {
		place = t.added(value)
		t.numbers[value] = place
	}
	return t.count(place, rows)
}

// AddNull counts NULL.
func (t *groupTally) AddNull(rows int64) bool {
	if t.null < 0 {
		t.null = t.added(nil)
	}
	return t.count(t.null, rows)
}

func (t *groupTally) added(value any) int {
	t.groups = append(t.groups, engine.Group{Value: value})
	return len(t.groups) - 1
}

func (t *groupTally) count(place int, rows int64) bool {
	t.groups[place].Rows += rows
	return !t.full()
}

func (t *groupTally) full() bool { return t.max > 0 && len(t.groups) > t.max }

// countEach counts the values of a statement without groups. SQLite would sort the rows to group them, which takes several times as
// long. It returns one group more than c.MaxGroups when there are more.
func (e *Engine) countEach(ctx context.Context, c *engine.Counting) (groups []engine.Group, at int64, err error) {
	t := &groupTally{max: c.MaxGroups, texts: map[string]int{}, numbers: map[int64]int{}, null: -1, last: -1}
	at, err = e.tally(ctx, t, "SELECT kontor_tally(each.value, 1), "+selectCommit+" FROM ("+c.Each+") AS each", c.Args)
	if t.full() {
		return t.groups, at, nil
	}
	return t.groups, at, err
}

// CountValues counts the rows of each value.
func (e *Engine) CountValues(ctx context.Context, c *engine.Counting, max int) (values *engine.ValueCounts, at int64, err error) {
	if _, err := e.follow(ctx, c); err != nil {
		return nil, 0, err
	}
	values = engine.NewValueCounts(max)
	sql := "SELECT kontor_tally(each.value, 1), " + selectCommit + " FROM (" + c.Each + ") AS each"
	if c.Each == "" {
		sql = "SELECT kontor_tally(each.value, each.rows), " + selectCommit + " FROM (" + c.SQL + ") AS each"
	}
	at, err = e.tally(ctx, values, sql, c.Args)
	if values.Full() {
		return values, at, nil
	}
	return values, at, err
}

// tally runs a statement with kontor_tally and the number of the newest commit, which is therefore that of the counted state.
func (e *Engine) tally(ctx context.Context, t binding.Tally, sql string, args []any) (at int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	r, err := e.pool.Take(ctx)
	if err != nil {
		return 0, err
	}
	defer r.release()
	if err := r.conn.SetTally(t); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.conn.SetTally(nil)) }()
	var commits string
	if err := query.NewRow(ctx, &view{reader: r}, sql, args).Scan(query.Ignored, &commits); err != nil {
		return 0, err
	}
	return commitNumber(commits)
}
