package list

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"sync/atomic"

	"kontor/server/endpoint"
	"kontor/store"
)

// A Keeper remembers rows of a list between its pages. It must return the same items as a scan of the row would.
type Keeper[T any] interface {
	// Scanner is called before the statement of a page. It returns the function that scans the rows of the page, and reports for each
	// whether it was known. The function may scan a row twice.
	Scanner(ctx context.Context) func(row Row) (item T, known bool, err error)
	// Key returns the columns that tell which row it is, and in which state.
	Key() string
	// Known scans these columns. It returns the item if the row is known in that state, and its size: at least that of its long columns.
	Known(row Row) (item T, bytes int, ok bool, err error)
}

// hints note which pages had only known rows when they were read last. Such a page is read by the columns of Key first, which takes
// half the time. A hint may be wrong: then the page is read once more.
type hints struct {
	seed  maphash.Seed
	slots [512]atomic.Uint64
}

func newHints() *hints { return &hints{seed: maphash.MakeSeed()} }

// hint is the note of one page; the zero hint notes nothing.
type hint struct {
	slot *atomic.Uint64
	page uint64
}

// place returns the hint of a page, by what a cursor is bound to and the place of the page.
func (s *source) place(bound []byte, v view, p Params) hint {
	if s.hints == nil || v.stack != nil || v.distinct != nil {
		return hint{}
	}
	var h maphash.Hash
	h.SetSeed(s.hints.seed)
	_, _ = h.Write(bound)
	_, _ = h.WriteString(p.cursor)
	var numbers [16]byte
	binary.LittleEndian.PutUint64(numbers[:], uint64(p.Limit()))   //nolint:gosec // any number will do
	binary.LittleEndian.PutUint64(numbers[8:], uint64(p.Offset())) //nolint:gosec // any number will do
	_, _ = h.Write(numbers[:])
	page := h.Sum64()
	return hint{slot: &s.hints.slots[page%uint64(len(s.hints.slots))], page: page}
}

func (h hint) set() bool { return h.slot != nil && h.slot.Load() == h.page }

func (h hint) put() {
	if h.slot != nil {
		h.slot.Store(h.page)
	}
}

func (h hint) clear() { h.slot.CompareAndSwap(h.page, 0) }

// knownRows runs the statement of a page with the columns of Key. It returns known only if it has found the whole page.
func (s *source) knownRows(ctx context.Context, db store.Querier, b *builder, v view, limit int, into collector) (read result, err error) {
	rows, err := db.Query(ctx, b.sql(), b.args...)
	if err != nil {
		return read, err
	}
	defer rows.Close()
	free := endpoint.PageBytes
	further := furtherColumns{rows: rows, sorted: len(v.orders)}
	for rows.Next() {
		if read.rows == limit {
			read.more, read.known = true, true
			return read, nil
		}
		further.end = read.rows == limit-1
		bytes, ok, err := into.addKnown(&further)
		if free -= rowBytes + bytes; err != nil || !ok || free < 0 { // the page may end before the limit
			return read, err
		}
		read.rows, read.last = read.rows+1, further.last
	}
	read.known = rows.Err() == nil
	return read, rows.Err()
}
