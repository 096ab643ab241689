package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kontor/store/engine"
	"kontor/store/query"
)

// sqliteReader reads the database of a data directory.
type sqliteReader struct {
	from interface {
		engine.Source
		Tables(ctx context.Context) ([]string, error)
	}
}

func (s sqliteReader) tables(ctx context.Context) ([]string, error) {
	names, err := s.from.Tables(ctx)
	names = slices.DeleteFunc(names, func(name string) bool { return name == markTable })
	slices.Sort(names)
	return names, err
}

const (
	selectColumns = `SELECT name, type, pk FROM pragma_table_info($1) ORDER BY cid`
	selectParents = `SELECT DISTINCT "table" FROM pragma_foreign_key_list($1)`
)

// describe reads the columns, the primary key and the references of a table.
func (s sqliteReader) describe(ctx context.Context, name string) (*table, error) {
	t := &table{name: name, where: notOfEngines[name]}
	q := query.NewView(s.from, 0)
	rows, err := q.Query(ctx, selectColumns, name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	positions := map[int]int{} // in the key, by column
	for rows.Next() {
		var c column
		var declared string
		var position int
		if err := rows.Scan(&c.name, &declared, &position); err != nil {
			return nil, err
		}
		var known bool
		if c.class, known = classes[strings.ToUpper(declared)]; !known {
			return nil, fmt.Errorf("the column %s.%s has the unknown type %s", name, c.name, declared)
		}
		if position > 0 {
			positions[len(t.columns)] = position
			t.key = append(t.key, len(t.columns))
		}
		t.columns = append(t.columns, c)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(t.key) == 0 {
		return nil, fmt.Errorf("the table %s has no primary key", name)
	}
	slices.SortFunc(t.key, func(a, b int) int { return positions[a] - positions[b] })
	t.parents, err = s.parents(ctx, name)
	return t, err
}

func (s sqliteReader) parents(ctx context.Context, name string) (parents []string, err error) {
	rows, err := query.Query(ctx, s.from, selectParents, []any{name})
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var parent string
		if err := rows.Scan(&parent); err != nil {
			return nil, err
		}
		parents = append(parents, parent)
	}
	return parents, rows.Err()
}

func (s sqliteReader) count(ctx context.Context, t *table) (rows int64, err error) {
	err = query.NewRow(ctx, s.from, t.selectCount(), nil).Scan(&rows)
	return rows, err
}

// each reads the rows with one statement.
func (s sqliteReader) each(ctx context.Context, t *table, after row, fn func(row) error) error {
	return s.read(ctx, t, t.selectRows(after != nil), after, t.allColumns(), fn)
}

// read runs a statement whose arguments are a key and whose result has some columns of the table.
func (s sqliteReader) read(ctx context.Context, t *table, sql string, key row, columns []int, fn func(row) error) error {
	statement, err := s.from.Prepare(ctx, sql)
	if err != nil {
		return err
	}
	defer statement.Close()
	statement.Begin()
	if err := t.bind(statement, key, t.key); err != nil {
		return err
	}
	r := make(row, len(columns))
	for {
		more, err := statement.Step()
		if err != nil || !more {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		for i, c := range columns {
			if r[i], err = readValue(statement, i, t.columns[c].class); err != nil {
				return fmt.Errorf("%s.%s: %w", t.name, t.columns[c].name, err)
			}
		}
		if err := fn(r); err != nil {
			return err
		}
	}
}

// readValue reads a column. SQLite accepts values of every type in every column, and Kontor writes only those of its type.
func readValue(s engine.Statement, i int, c class) (value, error) {
	found := s.Type(i)
	switch {
	case found == engine.Null:
		return value{null: true}, nil
	case c == integers && found == engine.Integer:
		return value{n: s.Int(i)}, nil
	case c == booleans && found == engine.Integer && (s.Int(i) == 0 || s.Int(i) == 1):
		return value{n: s.Int(i)}, nil
	case c == texts && found == engine.Text, c == byteas && found == engine.Bytes:
		return value{b: s.Bytes(i)}, nil
	}
	return value{}, fmt.Errorf("%w: a value has another type than its column", engine.ErrCorrupt)
}

// bind binds the values of some columns as arguments from $1.
func (t *table) bind(s engine.Statement, values row, columns []int) error {
	for i, v := range values {
		n := i + 1
		var err error
		switch c := t.columns[columns[i]].class; {
		case v.null:
			err = s.BindNull(n)
		case c <= booleans:
			err = s.BindInt(n, v.n)
		case c == texts:
			err = s.BindTextBytes(n, v.b)
		default:
			err = s.BindBytes(n, v.b)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// last returns the primary key of the last row.
func (s sqliteReader) last(ctx context.Context, t *table) (last row, err error) {
	err = s.read(ctx, t, t.selectLast(), nil, t.key, func(r row) error {
		last = r.clone()
		return nil
	})
	return last, err
}
