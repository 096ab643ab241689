package binding

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// Every page of a database with checksums ends in 8 reserved bytes that SQLite does not use: the xxHash64 of the rest of the
// page, mixed with the number of the page, little endian. So a flipped byte is noticed, and so is a page in the place of
// another. SQLite stores the number of reserved bytes at byte 20 of the file; 8 of them mean checksums.
//
// They are computed when pages are written to the database file, nearly always by a checkpoint, and compared when pages are
// read. A page that is read through the mapping of the file is compared when it is first fetched after a write; all
// connections of the process share that knowledge. Pages in the log have SQLite's own checksums, see [frames].
const (
	checksumBytes   = 8
	reservedAt      = 20
	headerBytes     = 100
	defaultPageSize = 4096 // of new databases
	pendingByte     = 0x40000000
)

var magic = []byte("SQLite format 3\x00")

// PageError says that a page does not have the content that was written.
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

// pageSum returns the checksum of a page, without its reserved bytes.
func pageSum(page []byte, number int64) uint64 {
	return xxhash.Sum64(page[:len(page)-checksumBytes]) ^ uint64(number)*0x9e3779b97f4a7c15
}

func sealPage(page []byte, number int64) {
	binary.LittleEndian.PutUint64(page[len(page)-checksumBytes:], pageSum(page, number))
}

func pageHolds(page []byte, number int64) bool {
	return binary.LittleEndian.Uint64(page[len(page)-checksumBytes:]) == pageSum(page, number)
}

// pages holds which pages of a database file were compared. All connections share it.
type pages struct {
	path string
	size atomic.Int64 // of a page; 0 while the file is empty or has no checksums

	mapped atomic.Bool  // the database has pages that map pointers, see scrub
	total  atomic.Int64 // number of pages, as the first page says

	mu       sync.Mutex // for growing
	verified atomic.Pointer[[]atomic.Uint64]
}

var pagesOf registry[pages]

// openPages returns the shared state of the file at a path.
func openPages(path string) *pages { return pagesOf.open(path, &pages{path: path}) }

func (p *pages) close() { pagesOf.close(p.path) }

// registry holds, by path, what all connections share about open files.
type registry[T any] struct {
	mu    sync.Mutex
	files map[string]*registered[T]
}

type registered[T any] struct {
	state *T
	users int // open files
}

// open returns the shared state of a file, which is a new one unless the file is open already.
func (r *registry[T]) open(path string, fresh *T) *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.files == nil {
		r.files = map[string]*registered[T]{}
	}
	f := r.files[path]
	if f == nil {
		f = &registered[T]{state: fresh}
		r.files[path] = f
	}
	f.users++
	return f.state
}

func (r *registry[T]) close(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.files[path]
	if f.users--; f.users == 0 {
		delete(r.files, path)
	}
}

// ExpectChecksums makes all pages of a new file have checksums, also those that SQLite writes before the first page, which
// says so. Call done when the file is complete.
func ExpectChecksums(path string) (done func(), err error) {
	full, err := fullPath(path)
	if err != nil {
		return nil, err
	}
	p := openPages(full)
	p.size.Store(defaultPageSize)
	return p.close, nil
}

// learn finds out from the beginning of the file whether its pages have checksums. If the header has lost its number of
// reserved bytes, the checksum of the first page shows it, see lostHeader.
func (p *pages) learn(start []byte) {
	if len(start) < headerBytes || !bytes.Equal(start[:len(magic)], magic) {
		return
	}
	size := int64(binary.BigEndian.Uint16(start[16:]))
	if size == 1 {
		size = 1 << 16
	}
	if size >= 512 && size&(size-1) == 0 && start[reservedAt] == checksumBytes {
		p.mapped.Store(binary.BigEndian.Uint32(start[treeRootAt:]) != 0)
		p.total.Store(int64(binary.BigEndian.Uint32(start[totalAt:])))
		p.size.CompareAndSwap(0, size)
	}
}

// lostHeader reports whether a first page has a correct checksum and does not say so.
func lostHeader(page []byte) bool {
	if len(page) < 512 || page[reservedAt] == checksumBytes {
		return false
	}
	whole := bytes.Clone(page)
	whole[reservedAt] = checksumBytes
	return pageHolds(whole, 1)
}

// number returns the page at an offset. ok is false unless one whole page was read or written.
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

// note records that a page was compared.
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

// IgnoreChecksums makes a read-only connection accept pages whose checksum is wrong. Call it before the first statement.
func (c *Conn) IgnoreChecksums() {
	if f, _ := c.file(); f != nil && f.pages != nil {
		f.pages.close()
		f.pages = nil
	}
}

// memory returns n bytes of C memory.
func memory(address uintptr, n int64) []byte { return unsafe.Slice((*byte)(at(address)), n) }

