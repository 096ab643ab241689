package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// class is how values of a column are stored and compared.
type class int

const (
	integers class = iota
	booleans       // 0 and 1 on SQLite
	texts
	byteas
)

// classes are the classes of the types in migrations.
var classes = map[string]class{"INTEGER": integers, "BIGINT": integers, "BOOLEAN": booleans, "TEXT": texts, "BYTEA": byteas}

// column is a column of a table.
type column struct {
	name  string
	class class
}

// table describes a table, which is the same on both sides.
type table struct {
	name    string
	columns []column
	key     []int    // indexes of the columns of the primary key, in its order
	parents []string // tables that its rows point to
	where   string   // condition for rows that are copied; empty: all
}

// value is the value of a column in a row.
type value struct {
	null bool
	n    int64  // of integers and booleans
	b    []byte // of texts and byteas
}

// row has a value for each column; a primary key has one for each column of the key.
type row []value

// keyOf returns the primary key of a row. It shares the memory of the row.
func (t *table) keyOf(r row) row {
	key := make(row, len(t.key))
	for i, c := range t.key {
		key[i] = r[c]
	}
	return key
}

// keyText renders a primary key for messages.
func (t *table) keyText(key row) string {
	texts := make([]string, len(key))
	for i, v := range key {
		if texts[i] = fmt.Sprintf("%q", v.b); t.columns[t.key[i]].class <= booleans {
			texts[i] = fmt.Sprint(v.n)
		}
	}
	return strings.Join(texts, ", ")
}

// clone returns a row with memory of its own.
func (r row) clone() row {
	cloned := slices.Clone(r)
	for i := range cloned {
		cloned[i].b = slices.Clone(cloned[i].b)
	}
	return cloned
}

// names returns the names of columns for a statement.
func (t *table) names(indexes []int) string {
	names := make([]string, 0, len(t.columns))
	for _, i := range indexes {
		names = append(names, quoted(t.columns[i].name))
	}
	return strings.Join(names, ", ")
}

func (t *table) allColumns() []int {
	all := make([]int, len(t.columns))
	for i := range all {
		all[i] = i
	}
	return all
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// selectRows returns the statement that reads all rows, or those after a key whose columns are its arguments.
func (t *table) selectRows(after bool) string {
	return "SELECT " + t.names(t.allColumns()) + " FROM " + quoted(t.name) + t.condition(after) + " ORDER BY " + t.names(t.key)
}

func (t *table) condition(after bool) string {
	var conditions []string
	if t.where != "" {
		conditions = append(conditions, t.where)
	}
	if after {
		conditions = append(conditions, "("+t.names(t.key)+") > ("+parameters(len(t.key))+")")
	}
	if len(conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conditions, " AND ")
}

func (t *table) selectCount() string {
	return "SELECT COUNT(*) FROM " + quoted(t.name) + t.condition(false)
}

func (t *table) selectLast() string {
	var order []string
	for _, i := range t.key {
		order = append(order, quoted(t.columns[i].name)+" DESC")
	}
	return "SELECT " + t.names(t.key) + " FROM " + quoted(t.name) + t.condition(false) + " ORDER BY " + strings.Join(order, ", ") + " LIMIT 1"
}

func parameters(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("$%d", i+1))
	}
	return strings.Join(list, ", ")
}

// ordered returns tables so that each follows those that its rows point to.
func ordered(tables []*table) ([]*table, error) {
	placed := map[string]bool{}
	var order []*table
	for len(order) < len(tables) {
		before := len(order)
		for _, t := range tables {
			waits := func(parent string) bool { return parent != t.name && !placed[parent] }
			if !placed[t.name] && !slices.ContainsFunc(t.parents, waits) {
				placed[t.name] = true
				order = append(order, t)
			}
		}
		if len(order) == before {
			return nil, fmt.Errorf("the references between tables have a cycle")
		}
	}
	return order, nil
}

// describe reads the description of all tables, and compares the lists of both sides.
func (c *copier) describe(ctx context.Context) error {
	names, err := c.from.tables(ctx)
	if err != nil {
		return err
	}
	others, err := c.to.tables(ctx)
	if err != nil {
		return err
	}
	if !slices.Equal(names, others) {
		return fmt.Errorf("the tables of source and target differ (%s and %s): %w", strings.Join(names, ","), strings.Join(others, ","), ErrOtherSchema)
	}
	d, ok := c.from.(describer)
	if !ok {
		d = c.to.(describer)
	}
	for _, name := range names {
		t, err := d.describe(ctx, name)
		if err != nil {
			return err
		}
		c.tables = append(c.tables, t)
	}
	c.tables, err = ordered(c.tables)
	return err
}
