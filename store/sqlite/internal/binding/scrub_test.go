package binding

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// leaf returns a page of a table with one cell at its end, and junk in all unused bytes.
func leaf() []byte {
	page := bytes.Repeat([]byte{0xee}, defaultPageSize)
	usable := defaultPageSize - checksumBytes
	copy(page, []byte{leafTable, 0, 0, 0, 1, 0, 0, 0})
	binary.BigEndian.PutUint16(page[5:], uint16(usable-100))
	binary.BigEndian.PutUint16(page[1:], uint16(usable-60)) // a free block of 20 bytes behind the cell
	binary.BigEndian.PutUint16(page[8:], uint16(usable-100))
	binary.BigEndian.PutUint16(page[usable-60:], 0)
	binary.BigEndian.PutUint16(page[usable-58:], 20)
	return page
}

func TestScrub_ClearsWhatIsUnused(t *testing.T) {
	page := leaf()
	if !scrubPage(page, 2) {
		t.Fatal("the page was not recognised")
	}
	usable := defaultPageSize - checksumBytes
	for i, b := range page {
		unused := i >= 10 && i < usable-100 || i >= usable-56 && i < usable-40
		if kept := i >= usable-100 && i < usable-60 || i >= usable-40; unused && b != 0 || kept && b != 0xee {
			t.Fatalf("byte %d is %x", i, b)
		}
	}
}

func TestScrub_LeavesOtherPages(t *testing.T) {
	usable := uint16(defaultPageSize - checksumBytes)
	for name, change := range map[string]func(page []byte){
		"an overflow page":                      func(p []byte) { p[0] = 0 },
		"an unknown type":                       func(p []byte) { p[0] = 3 },
		"a cell before the content":             func(p []byte) { binary.BigEndian.PutUint16(p[8:], usable-200) },
		"a cell behind the content":             func(p []byte) { binary.BigEndian.PutUint16(p[8:], usable) },
		"too many cells":                        func(p []byte) { binary.BigEndian.PutUint16(p[3:], 5000) },
		"content behind the end":                func(p []byte) { binary.BigEndian.PutUint16(p[5:], usable+1) },
		"content of a larger page":              func(p []byte) { binary.BigEndian.PutUint16(p[5:], 0) },
		"a free block before the content":       func(p []byte) { binary.BigEndian.PutUint16(p[1:], 20) },
		"a free block behind the end":           func(p []byte) { binary.BigEndian.PutUint16(p[1:], usable-2) },
		"a free block that is too long":         func(p []byte) { binary.BigEndian.PutUint16(p[usable-58:], 200) },
		"a free block that is too short":        func(p []byte) { binary.BigEndian.PutUint16(p[usable-58:], 3) },
		"a free block that points to itself":    func(p []byte) { binary.BigEndian.PutUint16(p[usable-60:], usable-60) },
		"a free block with an earlier next one": func(p []byte) { binary.BigEndian.PutUint16(p[usable-60:], usable-90) },
	} {
		page := leaf()
		change(page)
		before := bytes.Clone(page)
		if scrubPage(page, 2) || !bytes.Equal(page, before) {
			t.Errorf("%s was changed", name)
		}
	}
	p := &pages{}
	first := leaf()
	p.mapped.Store(true)
	if p.scrub(first, 2); !bytes.Equal(first, leaf()) {
		t.Error("a page of a database with pointer maps was changed")
	}
	p.mapped.Store(false)
	p.total.Store(maxScrubbed)
	if p.scrub(first, 2); !bytes.Equal(first, leaf()) {
		t.Error("a page of a huge database was changed")
	}
}

// No content of a page may break the file layer, and no byte of a cell pointer may change.
func FuzzScrub(f *testing.F) {
	f.Add(leaf(), int64(2))
	f.Add(leaf(), int64(1))
	f.Add(make([]byte, 512), int64(1))
	f.Fuzz(func(t *testing.T, page []byte, number int64) {
		if len(page) < 512 || len(page) > 1<<16 {
			return
		}
		before := bytes.Clone(page)
		if !scrubPage(page, number) && !bytes.Equal(page, before) {
			t.Fatal("a page that was not recognised changed")
		}
		if !bytes.Equal(page[len(page)-checksumBytes:], before[len(page)-checksumBytes:]) {
			t.Fatal("the checksum changed")
		}
		again := bytes.Clone(page)
		if scrubPage(again, number); !bytes.Equal(again, page) {
			t.Fatal("the second run changed something")
		}
	})
}
