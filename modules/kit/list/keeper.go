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
	// Begin is called before a statement that reads ids only.
	Begin(ctx context.Context) store.Reading
	// Known returns the item of a row and its size: at least that of its long columns. ok is false if the row is not known.
	Known(id []byte) (item T, bytes int, ok bool)
	// Holds reports whether the items that Known has returned are those of the rows that the statement has found.
	Holds(since store.Reading) bool
}

// hints note which pages had only known rows when they were read last. The ids of such a page are read first, which takes a third of
// the time. A hint may be wrong: then the page is read once more.
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

// knownRows runs the statement of a page with the column of the id. It returns known only if it has found the whole page.
func (s *source) knownRows(ctx context.Context, db store.Querier, b *builder, v view, limit int, into collector) (read result, err error) {
	began := into.beginKnown(ctx)
	rows, err := db.Query(ctx, b.sql(), b.args...)
	if err != nil {
		return read, err
	}
	defer rows.Close()
	free := endpoint.PageBytes
	var id store.ReusedText
	dest := make([]any, 1+len(v.orders))
	dest[0] = &id
	for i := range v.orders {
		dest[1+i] = store.Ignored
	}
	for rows.Next() {
		if read.rows == limit {
			read.more = true
			break
		}
		if read.rows == limit-1 { // only this one needs a cursor after it
			read.last = make([]any, len(v.orders))
			for i := range read.last {
				dest[1+i] = &read.last[i]
			}
		}
		if err := rows.Scan(dest...); err != nil {
			return read, err
		}
		bytes, ok := into.addKnown(id)
		if free -= rowBytes + bytes; !ok || free < 0 { // the page may end before the limit
			return read, nil
		}
		read.rows++
	}
	read.known = rows.Err() == nil && into.holds(began)
	return read, rows.Err()
}
