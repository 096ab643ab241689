package list

import (
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"fmt"
	"hash"
	"reflect"
	"strconv"

	"kontor/store"
)

// counter caches a number until one of the tables changes, as *store.DB does.
type counter interface {
	Memo(ctx context.Context, key string, tables []string, load func() (int64, error)) (int64, error)
}

// count returns the result of a counting statement, from the cache if possible.
func (q *query) count(ctx context.Context, db Store, b *builder) (int64, error) {
	sql := b.sql()
	return db.Memo(ctx, memoKey(sql, b.args), q.tables, func() (int64, error) {
		var n int64
		if err := db.QueryRow(ctx, sql, b.args...).Scan(&n); err != nil {
			return 0, fmt.Errorf("count %s: %w", q.name, err)
		}
		return n, nil
	})
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
