package list

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"strconv"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/endpoint"
	"kontor/store"
)

// Kept is a list with the encoded rows of a keeper. It is safe for concurrent use.
type Kept[T any] struct {
	list   *List[T]
	keeper Keeper
	hints  *hints
}

// Of returns a list with the rows of another one in the form of a keeper.
func Of[T any](l *List[T], keeper Keeper) *Kept[T] {
	return &Kept[T]{list: l, keeper: keeper, hints: &hints{seed: maphash.MakeSeed()}}
}

// Page is [List.Page] with encoded rows.
func (k *Kept[T]) Page(ctx context.Context, db Store, p Params, conditions ...Where) (page Page[jsontext.Value], err error) {
	rows := &keptRows{keeper: k.keeper, hints: k.hints}
	found, err := k.list.page(ctx, db, p, conditions, rows)
	if err == nil {
		page.set(&found, inOrder(rows.rows, found.order))
	}
	return page, err
}

// keptRows are the encoded rows of a page.
type keptRows struct {
	keeper Keeper
	hints  *hints
	rows   []jsontext.Value
	known  bool // the keeper knew all rows
	scan   func(row Row) (item jsontext.Value, known bool, err error)
}

func (k *keptRows) begin(ctx context.Context) {
	if k.scan == nil { // ids that were found are read by several statements
		k.scan, k.known, k.rows = k.keeper.Scanner(ctx), true, make([]jsontext.Value, 0, defaultLimit)
	}
}

func (k *keptRows) add(row Row) error {
	item, known, err := k.scan(row)
	if err == nil {
		k.rows, k.known = append(k.rows, item), k.known && known
	}
	return err
}

// readKnown runs the statement of a page with the column of the id. It returns known only if it has found the whole page.
func (k *keptRows) readKnown(ctx context.Context, db store.Querier, b *builder, v view, limit int) (read result, known bool, err error) {
	began := k.keeper.Begin(ctx)
	rows, err := db.Query(ctx, b.sql(), b.args...)
	if err != nil {
		return read, false, err
	}
	defer rows.Close()
	free := endpoint.PageBytes
	k.rows = make([]jsontext.Value, 0, defaultLimit)
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
			return read, false, err
		}
		item, bytes, ok := k.keeper.Known(id)
		if free -= rowBytes + bytes; !ok || free < 0 { // the page may end before the limit
			return read, false, nil
		}
		k.rows = append(k.rows, item)
		read.rows++
	}
	return read, rows.Err() == nil && k.keeper.Holds(began), rows.Err()
}

// A Keeper remembers the encoded rows of a list between its pages. It must return the same JSON as a scan of the row would.
type Keeper interface {
	// Scanner is called before the statement of a page. It returns the function that scans the rows of the page, and reports for each
	// whether it was known. The function may scan a row twice.
	Scanner(ctx context.Context) func(row Row) (item jsontext.Value, known bool, err error)
	// Begin is called before a statement that reads ids only.
	Begin(ctx context.Context) store.Reading
	// Known returns a row and its size: at least that of its long columns. ok is false if the row is not known.
	Known(id []byte) (item jsontext.Value, bytes int, ok bool)
	// Holds reports whether the items that Known has returned are those of the rows that the statement has found.
	Holds(since store.Reading) bool
}

// hints note which pages had only known rows when they were read last. The ids of such a page are read first, which takes a third of
// the time. A hint may be wrong: then the page is read once more.
type hints struct {
	seed  maphash.Seed
	slots [512]atomic.Uint64
}

// hint is the note of one page; the zero hint notes nothing.
type hint struct {
	slot *atomic.Uint64
	page uint64
}

// place returns the hint of a page, by what a cursor is bound to and the place of the page.
func (h *hints) place(bound []byte, v view, p Params) hint {
	if v.stack != nil || v.distinct != nil {
		return hint{}
	}
	var digest maphash.Hash
	digest.SetSeed(h.seed)
	_, _ = digest.Write(bound)
	_, _ = digest.WriteString(p.cursor)
	var numbers [16]byte
	binary.LittleEndian.PutUint64(numbers[:], uint64(p.Limit()))   //nolint:gosec // any number will do
	binary.LittleEndian.PutUint64(numbers[8:], uint64(p.Offset())) //nolint:gosec // any number will do
	_, _ = digest.Write(numbers[:])
	page := digest.Sum64()
	return hint{slot: &h.slots[page%uint64(len(h.slots))], page: page}
}

func (h hint) set() bool { return h.slot != nil && h.slot.Load() == h.page }

func (h hint) put() {
	if h.slot != nil {
		h.slot.Store(h.page)
	}
}

func (h hint) clear() { h.slot.CompareAndSwap(h.page, 0) }

// Encode encodes a page whose rows are encoded. It does not copy the rows.
func Encode(p Page[jsontext.Value]) (*endpoint.Encoded, error) {
	if p.Data.stacked || p.Metadata != nil || len(p.Keys) > 0 {
		return endpoint.Encode(p)
	}
	parts := make([][]byte, 0, 2*len(p.Data.Rows)+1)
	before := []byte(`{"data":[`)
	for _, row := range p.Data.Rows {
		parts = append(parts, before, row)
		before = comma
	}
	end := make([]byte, 0, 160+len(p.NextCursor))
	if len(p.Data.Rows) == 0 {
		end = append(end, before...)
	}
	end = strconv.AppendInt(append(end, `],"total":`...), p.Total, 10)
	end = strconv.AppendInt(append(end, `,"total_unfiltered":`...), p.TotalUnfiltered, 10)
	end = strconv.AppendBool(append(end, `,"has_more":`...), p.HasMore)
	if p.NextCursor != "" {
		var err error
		if end, err = jsontext.AppendQuote(append(end, `,"next_cursor":`...), p.NextCursor); err != nil {
			return nil, err
		}
	}
	return &endpoint.Encoded{Parts: append(parts, append(end, '}'))}, nil
}

var comma = []byte{','}
