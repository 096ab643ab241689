package binding

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// logMagic begins a log. Its lowest bit is set where the checksums are over big-endian words.
const logMagic = 0x377f0682

// LogScan describes the log of a database.
type LogScan struct {
	Bytes   int64
	Frames  int // intact frames, from the beginning up to the last commit
	Commits int // among these
	// Beyond and CommitsBeyond count intact frames of the same generation, and commits among them, after a damaged frame:
	// SQLite does not read them.
	Beyond, CommitsBeyond int

	pages map[int64]bool // that SQLite reads from the log
}

// ScanLog reads the log of a database without SQLite, which treats everything after the first damaged frame as an
// interrupted write. A missing or empty log is no error.
func ScanLog(path string) (s LogScan, err error) {
	f, err := os.Open(path + Log.suffix())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return s, err
	}
	s.Bytes = info.Size()
	return s, s.read(bufio.NewReaderSize(f, 1<<20))
}

// checksum is SQLite's running checksum of a log.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

// newChecksum returns the checksum for a log with a magic number.
func newChecksum(magic uint32) checksum {
	if magic&1 == 1 {
		return checksum{order: binary.BigEndian}
	}
	return checksum{order: binary.LittleEndian}
}

func (c *checksum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		c.s0 += c.order.Uint32(b) + c.s1
		c.s1 += c.order.Uint32(b[4:]) + c.s0
	}
}

// set continues from a stored checksum.
func (c *checksum) set(b []byte) {
	c.s0, c.s1 = binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
}

// equals compares the checksum with a stored one.
func (c *checksum) equals(b []byte) bool {
	return c.s0 == binary.BigEndian.Uint32(b) && c.s1 == binary.BigEndian.Uint32(b[4:])
}

// read reads a log. It verifies each frame from the stored checksum of the frame before, so that it recognises intact
// frames after a damaged one.
func (s *LogScan) read(in io.Reader) error {
	header := make([]byte, logHeaderBytes)
	if more, err := fill(in, header); !more {
		return err
	}
	magic, size := binary.BigEndian.Uint32(header), int(binary.BigEndian.Uint32(header[8:]))
	if magic&^1 != logMagic || size < 512 || size > 65536 || size&(size-1) != 0 {
		return nil // not a log: SQLite does not read it either
	}
	sum := newChecksum(magic)
	sum.add(header[:24])
	whole := sum.equals(header[24:])
	sum.set(header[24:])
	salts := [8]byte(header[16:])

	s.pages = map[int64]bool{}
	var uncommitted []int64
	frame := make([]byte, frameHeaderBytes+size)
	for n := 1; ; n++ {
		more, err := fill(in, frame)
		if !more {
			return err
		}
		sum.add(frame[:8])
		sum.add(frame[frameHeaderBytes:])
		ours := [8]byte(frame[8:]) == salts
		intact := ours && sum.equals(frame[16:]) && binary.BigEndian.Uint32(frame) != 0
		sum.set(frame[16:])
		whole = whole && intact
		commit := binary.BigEndian.Uint32(frame[4:]) != 0
		s.count(n, intact, whole, commit)
		if whole {
			uncommitted = append(uncommitted, int64(binary.BigEndian.Uint32(frame)))
		}
		if whole && commit {
			for _, page := range uncommitted {
				s.pages[page] = true
			}
			uncommitted = uncommitted[:0]
		}
	}
}

// count counts a frame. Intact frames after the last commit are not counted: they were never committed.
func (s *LogScan) count(n int, intact, whole, commit bool) {
	switch {
	case whole && commit:
		s.Frames = n
		s.Commits++
	case whole || !intact:
	default:
		s.Beyond++
		if commit {
			s.CommitsBeyond++
		}
	}
}

// fill reads one part of the log. more is false at the end, and for an incomplete part.
func fill(in io.Reader, b []byte) (more bool, err error) {
	_, err = io.ReadFull(in, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return false, nil
	}
	return err == nil, err
}

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
	f, p := c.file()
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
