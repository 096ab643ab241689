package list

import (
	"context"
	"encoding/binary"
	"hash/maphash"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/store"
)

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
