package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/google/uuid"

	"kontor/store/query"
)

// Scanner is a row whose columns a function reads.
type Scanner = query.Scanner

// Each calls read for each row of a statement, until it returns an error.
func Each(ctx context.Context, q Querier, read func(row Scanner) error, statement string, args ...any) error {
	return query.Each(ctx, q, read, statement, args...)
}

// idsAtOnce is how many ids one statement of EachOf takes.
const idsAtOnce = 64

// EachOf is Each for a statement that contains %s for a list of ids. There may be any number of ids: it runs the statement for some
// at a time.
func EachOf(ctx context.Context, q Querier, read func(row Scanner) error, statement string, ids []string) error {
	for part := range slices.Chunk(ids, idsAtOnce) {
		if err := Each(ctx, q, read, fmt.Sprintf(statement, In(1, len(part))), AppendIn(nil, part)...); err != nil {
			return err
		}
	}
	return nil
}

// All returns what scan returns for each row of a statement. The number of rows must be bounded.
func All[T any](ctx context.Context, q Querier, scan func(row Scanner) (T, error), statement string, args ...any) ([]T, error) {
	return query.All(ctx, q, scan, statement, args...)
}

// Text reads the one text column of a row, for [All].
func Text(row Scanner) (text string, err error) { return query.Text(row) }

// Exists reports whether a statement returns a row.
func Exists(ctx context.Context, q Querier, statement string, args ...any) (bool, error) {
	err := q.QueryRow(ctx, statement, args...).Scan(Ignored)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Optional returns nil for ErrNotFound, and every other error as it is: for a row that may be missing.
func Optional(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// Pairs returns the second column of a statement by the first. The statement contains %s for the list of the keys; there may be any
// number of them.
func Pairs(ctx context.Context, q Querier, statement string, keys []string) (map[string]string, error) {
	found := make(map[string]string, len(keys))
	err := EachOf(ctx, q, func(row Scanner) error {
		var key, value string
		err := row.Scan(&key, &value)
		found[key] = value
		return err
	}, statement, keys)
	return found, err
}

// InBatches runs fn in one transaction after another, until it handles fewer than size rows.
func (db *DB) InBatches(ctx context.Context, size int64, fn func(tx *Tx) (n int64, err error)) error {
	for n := size; n == size; {
		err := db.InTx(ctx, func(tx *Tx) (err error) {
			n, err = fn(tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// EachFound calls each with every row that find returns, a batch in each transaction, until find returns none. find returns a bounded
// number of rows, and each changes its row so that find does not return it again. Without rows there is no transaction.
func EachFound[T any](ctx context.Context, db *DB, find func(q Querier) ([]T, error), each func(tx *Tx, row T) error) error {
	for {
		if found, err := find(db); err != nil || len(found) == 0 {
			return err
		}
		err := db.InTx(ctx, func(tx *Tx) error {
			found, err := find(tx)
			if err != nil {
				return err
			}
			for _, row := range found {
				if err := each(tx, row); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// In returns the placeholders of an IN list for n values, numbered from first on: In(2, 3) is "$2, $3, $4, $5". Bind the
// values with [AppendIn]. Both round the length up to a power of two, so that lists of different lengths share few
// statement texts, each of which a connection compiles and keeps.
//
//	text := "SELECT id FROM payers WHERE customer_id = $1 AND id IN (" + store.In(2, len(ids)) + ")"
//	rows, err := q.Query(ctx, text, store.AppendIn([]any{customerID}, ids)...)
//
// The list is portable to every engine. An empty one matches nothing. Split long lists (slices.Chunk): an engine takes
// 32,766 parameters at most.
func In(first, n int) string { return query.Places(first, first+inLength(n)-1) }

// AppendIn appends the values of an IN list to the arguments of a statement. It repeats the last value until the list has
// the length that [In] gives it; repetitions do not change which rows match.
func AppendIn[T any](args []any, values []T) []any {
	if len(values) == 0 {
		return append(args, nil)
	}
	for _, value := range values {
		args = append(args, value)
	}
	last := args[len(args)-1]
	for range inLength(len(values)) - len(values) {
		args = append(args, last)
	}
	return args
}

// inLength returns the length of an IN list of n values: the next power of two, and 1 for an empty list.
func inLength(n int) int {
	length := 1
	for length < n {
		length *= 2
	}
	return length
}

// Renumbered adds base to the numbers of the placeholders of a condition.
func Renumbered(sql string, base int) string { return query.Renumbered(sql, base) }

// NilID is the id of no record.
const NilID = "00000000-0000-0000-0000-000000000000"

// NewID returns a new record id: a UUID of version 7 in lower case. Ids that this process creates later sort
// later, so that new rows land at the end of their index.
func NewID() string {
	if next := idSource.Load(); next != nil {
		if id := (*next)(); id != "" {
			return id
		}
	}
	return uuid.Must(uuid.NewV7()).String()
}

// idSource returns ids in place of NewID; nil in all processes but sandboxes that play a file.
var idSource atomic.Pointer[func() string]

// SetIDs makes NewID return what next returns, until restore is called: for sandboxes, which create the same records with the same ids
// each time. It is for the whole process. next must return a new UUID each time, or nothing for a random one.
func SetIDs(next func() string) (restore func()) {
	idSource.Store(&next)
	return func() { idSource.Store(nil) }
}

// batchSizes are the numbers of rows that one statement writes. Few sizes mean few statements to compile and keep.
var batchSizes = [...]int{128, 16, 4, 1}

// Batches splits rows into parts of few sizes, for statements that write many rows, see [Values].
func Batches[T any](all []T) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for _, size := range batchSizes {
			for len(all) >= size {
				if !yield(all[:size]) {
					return
				}
				all = all[size:]
			}
		}
	}
}

// Values returns what follows VALUES: n rows of width placeholders each, numbered after the first used ones: ($3, $4), ($5, $6).
func Values(n, width, used int) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = "(" + query.Places(used+1, used+width) + ")"
		used += width
	}
	return strings.Join(rows, ", ")
}
