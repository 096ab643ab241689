package records

import (
	"context"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Cached reads records of a table whose answers depend on their row alone, and remembers the encoded answers. It never returns an
// answer that is older than a commit which was acknowledged before the call, see [store.RowCache].
//
// The right to read is decided for each call, and never remembered.
type Cached[T any] struct {
	db      *store.DB
	table   reader[T]
	typ     access.RecordType
	scan    func(Row) (T, error)
	answers *store.RowCache[*endpoint.Encoded]

	columns, idAt, versionAt int // number of columns, and places of two of them
}

// reader is a table, whose further methods packages that see a [Cached] do not compile.
type reader[T any] interface {
	Get(ctx context.Context, q store.Querier, id string, wanted access.Permission) (T, error)
	GetUnchecked(ctx context.Context, q store.Querier, id string) (T, error)
}

// plainColumns are columns of one table: no expressions and no subqueries, which could read other tables or the time.
var plainColumns = regexp.MustCompile(`^\s*\w+(\s*,\s*\w+)*\s*$`)

// Cache returns a reader of a table. It panics for a table whose answers depend on more than their row: on other tables, or on the
// names of users. Scan must not use the time or anything else that changes. Each change of what it returns must change the column
// version, from which the answers have their tag.
func Cache[T any](db *store.DB, t *Table[T]) *Cached[T] {
	if !plainColumns.MatchString(t.From+","+t.Columns) || endpoint.TypeNamesUsers(reflect.TypeFor[T]()) {
		panic("records: answers with " + t.Type.Name + " depend on more than one row")
	}
	columns := strings.FieldsFunc(t.Columns, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
	c := &Cached[T]{db: db, table: t, typ: t.Type, scan: t.Scan, answers: store.NewRowCache[*endpoint.Encoded](db, t.From, "id"),
		columns: len(columns), idAt: slices.Index(columns, "id"), versionAt: slices.Index(columns, "version")}
	if c.idAt < 0 || c.versionAt < 0 {
		panic("records: " + t.Type.Name + " need the columns id and version")
	}
	return c
}

// Get is [Table.Get] with the encoded answer. A caller without a grant on the type gets the decision from the statement that reads
// the record.
func (c *Cached[T]) Get(ctx context.Context, id string, wanted access.Permission) (*endpoint.Encoded, error) {
	if !access.From(ctx).May(c.typ, wanted) {
		record, err := c.table.Get(ctx, c.db, id, wanted)
		if err != nil {
			return nil, err
		}
		return endpoint.Encode(record)
	}
	if known, ok := c.answers.Get(id); ok {
		return known, nil
	}
	began := c.answers.Begin(ctx)
	record, err := c.table.GetUnchecked(ctx, c.db, id)
	if err != nil {
		return nil, err
	}
	return c.keep(began, id, record)
}

// Remembers reports whether the answer with a record is in memory.
func (c *Cached[T]) Remembers(id string) bool {
	_, known := c.answers.Get(id)
	return known
}

// Begin must be called before a statement that finds ids.
func (c *Cached[T]) Begin(ctx context.Context) store.Reading { return c.answers.Begin(ctx) }

// Known returns the answer with a record, if it is in memory.
func (c *Cached[T]) Known(id []byte) (answer jsontext.Value, ok bool) {
	known, ok := c.answers.Lookup(id)
	if !ok {
		return nil, false
	}
	return known.JSON, true
}

// Holds reports whether the answers that Known has returned are those with the records that a statement after Begin has found, see
// [store.RowCache.Holds].
func (c *Cached[T]) Holds(since store.Reading) bool { return c.answers.Holds(since) }

// version returns the answer with a version of a record, if it is known. A page may be of an earlier state than the known answer, or
// of a later one.
func (c *Cached[T]) version(id string, version int64) (jsontext.Value, bool) {
	if known, ok := c.answers.Get(id); ok && known.Tag == endpoint.VersionTag(version) {
		return known.JSON, true
	}
	return nil, false
}

// Scanner returns a function that scans the rows of one page of a list with the columns of the table. Call it before the page is
// read. The answer with a row is encoded unless the same version of it is known.
func (c *Cached[T]) Scanner(ctx context.Context) func(row Row) (answer jsontext.Value, known bool, err error) {
	began := c.answers.Begin(ctx)
	var id string
	var version int64
	dest := slices.Repeat([]any{store.Ignored}, c.columns)
	dest[c.idAt], dest[c.versionAt] = &id, &version
	return func(row Row) (jsontext.Value, bool, error) {
		if err := row.Scan(dest...); err != nil {
			return nil, false, err
		}
		if known, ok := c.version(id, version); ok {
			return known, true, nil
		}
		record, err := c.scan(row)
		if err != nil {
			return nil, false, err
		}
		encoded, err := c.keep(began, id, record)
		if err != nil {
			return nil, false, err
		}
		return encoded.JSON, false, nil
	}
}

// keep encodes a record that was read since, and remembers the answer.
func (c *Cached[T]) keep(since store.Reading, id string, record T) (*endpoint.Encoded, error) {
	encoded, err := endpoint.Encode(record)
	if err == nil {
		c.answers.Put(since, id, encoded, encoded.Size())
	}
	return encoded, err
}

// fillBatch is the number of rows that one transaction of [Fill] reads.
const fillBatch = 200

// Fill computes columns of rows that earlier versions have stored. It may be interrupted and run again. The selection returns rows after
// the id $1, at most $2, in the order of their ids. The function scan returns the id of a row and the further arguments of the update. Without
// any, the row stays as it is.
func Fill(ctx context.Context, db *store.DB, selection, update string, scan func(row Row) (id string, args []any, err error)) error {
	for last, more := "", true; more; {
		after := last // a transaction may run twice
		err := db.InTx(ctx, func(tx *store.Tx) error {
			found, err := store.All(ctx, tx, func(row Row) (args []any, err error) {
				id, further, err := scan(row)
				return append([]any{id}, further...), err
			}, selection, after, fillBatch)
			for _, args := range found {
				last, _ = args[0].(string)
				if err == nil && len(args) > 1 {
					_, err = tx.Exec(ctx, update, args...)
				}
			}
			more = len(found) == fillBatch
			return err
		})
		if err != nil {
			return fmt.Errorf("fill columns of earlier rows: %w", err)
		}
	}
	return nil
}

const orderSuffix = "_order"

// FillSortKeys computes missing sort keys of a table. The column with the suffix _order has types.SortKey of a name. Statements that write
// a name write its key. Rows of earlier versions have none until FillSortKeys has run. Until then they are sorted before all others.
func FillSortKeys(ctx context.Context, db *store.DB, table string, names ...string) error {
	missing, set := make([]string, len(names)), make([]string, len(names))
	for i, name := range names {
		missing[i] = "(" + name + orderSuffix + " = '' AND " + name + " <> '')"
		set[i] = fmt.Sprintf("%s%s = $%d", name, orderSuffix, i+2)
	}
	selection := "SELECT id, " + strings.Join(names, ", ") + " FROM " + table + " WHERE id > $1 AND (" + strings.Join(missing, " OR ") + ") ORDER BY id LIMIT $2"
	update := "UPDATE " + table + " SET " + strings.Join(set, ", ") + " WHERE id = $1"
	return Fill(ctx, db, selection, update, func(row Row) (id string, args []any, err error) {
		values, dest := make([]string, len(names)), []any{&id}
		for i := range values {
			dest = append(dest, &values[i])
		}
		err = row.Scan(dest...)
		for _, value := range values {
			args = append(args, types.SortKey(value))
		}
		return id, args, err
	})
}
