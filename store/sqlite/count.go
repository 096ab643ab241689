package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kontor/store/engine"
	"kontor/store/query"
)

// maxLooked bounds the rows that Difference looks at. Beyond it, counting all rows is not much dearer.
const maxLooked = 4096

// Count runs the statement. Statement and commit number come from one state of the database, because they are read by one statement.
func (e *Engine) Count(ctx context.Context, c *engine.Counting) (groups []engine.Group, at int64, err error) {
	p, err := e.follow(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	switch {
	case c.Whole != "":
		return e.readGroups(ctx, withCommit+c.Whole+withCommitEnd, c.WholeArgs)
	case c.Each != "":
		return e.countEach(ctx, c)
	}
	return e.readGroups(ctx, p.whole, c.Args)
}

// follow returns the plan of a count, and notes from the next transaction on what commits touch of its tables.
func (e *Engine) follow(ctx context.Context, c *engine.Counting) (*countPlan, error) {
	p, err := e.plans.plan(ctx, e, c)
	if err != nil {
		return nil, err
	}
	for _, t := range p.tables {
		e.touches.follow(t.table, t.columns)
	}
	return p, nil
}

// Committed returns the number of the newest commit.
func (e *Engine) Committed() int64 { return e.touches.committed.Load() }

// Unchanged reports that no acknowledged commit after at has touched the counted tables.
func (e *Engine) Unchanged(c *engine.Counting, at int64) bool {
	if len(c.Rows) == 0 || at >= e.touches.committed.Load() {
		return true
	}
	followed := e.touches.tables()
	for _, t := range c.Rows {
		if table := followed[t.Table]; table == nil || table.last.Load() > at {
			return false
		}
	}
	return true
}

// Difference counts the touched rows as they were at the commit, from what the writer has noted, and as they are now.
func (e *Engine) Difference(ctx context.Context, c *engine.Counting, at int64) ([]engine.Group, int64, bool, error) {
	p, err := e.plans.plan(ctx, e, c)
	if err != nil {
		return nil, 0, false, err
	}
	var only []engine.Alternatives
	if c.Only != nil {
		if only, err = c.Only(ctx); err != nil {
			return nil, 0, false, err
		}
	}
	for until := e.touches.committed.Load(); ; {
		found, ok := e.touches.gather(p, only, at, until)
		if !ok {
			return nil, 0, false, nil
		}
		if found.empty() {
			return nil, until, true, nil
		}
		sql, args, ok := p.difference(c.Args, found)
		if !ok {
			return nil, 0, false, nil
		}
		groups, now, err := e.readGroups(ctx, sql, args)
		if err != nil {
			return nil, 0, false, err
		}
		// The state may be newer than the touches that were gathered. It is right unless the commits between touched the tables.
		if now <= until || !e.touches.touchedBetween(p, until, now) {
			return groups, now, true, nil
		}
		until = now
	}
}

// readGroups runs a statement of a plan: its columns are the commit, a value and a number of rows.
func (e *Engine) readGroups(ctx context.Context, sql string, args []any) (groups []engine.Group, at int64, err error) {
	err = query.Each(ctx, query.NewView(e, 0), func(row query.Scanner) error {
		var commits string
		var g engine.Group
		var n *int64
		if err := row.Scan(&commits, &g.Value, &n); err != nil {
			return err
		}
		if n != nil {
			g.Rows = *n
			groups = append(groups, g)
		}
		at, err = commitNumber(commits)
		return err
	}, sql, args...)
	if err != nil {
		return nil, 0, err
	}
	return groups, at, nil
}

// commitNumber returns the number in the signed text of the newest commit.
func commitNumber(signed string) (int64, error) {
	number, _, _ := strings.Cut(signed, " ")
	at, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: the number of the newest commit is missing", engine.ErrCorrupt)
	}
	return at, nil
}

// gathered are the touched rows of an interval of commits.
type gathered struct {
	tables []gatheredTable // as in the plan
	keys   map[any]bool    // of all touched rows, when there is more than one table
}

type gatheredTable struct {
	rows   []any // their numbers
	before []any // the planned columns of those that existed, a []any each
}

func (g *gathered) empty() bool {
	for _, t := range g.tables {
		if len(t.rows) > 0 {
			return false
		}
	}
	return true
}

