package list

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
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
	return q.count(ctx, db, q.counting(db, noValue, condition))
}

// count returns the number of rows that a statement without groups counts.
func (q *query) count(ctx context.Context, db Store, c *store.Counting) (int64, error) {
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
	var space [512]byte
	text := append(space[:0], sql...)
	for _, arg := range args {
		text = appendArg(text, arg)
	}
	key := sha256.Sum256(text)
	return string(key[:])
}

// appendArg appends an argument with its length, so that different lists of arguments have different keys.
func appendArg(b []byte, arg any) []byte {
	if text, ok := arg.(string); ok {
		return append(appendLength(b, 'v', len(text)), text...)
	}
	if p := reflect.ValueOf(arg); p.Kind() == reflect.Pointer && p.IsNil() {
		arg = nil
	}
	var text []byte
	switch v := arg.(type) {
	case nil:
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
			return appendArg(b, stored)
		}
	default:
		// The key contains the value behind the pointer, because it may change.
		if p := reflect.ValueOf(arg); p.Kind() == reflect.Pointer {
			return appendArg(b, p.Elem().Interface())
		}
		text = fmt.Append(nil, arg)
	}
	kind := byte('v')
	if arg == nil {
		kind = 'n'
	}
	return append(appendLength(b, kind, len(text)), text...)
}

func appendLength(b []byte, kind byte, length int) []byte {
	return append(strconv.AppendInt(append(b, 0, kind), int64(length), 10), ':')
}
