package binding

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Every page of a database with checksums ends in reserved bytes that the engine does not use: the xxHash64 of the page
// before them, mixed with the number of the page, little endian. So a flipped byte shows, and so does a page in the place
// of another. The engine keeps the number of reserved bytes at byte 20 of the file; 8 of them mean checksums.
//
// They are computed where pages are written to the database file, by a checkpoint nearly always, and compared where pages
// are read. A page that is read through the mapping of the file is compared when it is first fetched since it was last
// written; all connections of the process share what they know about that. Pages in the log have checksums of the
// engine's own, see [frames].
const (
	checksumBytes   = 8
	reservedAt      = 20
	headerBytes     = 100
	defaultPageSize = 4096 // of the databases that this program makes
	pendingByte     = 0x40000000
)

var magic = []byte("SQLite format 3\x00")

// PageError is a page whose content is not what was written.
type PageError struct {
	Path string
	Page int64 // counted from 1; in a log, the number of the frame
	Log  bool
}

// Error names the file and the page.
func (e *PageError) Error() string {
	if e.Log {
		return fmt.Sprintf("%s: frame %d does not have the checksum that it was written with", e.Path, e.Page)
	}
	return fmt.Sprintf("%s: page %d does not have the checksum that it was written with", e.Path, e.Page)
}

// pageSum is the checksum of a page, without its last bytes.
func pageSum(page []byte, number int64) uint64 {
	return xxhash.Sum64(page[:len(page)-checksumBytes]) ^ uint64(number)*0x9e3779b97f4a7c15
}

func sealPage(page []byte, number int64) {
	binary.LittleEndian.PutUint64(page[len(page)-checksumBytes:], pageSum(page, number))
}

func pageHolds(page []byte, number int64) bool {
	return binary.LittleEndian.Uint64(page[len(page)-checksumBytes:]) == pageSum(page, number)
}

// pages is what the process knows of the pages of a database file, shared by all connections.
type pages struct {
	path  string
	size  atomic.Int64 // of a page; 0 while the file has no checksums, or is empty
	users int          // open files; under pagesMu

	mu       sync.Mutex // for growing
	verified atomic.Pointer[[]atomic.Uint64]
}

var (
	pagesMu sync.Mutex
	pagesOf = map[string]*pages{}
)

// openPages returns what is known of the file at the path.
func openPages(path string) *pages {
	pagesMu.Lock()
	defer pagesMu.Unlock()
	p := pagesOf[path]
	if p == nil {
		p = &pages{path: path}
		pagesOf[path] = p
	}
	p.users++
	return p
}

func (p *pages) close() {
	pagesMu.Lock()
	defer pagesMu.Unlock()
	if p.users--; p.users == 0 {
		delete(pagesOf, p.path)
	}
}

// ExpectChecksums makes the pages of a file have checksums before its first page, which says so, is written: the engine may
// write others first. Call done when the file is complete.
func ExpectChecksums(path string) (done func(), err error) {
	full, err := fullPath(path)
	if err != nil {
		return nil, err
	}
	p := openPages(full)
	p.size.Store(defaultPageSize)
	return p.close, nil
}

// learn looks at the beginning of the file, as it is read or about to be written. A header that has lost its number of
// reserved bytes, and with it the checksums, is noticed by the checksum of its page.
func (p *pages) learn(start []byte) {
	if len(start) < headerBytes || !bytes.Equal(start[:len(magic)], magic) {
		return
	}
	size := int64(binary.BigEndian.Uint16(start[16:]))
	if size == 1 {
		size = 1 << 16
	}
	if size >= 512 && size&(size-1) == 0 && start[reservedAt] == checksumBytes {
		p.size.CompareAndSwap(0, size)
	}
}

// lostHeader reports whether a first page would have its checksum if it said that it has one.
func lostHeader(page []byte) bool {
	if len(page) < 512 || page[reservedAt] == checksumBytes {
		return false
	}
	whole := bytes.Clone(page)
	whole[reservedAt] = checksumBytes
	return pageHolds(whole, 1)
}

