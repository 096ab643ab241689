package transfer

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"

	"kontor/store/engine"
	"kontor/store/query"
)

// class is the kind of the values of a column.
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
	key     []column // the primary key
	parents []string // tables that its rows point to
	where   string   // condition for rows that are copied; empty: all
}

// convert gives a value the type of its column. SQLite accepts values of every type in every column, and Kontor writes only those of
// its type.
func (c column) convert(v any) (any, error) {
	converted, ok := v, false
	switch v := v.(type) {
	case nil:
		ok = true
	case int64:
		if ok = c.class == integers; c.class == booleans && (v == 0 || v == 1) {
			converted, ok = v == 1, true
		}
	case bool:
		ok = c.class == booleans
	case string:
		ok = c.class == texts
	case []byte:
		ok = c.class == byteas
	}
	if !ok {
		return nil, fmt.Errorf("the column %s: %w: a value has another type than its column", c.name, engine.ErrCorrupt)
	}
	return converted, nil
}

// storable returns ErrNotStorable for a text that PostgreSQL rejects.
func (t *table) storable(row []any) error {
	for i, v := range row {
		if text, ok := v.(string); ok && (!utf8.ValidString(text) || strings.Contains(text, "\x00")) {
			return fmt.Errorf("the column %s of the row %q has a NUL byte or is not UTF-8: %w", t.columns[i].name, t.keyOf(row), ErrNotStorable)
		}
	}
	return nil
}

// keyOf returns the primary key of a row.
func (t *table) keyOf(row []any) []any {
	key := make([]any, len(t.key))
	for i, c := range t.key {
		key[i] = row[slices.Index(t.columns, c)]
	}
	return key
}

// names returns names of columns for a statement, each with an end.
func names(columns []column, end string) string {
	list := make([]string, len(columns))
	for i, c := range columns {
		list[i] = quoted(c.name) + end
	}
	return strings.Join(list, ", ")
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// from returns the end of a statement that selects the rows that are copied, after a key whose columns are its arguments.
func (t *table) from(after []any) string {
	conditions := []string{"TRUE"}
	if t.where != "" {
		conditions = append(conditions, t.where)
	}
	if after != nil {
		conditions = append(conditions, "("+names(t.key, "")+") > ("+query.Places(1, len(after))+")")
	}
	return " FROM " + quoted(t.name) + " WHERE " + strings.Join(conditions, " AND ")
}

func (t *table) count(ctx context.Context, s side) (int64, error) {
	rows, _, err := one[int64](ctx, s, "SELECT COUNT(*)"+t.from(nil))
	return rows, err
}

// last returns the primary key of the last row, nil for an empty table.
func (t *table) last(ctx context.Context, s side) (last []any, err error) {
	for row, err := range t.read(ctx, s, t.key, t.from(nil)+" ORDER BY "+names(t.key, " DESC")+" LIMIT 1") {
		if err != nil {
			return nil, err
		}
		last = row
	}
	return last, nil
}

// rows returns the rows after a primary key in its order; nil: all rows.
func (t *table) rows(ctx context.Context, s side, after []any) iter.Seq2[[]any, error] {
	return t.read(ctx, s, t.columns, t.from(after)+" ORDER BY "+names(t.key, ""), after...)
}

// read returns columns of rows in the types of the columns.
func (t *table) read(ctx context.Context, s side, columns []column, from string, args ...any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for row, err := range s.rows(ctx, "SELECT "+names(columns, "")+from, args...) {
			for i := 0; err == nil && i < len(row); i++ {
				row[i], err = columns[i].convert(row[i])
			}
			if err != nil {
				err = fmt.Errorf("read %s: %w", t.name, err)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// The bounds of a batch: it is one transaction, and is in memory.
const (
	batchRows  = 5000
	batchBytes = 4 << 20
)

// batches returns the rows after a primary key in batches.
func (t *table) batches(ctx context.Context, s side, after []any) iter.Seq2[[][]any, error] {
	return func(yield func([][]any, error) bool) {
		var batch [][]any
		size := 0
		for row, err := range t.rows(ctx, s, after) {
			if err != nil {
				yield(nil, err)
				return
			}
			batch = append(batch, row)
			for _, v := range row {
				switch v := v.(type) {
				case string:
					size += len(v)
				case []byte:
					size += len(v)
				}
			}
			if len(batch) < batchRows && size < batchBytes {
				continue
			}
			if !yield(batch, nil) {
				return
			}
			batch, size = nil, 0
		}
		if batch != nil {
			yield(batch, nil)
		}
	}
}

const (
	selectColumns = `SELECT name, type, pk FROM pragma_table_info($1) ORDER BY cid`
	selectParents = `SELECT DISTINCT "table" FROM pragma_foreign_key_list($1)`
)

// describe reads the columns, the primary key and the references of a table.
func (s sqliteSide) describe(ctx context.Context, name string) (*table, error) {
	t := &table{name: name, where: notOfEngines[name]}
	positions := map[column]int64{} // in the key
	v := query.NewView(s.from, 0)
	err := query.Each(ctx, v, func(row query.Scanner) error {
		var c column
		var declared string
		var position int64
		if err := row.Scan(&c.name, &declared, &position); err != nil {
			return err
		}
		var known bool
		if c.class, known = classes[strings.ToUpper(declared)]; !known {
			return fmt.Errorf("the column %s.%s has the unknown type %s", name, c.name, declared)
		}
		if positions[c] = position; position > 0 {
			t.key = append(t.key, c)
		}
		t.columns = append(t.columns, c)
		return nil
	}, selectColumns, name)
	if err != nil {
		return nil, err
	}
	if len(t.key) == 0 {
		return nil, fmt.Errorf("the table %s has no primary key", name)
	}
	slices.SortFunc(t.key, func(a, b column) int { return int(positions[a] - positions[b]) })
	t.parents, err = query.All(ctx, v, query.Text, selectParents, name)
	return t, err
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

// describe reads the description of all tables from the side with the data directory, and compares the lists of both sides.
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
	type describer interface {
		describe(ctx context.Context, name string) (*table, error)
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
