package sqlite

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/store/engine"
	"kontor/store/query"
)

// countPlan holds the statements for one text of a Counting. They name its tables by common table expressions, which hide the
// tables themselves: the same text then counts the touched rows only, as they were or as they are.
type countPlan struct {
	whole  string // counts all rows
	sql    string
	args   int // number of its arguments
	tables []plannedTable

	added, replaced string // see difference
}

// plannedTable is a table whose rows are counted.
type plannedTable struct {
	table, key, name string // name is that in the statement
	columns          []tableColumn
}

// countPlans keeps plans by the text of the statement, and the columns of tables.
type countPlans struct {
	mu      sync.Mutex
	plans   map[string]*countPlan
	columns map[string][]string // by table
}

// maxPlans bounds the kept plans. Beyond it all are forgotten.
const maxPlans = 1000

const selectColumns = `SELECT lower(name) FROM pragma_table_info($1) ORDER BY cid`

// withCommit reads the number of the newest commit beside the rows of a statement, also when there are none.
const (
	selectCommit  = `COALESCE((SELECT value FROM meta WHERE name = '` + engine.MetaCommits + `'), '0')`
	withCommit    = `SELECT m.value, d.value, d.rows FROM (SELECT ` + selectCommit + ` AS value) AS m LEFT JOIN (`
	withCommitEnd = `) AS d ON TRUE`
)

func (p *countPlans) plan(ctx context.Context, e *Engine, c *engine.Counting) (*countPlan, error) {
	p.mu.Lock()
	found := p.plans[c.SQL]
	p.mu.Unlock()
	if found != nil {
		return found, nil
	}
	made := &countPlan{sql: c.SQL, args: len(c.Args), whole: withCommit + c.SQL + withCommitEnd}
	if c.MaxGroups > 0 {
		made.whole = withCommit + c.SQL + " LIMIT " + strconv.Itoa(c.MaxGroups+1) + withCommitEnd
	}
	words := engine.Words(c.SQL)
	for _, keyed := range c.Rows {
		all, err := p.columnsOf(ctx, e, keyed.Table)
		if err != nil {
			return nil, err
		}
		table := plannedTable{table: keyed.Table, key: keyed.Key, name: keyed.Table}
		if keyed.View != "" {
			table.name = keyed.View
		}
		for position, name := range all {
			if name == keyed.Key || slices.Contains(words, name) {
				table.columns = append(table.columns, tableColumn{name, position})
			}
		}
		if !slices.ContainsFunc(table.columns, func(c tableColumn) bool { return c.name == keyed.Key }) {
			return nil, fmt.Errorf("table %s has no column %s", keyed.Table, keyed.Key)
		}
		made.tables = append(made.tables, table)
	}
	made.prepare()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plans == nil || len(p.plans) >= maxPlans {
		p.plans = map[string]*countPlan{}
	}
	p.plans[c.SQL] = made
	return made, nil
}

// columnsOf returns the names of the columns of a table, in its order.
func (p *countPlans) columnsOf(ctx context.Context, e *Engine, table string) ([]string, error) {
	p.mu.Lock()
	found := p.columns[table]
	p.mu.Unlock()
	if found != nil {
		return found, nil
	}
	found, err := query.All(ctx, query.NewView(e, 0), query.Text, selectColumns, table)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.columns == nil {
		p.columns = map[string][]string{}
	}
	p.columns[table] = found
	return found, nil
}

// prepare writes the statements of the difference. Its arguments follow those of the statement: with one table, the numbers of its
// rows and their earlier content; with several, the keys and then, for each table, rows and earlier content. All are JSON.
func (p *countPlan) prepare() {
	now, then := "WITH ", "WITH "
	for i, t := range p.tables {
		if i > 0 {
			now, then = now+", ", then+", "
		}
		touched := t.name + " AS MATERIALIZED (SELECT " + t.list() + " FROM main." + t.name + " WHERE "
		earlier := t.name + "(" + t.list() + ") AS MATERIALIZED (SELECT "
		for j := range t.columns {
			if j > 0 {
				earlier += ", "
			}
			earlier += "value ->> " + strconv.Itoa(j)
		}
		if len(p.tables) == 1 {
			now += touched + t.rowColumn() + " IN (SELECT value FROM json_each(" + p.arg(1) + ")))"
			then += earlier + " FROM json_each(" + p.arg(2) + "))"
			continue
		}
		ofKeys := touched + t.key + " IN (SELECT value FROM json_each(" + p.arg(1) + "))"
		now += ofKeys + ")"
		_, rest, _ := strings.Cut(ofKeys, "(")
		then += earlier + " FROM json_each(" + p.arg(2*i+3) + ") UNION ALL " + rest +
			" AND rowid NOT IN (SELECT value FROM json_each(" + p.arg(2*i+2) + ")))"
	}
	now, then = "SELECT value, rows FROM ("+now+" "+p.sql+")", "SELECT value, -rows FROM ("+then+" "+p.sql+")"
	p.added = withCommit + now + withCommitEnd
	p.replaced = withCommit + now + " UNION ALL " + then + withCommitEnd
}

func (p *countPlan) arg(n int) string { return "$" + strconv.Itoa(p.args+n) }

// list returns the names of the columns.
func (t *plannedTable) list() string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return strings.Join(names, ", ")
}

// rowColumn returns the column with the number of a row. A view has none: its key is that number.
func (t *plannedTable) rowColumn() string {
	if t.name != t.table {
		return t.key
	}
	return "rowid"
}

// difference returns the statement for touched rows. It returns false for content that JSON cannot hold, and for changed rows
// of a view.
func (p *countPlan) difference(args []any, g *gathered) (sql string, all []any, ok bool) {
	all = args[:len(args):len(args)]
	add := func(values []any) bool {
		text, ok := appendJSON(nil, values)
		all = append(all, string(text))
		return ok
	}
	if len(p.tables) > 1 && !add(slices.Collect(maps.Keys(g.keys))) {
		return "", nil, false
	}
	for i, t := range g.tables {
		if !add(t.rows) {
			return "", nil, false
		}
		if len(t.before) == 0 && len(p.tables) == 1 {
			return p.added, all, true
		}
		isView := p.tables[i].name != p.tables[i].table
		if isView && len(t.before) > 0 || !add(t.before) {
			return "", nil, false
		}
	}
	return p.replaced, all, true
}

// appendJSON appends an array. It returns false for bytes and for text that is not UTF-8.
func appendJSON(b []byte, values []any) ([]byte, bool) {
	b = append(b, '[')
	for i, value := range values {
		if i > 0 {
			b = append(b, ',')
		}
		switch v := value.(type) {
		case nil:
			b = append(b, "null"...)
		case int64:
			b = strconv.AppendInt(b, v, 10)
		case string:
			var err error
			if b, err = jsontext.AppendQuote(b, v); err != nil || strings.IndexByte(v, 0) >= 0 {
				return b, false
			}
		case []any:
			var ok bool
			if b, ok = appendJSON(b, v); !ok {
				return b, false
			}
		default: // bytes, or a floating-point number, whose digits are not certain to be the same
			return b, false
		}
	}
	return append(b, ']'), true
}
