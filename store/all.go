package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
)

// Scanner is a row whose columns a function reads.
type Scanner = interface{ Scan(dest ...any) error }

// All returns what scan returns for each row of a statement. The number of rows must be bounded.
func All[T any](ctx context.Context, q Querier, scan func(row Scanner) (T, error), statement string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []T
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, rows.Err()
}

// Text reads the one text column of a row, for [All].
func Text(row Scanner) (text string, err error) {
	err = row.Scan(&text)
	return text, err
}

// Exists reports whether a statement returns a row.
func Exists(ctx context.Context, q Querier, statement string, args ...any) (bool, error) {
	err := q.QueryRow(ctx, statement, args...).Scan(Ignored)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// pairsAtOnce is how many keys one statement of Pairs takes.
const pairsAtOnce = 64

// Pairs returns the second column of a statement by the first. The statement contains %s for the list of the keys; there may be any
// number of them.
func Pairs(ctx context.Context, q Querier, statement string, keys []string) (map[string]string, error) {
	found := make(map[string]string, len(keys))
	for part := range slices.Chunk(keys, pairsAtOnce) {
		rows, err := q.Query(ctx, fmt.Sprintf(statement, In(1, len(part))), AppendIn(nil, part)...)
		if err != nil {
			return nil, err
		}
		for rows.Next() {
			var key, value string
			if err := rows.Scan(&key, &value); err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			found[key] = value
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			return nil, err
		}
	}
	return found, nil
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
func In(first, n int) string {
	last := first + inLength(n) - 1
	if last <= keptPlaces {
		return places[placeAt(first) : placeAt(last+1)-len(placeSeparator)]
	}
	return writePlaces(first, last)
}

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

const (
	placeSeparator = ", "
	// keptPlaces is the highest placeholder in places. Lists beyond it are rare and are formatted each time.
	keptPlaces = 999
)

// places holds the placeholders $1 to $999. Lists are cut out of it, which allocates nothing.
var places = writePlaces(1, keptPlaces) + placeSeparator

// placeAt returns where the placeholder with a number begins in places.
func placeAt(number int) int {
	const perDigit = len("$" + placeSeparator)
	at := (number - 1) * (perDigit + 1)
	return at + max(0, number-10) + max(0, number-100) // second and third digits
}

// writePlaces writes the placeholders from first to last.
func writePlaces(first, last int) string {
	var b strings.Builder
	for number := first; number <= last; number++ {
		if number > first {
			b.WriteString(placeSeparator)
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(number))
	}
	return b.String()
}

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

// memoLimit bounds the remembered numbers. Beyond it all are forgotten, and each must be counted again.
const memoLimit = 4096

// memo remembers numbers until a commit writes to one of their tables.
type memo struct {
	mu      sync.Mutex
	entries map[string]*memoEntry
}

// memoEntry is a number that is known or being loaded.
type memoEntry struct {
	version uint64 // of the tables, taken before the number was read
	ready   chan struct{}
	value   int64
	err     error
}

// Memo returns the result of load, and remembers it under the key until a commit writes to one of the tables. Concurrent
// callers share one load. A caller that comes after a commit never gets a number that was read before it. An error is not
// remembered. The load uses the context of the caller that came first; if it fails, the other callers load for themselves.
func (db *DB) Memo(ctx context.Context, key string, tables []string, load func() (int64, error)) (int64, error) {
	version, err := db.Version(ctx, tables...)
	if err != nil {
		return 0, err
	}
	e, first := db.memo.entry(key, version)
	if !first {
		select {
		case <-e.ready:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		if e.err == nil {
			return e.value, nil
		}
		return load()
	}
	completed := false
	defer func() {
		if !completed { // load panicked
			e.err = ErrClosed
		}
		if e.err != nil {
			db.memo.forget(key, e)
		}
		close(e.ready)
	}()
	e.value, e.err = load()
	completed = true
	return e.value, e.err
}

// entry returns the entry of this version, or a new one; then first is true and the caller must load the number.
func (m *memo) entry(key string, version uint64) (e *memoEntry, first bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e, ok := m.entries[key]; ok && e.version == version {
		return e, false
	}
	if m.entries == nil || len(m.entries) >= memoLimit {
		m.entries = make(map[string]*memoEntry)
	}
	e = &memoEntry{version: version, ready: make(chan struct{})}
	m.entries[key] = e
	return e, true
}

func (m *memo) forget(key string, e *memoEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.entries[key] == e {
		delete(m.entries, key)
	}
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
	var b []byte
	for row := range n {
		if row > 0 {
			b = append(b, ", "...)
		}
		b = append(b, '(')
		for column := range width {
			if column > 0 {
				b = append(b, ", "...)
			}
			used++
			b = strconv.AppendInt(append(b, '$'), int64(used), 10)
		}
		b = append(b, ')')
	}
	return string(b)
}
