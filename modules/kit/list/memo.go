package list

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
	"hash"
	"reflect"
	"strconv"
	"strings"

	"kontor/store"
)

// counter counts and remembers, as *store.DB does.
type counter interface {
	Count(ctx context.Context, key string, c *store.Counting) ([]store.Group, error)
	Memo(ctx context.Context, key string, tables []string, load func() (int64, error)) (int64, error)
	CountValues(ctx context.Context, key string, c *store.Counting) (int64, error)
	CountDifferent(ctx context.Context, sql string, args []any) (int64, error)
}

// noValue is the expression of a count without groups.
const noValue = "NULL"

// countRows returns the number of rows that meet a condition.
func (q *query) countRows(ctx context.Context, db Store, condition *builder) (int64, error) {
	c := q.counting(db, noValue, condition)
	groups, err := db.Count(ctx, memoKey(c.SQL, c.Args), c)
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", q.name, err)
	}
	if len(groups) == 0 {
		return 0, nil
	}
	return groups[0].Rows, nil
}

// countGroups returns the number of matching rows for each value of an expression.
func (q *query) countGroups(ctx context.Context, db Store, expression string) ([]store.Group, error) {
	c := q.counting(db, expression, q.matching)
	c.Each = strings.Replace(c.SQL, countedRows, "", 1)
	c.SQL += " GROUP BY 1"
	groups, err := db.Count(ctx, memoKey(c.SQL, c.Args), c)
	if err != nil {
		return nil, fmt.Errorf("count the groups of %s: %w", q.name, err)
	}
	return groups, nil
}

// memoKey returns the cache key of a statement with its arguments. The digest keeps searched values out of the cache, and keys
// short.
func memoKey(sql string, args []any) string {
	h := sha256.New()
	h.Write([]byte(sql))
	for _, arg := range args {
		writeArg(h, arg)
	}
	return string(h.Sum(nil))
}

// writeArg adds an argument with its length, so that different lists of arguments have different keys.
func writeArg(h hash.Hash, arg any) {
	if p := reflect.ValueOf(arg); p.Kind() == reflect.Pointer && p.IsNil() {
		arg = nil
	}
	var text []byte
	switch v := arg.(type) {
	case nil:
	case string:
		text = []byte(v)
	case []byte:
		text = v
	case int64:
		text = strconv.AppendInt(nil, v, 10)
	case store.Time:
		text = strconv.AppendInt(nil, int64(v), 10)
	case bool:
		text = strconv.AppendBool(nil, v)
	case driver.Valuer:
		// The key contains the value that the database receives. Its error is reported when it is bound.
		if stored, err := v.Value(); err == nil {
			writeArg(h, stored)
			return
		}
	default:
		// The key contains the value behind the pointer, because it may change.
		if p := reflect.ValueOf(arg); p.Kind() == reflect.Pointer {
			writeArg(h, p.Elem().Interface())
			return
		}
		text = fmt.Append(nil, arg)
	}
	kind := byte('v')
	if arg == nil {
		kind = 'n'
	}
	h.Write(append(strconv.AppendInt([]byte{0, kind}, int64(len(text)), 10), ':'))
	h.Write(text)
}
