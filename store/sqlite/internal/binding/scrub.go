package binding

import (
	"bytes"
	"context"
	"encoding/binary"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// Deleted rows are overwritten (PRAGMA secure_delete), but not all copies of them. When SQLite moves a row within a page or to
// another page, the old bytes can stay in the unallocated space of the page: between the array of cell pointers and the first
// cell. The file layer therefore clears this space, and the free blocks between cells, in each page that it writes to the
// database file. SQLite does not read these bytes.

// The first byte of a page of a b-tree.
const (
	interiorIndex = 2
	interiorTable = 5
	leafIndex     = 10
	leafTable     = 13
)

const (
	leafHeader     = 8
	interiorHeader = 12
	totalAt        = 28 // of the number of pages, in the first page
	treeRootAt     = 52 // not 0: the database has pages that map pointers, which could look like pages of a b-tree
)

// maxScrubbed is the number of pages from which on the first byte of an overflow page, part of a page number, can look like
// that of a page of a b-tree. It stands for 137 GB.
const maxScrubbed = interiorIndex << 24

// scrubPage clears the unused bytes of a page of a b-tree and reports whether the page is one. It leaves all other pages, and
// pages whose structure it does not understand, as they are.
func scrubPage(page []byte, number int64) bool {
	header := 0
	if number == 1 {
		header = headerBytes
	}
	usable := len(page) - checksumBytes
	first := header + leafHeader // of the cell pointers
	switch page[header] {
	case interiorIndex, interiorTable:
		first = header + interiorHeader
	case leafIndex, leafTable:
	default:
		return false
	}
	cells := int(binary.BigEndian.Uint16(page[header+3:]))
	content := int(binary.BigEndian.Uint16(page[header+5:]))
	if content == 0 {
		content = 1 << 16
	}
	end := first + 2*cells
	if end > content || content > usable {
		return false
	}
	for i := first; i < end; i += 2 {
		if cell := int(binary.BigEndian.Uint16(page[i:])); cell < content || cell >= usable {
			return false
		}
	}
	blocks, ok := freeBlocks(page, int(binary.BigEndian.Uint16(page[header+1:])), content, usable)
	if !ok {
		return false
	}
	clear(page[end:content])
	for _, b := range blocks {
		clear(page[b.from:b.to])
	}
	return true
}

// span is a range of bytes in a page.
type span struct{ from, to int }

// freeBlocks returns the free blocks of a page without their headers. ok is false for a chain that is not in order.
func freeBlocks(page []byte, at, content, usable int) (blocks []span, ok bool) {
	const header = 4
	last := content
	for at != 0 {
		if at < last || at+header > usable {
			return nil, false
		}
		next, size := int(binary.BigEndian.Uint16(page[at:])), int(binary.BigEndian.Uint16(page[at+2:]))
		if size < header || at+size > usable {
			return nil, false
		}
		blocks = append(blocks, span{at + header, at + size})
		last, at = at+size, next
	}
	return blocks, true
}

// scrub clears the unused bytes of a page that is about to be written, unless it could be mistaken for another kind of page.
func (p *pages) scrub(page []byte, number int64) {
	if number == 1 {
		p.mapped.Store(binary.BigEndian.Uint32(page[treeRootAt:]) != 0)
		p.total.Store(int64(binary.BigEndian.Uint32(page[totalAt:])))
	}
	if !p.mapped.Load() && p.total.Load() < maxScrubbed && number < maxScrubbed {
		scrubPage(page, number)
	}
}

// UnscrubbedPages returns up to limit pages of the database file from a page on that hold bytes which the file layer would clear
// today. Earlier versions wrote such pages. next is the page to continue with, 0 at the end. The file is read without the log:
// pages in the log are cleared when they are copied.
func (c *Conn) UnscrubbedPages(ctx context.Context, from int64, limit int) (found []int64, next int64, err error) {
	argument := c.tls.Alloc(8)
	defer c.tls.Free(8)
	if rc := lib.Xsqlite3_file_control(c.tls, c.db, 0, lib.SQLITE_FCNTL_FILE_POINTER, argument); rc != lib.SQLITE_OK {
		return nil, 0, c.fail(rc)
	}
	p := *(*uintptr)(at(argument))
	f := state(p)
	if f == nil || f.pages == nil || f.pages.size.Load() == 0 {
		return nil, 0, nil // without checksums, pages have no place that the file layer may use
	}
	size := f.pages.size.Load()
	buffer := libc.Xmalloc(c.tls, types.Size_t(size))
	defer libc.Xfree(c.tls, buffer)
	page := memory(buffer, size)
	before := make([]byte, size)
	for number := from; ctx.Err() == nil; number++ {
		if len(found) == limit {
			return found, number, nil
		}
		rc := f.engine.read(c.tls, p, buffer, int32(size), (number-1)*size)
		if rc == lib.SQLITE_IOERR_SHORT_READ {
			return found, 0, nil // the end
		}
		if rc != lib.SQLITE_OK {
			return found, 0, c.fail(rc)
		}
		copy(before, page)
		if f.pages.scrub(page, number); !bytes.Equal(before, page) {
			found = append(found, number)
		}
	}
	return found, 0, ctx.Err()
}