// number is the page at an offset, if all of one page was read or written there.
func (p *pages) number(n int32, offset int64) (number int64, ok bool) {
	size := p.size.Load()
	if size == 0 || int64(n) != size || offset%size != 0 {
		return 0, false
	}
	return offset/size + 1, true
}

// known reports whether the page was compared since it was last written.
func (p *pages) known(number int64) bool {
	words := p.verified.Load()
	i := number / 64
	return words != nil && i < int64(len(*words)) && (*words)[i].Load()&(1<<(number%64)) != 0
}

// note remembers that a page was compared.
func (p *pages) note(number int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := number / 64
	words := p.verified.Load()
	if words == nil || i >= int64(len(*words)) {
		grown := make([]atomic.Uint64, max(64, 2*i))
		if words != nil {
			for j := range *words {
				grown[j].Store((*words)[j].Load())
			}
		}
		words = &grown
		p.verified.Store(words)
	}
	(*words)[i].Or(1 << (number % 64))
}

// forget makes a page be compared again.
func (p *pages) forget(number int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if words := p.verified.Load(); words != nil && number/64 < int64(len(*words)) {
		(*words)[number/64].And(^uint64(1 << (number % 64)))
	}
}

func (p *pages) forgetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.verified.Store(nil)
}

// IgnoreChecksums makes a connection that only reads accept pages whose checksum is wrong. Call it before the first
// statement.
func (c *Conn) IgnoreChecksums() {
	argument := c.tls.Alloc(8)
	defer c.tls.Free(8)
	if lib.Xsqlite3_file_control(c.tls, c.db, 0, lib.SQLITE_FCNTL_FILE_POINTER, argument) != lib.SQLITE_OK {
		return
	}
	if f := state(*(*uintptr)(at(argument))); f != nil && f.pages != nil {
		f.pages.close()
		f.pages = nil
	}
}

// memory is a part of C memory.
func memory(address uintptr, n int64) []byte { return unsafe.Slice((*byte)(at(address)), n) }

// beforeWrite gives a page that is about to be written its checksum.
func (p *pages) beforeWrite(buffer uintptr, n int32, offset int64) {
	if offset == 0 {
		p.learn(memory(buffer, int64(n)))
	}
	if number, ok := p.number(n, offset); ok {
		sealPage(memory(buffer, int64(n)), number)
		p.forget(number)
	}
}

// afterRead compares a page that was read.
func (p *pages) afterRead(buffer uintptr, n int32, offset int64) int32 {
	page := memory(buffer, int64(n))
	if offset == 0 {
		p.learn(page)
		if p.size.Load() == 0 && lostHeader(page) {
			return damaged(&PageError{Path: p.path, Page: 1})
		}
	}
	if number, ok := p.number(n, offset); ok && !pageHolds(page, number) {
		return damaged(&PageError{Path: p.path, Page: number})
	}
	return lib.SQLITE_OK
}

// fetchPage is xFetch: it gives a page in the mapping of the file, or none.
func fetchPage(tls *libc.TLS, p uintptr, offset int64, n int32, result uintptr) int32 {
	f := state(p)
	rc := f.engine.fetch(tls, p, offset, n, result)
	if rc != lib.SQLITE_OK || f.pages == nil {
		return rc
	}
	page := *(*uintptr)(at(result))
	if page == 0 {
		return rc
	}
	number, ok := f.pages.number(n, offset)
	if !ok || f.pages.known(number) {
		return rc
	}
	if pageHolds(memory(page, int64(n)), number) {
		f.pages.note(number)
		return rc
	}
	f.engine.unfetch(tls, p, offset, page)
	*(*uintptr)(at(result)) = 0
	return damaged(&PageError{Path: f.path, Page: number})
}

// fileTraits is xDeviceCharacteristics. Without SUBPAGE_READ the engine always reads whole pages, which can be compared; it
// would else read the pages of long values in part.
func fileTraits(tls *libc.TLS, p uintptr) int32 {
	f := state(p)
	traits := f.engine.traits(tls, p)
	if f.pages != nil && f.pages.size.Load() != 0 {
		traits &^= lib.SQLITE_IOCAP_SUBPAGE_READ
	}
	return traits
}