// comparedAtOnce is how many bytes ComparePages reads at once.
const comparedAtOnce = 256 << 10

// ComparePages compares the pages of a database file that is closed and has no log with their checksums, without SQLite: some
// gigabytes take a second, which is a tenth of the time of SQLite's own check. It returns true if it could compare all pages and
// found no difference. A difference need not be damage: pages that were allocated and never used have no checksum.
func ComparePages(ctx context.Context, path string) (intact bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var p pages
	start := make([]byte, headerBytes)
	if _, err := io.ReadFull(f, start); err != nil {
		return false, ignoreEnd(err)
	}
	p.learn(start)
	size, total := p.size.Load(), p.total.Load()
	if size == 0 || total == 0 {
		return false, nil // it has no checksums
	}
	pending := int64(pendingByte)/size + 1 // SQLite never uses the page with its locks
	buffer := make([]byte, max(comparedAtOnce, size))
	for number := int64(1); number <= total; {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		part := buffer[:min(int64(len(buffer)), (total-number+1)*size)]
		if _, err := f.ReadAt(part, (number-1)*size); err != nil {
			return false, ignoreEnd(err)
		}
		for ; len(part) > 0; part = part[size:] {
			if number != pending && !pageHolds(part[:size], number) {
				return false, nil
			}
			number++
		}
	}
	return binary.BigEndian.Uint32(start[changeAt:]) == binary.BigEndian.Uint32(start[validForAt:]), nil
}

// The header of the file holds a counter of changes, and the value that it had when the number of pages was stored.
const (
	changeAt   = 24
	validForAt = 92
)

// ignoreEnd returns nil for a file that is shorter than its header says.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// reserveChecksums reserves the bytes of the checksums in each page. It affects empty databases and the copies that VACUUM
// INTO makes; an existing database stays as it is.
func (c *Conn) reserveChecksums() {
	argument := c.tls.Alloc(8)
	defer c.tls.Free(8)
	*(*int32)(at(argument)) = checksumBytes
	lib.Xsqlite3_file_control(c.tls, c.db, 0, lib.SQLITE_FCNTL_RESERVE_BYTES, argument)
}

// CopyTo writes the database to a new file whose pages have checksums, whether or not those of the database have.
func (c *Conn) CopyTo(path string) error {
	done, err := ExpectChecksums(path)
	if err != nil {
		return err
	}
	defer done()
	c.reserveChecksums()
	return c.Run("VACUUM INTO '" + strings.ReplaceAll(path, "'", "''") + "'")
}

// readTries is how often a page with a wrong checksum is read: beside a running server, a checkpoint may be writing it.
const readTries = 5

// VerifyPages compares all pages of the database file with their checksums, also those that no table uses. It returns how
// many it compared, and 0 for a database without checksums. The error is a *PageError for the first wrong page. The
// connection must have read something before.
func (c *Conn) VerifyPages(ctx context.Context) (compared int64, err error) {
	f, p := c.file()
	if f == nil || f.pages == nil || f.pages.size.Load() == 0 {
		return 0, nil
	}
	last, err := c.pageCount()
	if err != nil {
		return 0, err
	}
	var logged map[int64]bool
	size := f.pages.size.Load()
	buffer := libc.Xmalloc(c.tls, types.Size_t(size))
	defer libc.Xfree(c.tls, buffer)
	for number := int64(1); number <= last && ctx.Err() == nil; number++ {
		offset := (number - 1) * size
		if offset == pendingByte { // SQLite never uses the page with its locks
			continue
		}
		for try := 1; ; try++ {
			rc := f.engine.read(c.tls, p, buffer, int32(size), offset)
			if rc == lib.SQLITE_IOERR_SHORT_READ {
				return compared, nil // the end
			}
			if rc != lib.SQLITE_OK {
				return compared, c.fail(rc)
			}
			if pageHolds(memory(buffer, size), number) {
				break
			}
			if try == readTries {
				if logged == nil {
					scan, err := ScanLog(f.path)
					if err != nil {
						return compared, err
					}
					logged = scan.pages
				}
				if logged[number] {
					break
				}
				damaged(&PageError{Path: f.path, Page: number})
				return compared, &PageError{Path: f.path, Page: number}
			}
			time.Sleep(10 * time.Millisecond)
		}
		compared++
	}
	return compared, ctx.Err()
}

// pageCount returns how many pages the database has in the running transaction.
func (c *Conn) pageCount() (n int64, err error) {
	s, err := c.Prepare("PRAGMA page_count")
	if err != nil {
		return 0, err
	}
	s.Begin()
	if _, err = s.Step(); err == nil {
		n = s.Int(0)
	}
	s.Reset()
	return n, err
}