// gather collects the rows that commits after the first number and up to the second have touched, as they were before.
func (t *touches) gather(p *countPlan, given []engine.Alternatives, after, until int64) (*gathered, bool) {
	g := &gathered{tables: make([]gatheredTable, len(p.tables)), keys: map[any]bool{}}
	looked := 0
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, planned := range p.tables {
		table := t.table(planned)
		if table == nil {
			return nil, false
		}
		touched, ok := table.between(after, until)
		if !ok {
			return nil, false
		}
		found := &g.tables[i]
		places := make([]int, len(planned.columns))
		for k, column := range planned.columns {
			places[k] = table.place(column.name)
		}
		var only []condition
		if i == 0 {
			if only, ok = conditions(table, planned, given); !ok {
				return nil, false
			}
		}
		key := table.place(planned.key)
		seen := map[int64]bool{}
		for j := range touched {
			row := &touched[j]
			if !row.meets(only) {
				continue
			}
			for _, values := range [][]any{row.before, row.after} {
				if values != nil {
					g.keys[values[key]] = true
				}
			}
			if seen[row.row] {
				continue
			}
			if looked++; looked > maxLooked {
				return nil, false
			}
			seen[row.row] = true
			found.rows = append(found.rows, row.row)
			if row.before != nil {
				values := make([]any, len(places))
				for k, place := range places {
					values[k] = row.before[place]
				}
				found.before = append(found.before, values)
			}
		}
	}
	return g, true
}

// table returns the followed table of a plan. The caller holds the lock.
func (t *touches) table(planned plannedTable) *touchedTable {
	if table := t.tables()[planned.table]; table != nil && table.has(planned.columns) {
		return table
	}
	return nil
}

func (t *touches) touchedBetween(p *countPlan, after, until int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, planned := range p.tables {
		table := t.table(planned)
		if table == nil {
			return true
		}
		if touched, ok := table.between(after, until); !ok || len(touched) > 0 {
			return true
		}
	}
	return false
}

// condition is a condition on followed columns: one of the values, or one of the keys.
type condition struct {
	places []int
	values []any
	key    int
	keys   map[string]bool
}

func conditions(table *touchedTable, planned plannedTable, given []engine.Alternatives) ([]condition, bool) {
	var all []condition
	for _, a := range given {
		c := condition{key: table.place(planned.key), keys: a.Keys}
		for _, equal := range a.Equal {
			place := table.place(equal.Column)
			if place < 0 {
				return nil, false
			}
			value := equal.Value
			if yes, isBool := value.(bool); isBool {
				value = int64(0)
				if yes {
					value = int64(1)
				}
			}
			c.places, c.values = append(c.places, place), append(c.values, value)
		}
		all = append(all, c)
	}
	return all, true
}

// meets reports whether the row met all conditions before or after the change.
func (t *touch) meets(only []condition) bool {
	return meets(t.before, only) || meets(t.after, only)
}

func meets(values []any, only []condition) bool {
	if values == nil {
		return false
	}
	for i := range only {
		if !only[i].holds(values) {
			return false
		}
	}
	return true
}

func (c *condition) holds(values []any) bool {
	for i, place := range c.places {
		if values[place] == c.values[i] {
			return true
		}
	}
	if len(c.keys) > 0 {
		key, _ := values[c.key].(string)
		return c.keys[key]
	}
	return false
}

// groupTally counts the rows of few values.
type groupTally struct {
	max    int               // values; zero is no bound
	texts  map[string]*int64 // a lookup by bytes copies nothing
	others map[any]int64     // numbers and NULL
}

// AddText counts a text.
func (t *groupTally) AddText(text []byte) bool {
	rows := t.texts[string(text)]
	if rows == nil {
		rows = new(int64)
		t.texts[string(text)] = rows
	}
	*rows++
	return !t.full()
}

// Add counts another value.
func (t *groupTally) Add(value any) bool {
	t.others[value]++
	return !t.full()
}

func (t *groupTally) full() bool { return t.max > 0 && len(t.texts)+len(t.others) > t.max }

func (t *groupTally) groups() []engine.Group {
	groups := make([]engine.Group, 0, len(t.texts)+len(t.others))
	for text, rows := range t.texts {
		groups = append(groups, engine.Group{Value: text, Rows: *rows})
	}
	for value, rows := range t.others {
		groups = append(groups, engine.Group{Value: value, Rows: rows})
	}
	return groups
}

// countEach counts the values of a statement without groups. SQLite would sort the rows to group them, which takes several times as
// long. It returns one group more than c.MaxGroups when there are more. The statement also reads the number of the newest commit, which is
// therefore that of the counted state.
func (e *Engine) countEach(ctx context.Context, c *engine.Counting) (groups []engine.Group, at int64, err error) {
	r, err := e.pool.Take(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer r.release()
	t := &groupTally{max: c.MaxGroups, texts: map[string]*int64{}, others: map[any]int64{}}
	if err := r.conn.SetTally(t); err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, r.conn.SetTally(nil)) }()
	var commits string
	err = query.NewRow(ctx, &view{reader: r}, "SELECT kontor_tally(each.value), "+selectCommit+" FROM ("+c.Each+") AS each", c.Args).Scan(query.Ignored, &commits)
	switch {
	case t.full():
		return t.groups(), 0, nil
	case err != nil:
		return nil, 0, err
	}
	at, err = commitNumber(commits)
	return t.groups(), at, err
}
