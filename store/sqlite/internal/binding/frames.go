package binding

import (
	"encoding/binary"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cespare/xxhash/v2"
	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// The log has a header and then frames; each frame has a header and a page. SQLite computes a checksum for each frame but
// compares it only after a crash. The format is in https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
const (
	logHeaderBytes   = 32
	frameHeaderBytes = 24
)

// frames holds the hash of each page in a log that this process has written or compared. All connections share it. A frame
// without a hash, or that another process may have rewritten, is compared with SQLite's checksum in its header. While a
// transaction rewrites its own frames, only the hash is correct.
type frames struct {
	path string

	tracked atomic.Bool // changed is collected, see Changes

	mu      sync.Mutex
	sums    []uint64 // by frame; 0 when it is not known
	changed map[int64]struct{}
}

var framesOf registry[frames]

func openFrames(path string) *frames { return framesOf.open(path, &frames{path: path}) }

func (l *frames) close() { framesOf.close(l.path) }

func (l *frames) sum(i int64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i < int64(len(l.sums)) {
		return l.sums[i]
	}
	return 0
}

func (l *frames) remember(i int64, sum uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i >= int64(len(l.sums)) {
		if sum == 0 {
			return
		}
		l.sums = append(l.sums, make([]uint64, i+1-int64(len(l.sums)))...)
	}
	l.sums[i] = sum
}

// index returns the frame whose page was read or written at an offset. ok is false unless it was one whole page.
func index(size int64, n int32, offset int64) (i int64, ok bool) {
	at := offset - logHeaderBytes
	if size == 0 || int64(n) != size || at < 0 || at%(size+frameHeaderBytes) != frameHeaderBytes {
		return 0, false
	}
	return at / (size + frameHeaderBytes), true
}

// afterWrite remembers the hash of a page that was written, and forgets those of pages that were written in part.
func (l *frames) afterWrite(size int64, buffer uintptr, n int32, offset int64) {
	if i, ok := index(size, n, offset); ok {
		l.remember(i, xxhash.Sum64(memory(buffer, int64(n))))
		return
	}
	if size == 0 || offset < logHeaderBytes {
		return
	}
	for i := (offset - logHeaderBytes) / (size + frameHeaderBytes); i <= (offset+int64(n)-1-logHeaderBytes)/(size+frameHeaderBytes); i++ {
		if inPage := offset+int64(n) > logHeaderBytes+i*(size+frameHeaderBytes)+frameHeaderBytes; inPage {
			l.remember(i, 0)
		}
	}
}

// frameHolds compares the page of a frame that was read.
func (f *file) frameHolds(tls *libc.TLS, p, buffer uintptr, n int32, offset int64) int32 {
	size := f.frameSize(tls, p)
	i, ok := index(size, n, offset)
	if !ok {
		return lib.SQLITE_OK
	}
	page := memory(buffer, int64(n))
	sum := xxhash.Sum64(page)
	if f.frames.sum(i) == sum {
		return lib.SQLITE_OK
	}
	holds, rc := f.matchesHeader(tls, p, page, i, offset)
	if rc != lib.SQLITE_OK {
		return rc
	}
	if !holds {
		return damaged(&PageError{Path: f.path, Page: i + 1, Log: true})
	}
	f.frames.remember(i, sum)
	return lib.SQLITE_OK
}

// frameSize returns the size of the pages in a log, from its header, or 0.
func (f *file) frameSize(tls *libc.TLS, p uintptr) int64 {
	if f.logPage != 0 {
		return f.logPage
	}
	var header [logHeaderBytes]byte
	if f.readAt(tls, p, header[:], 0) != lib.SQLITE_OK {
		return 0
	}
	size := int64(binary.BigEndian.Uint32(header[8:]))
	if size < 512 || size > 1<<16 || size&(size-1) != 0 {
		return 0
	}
	f.logPage = size
	return size
}

// matchesHeader compares a page with the checksum in the header of its frame. That checksum continues the one of the frame
// before.
func (f *file) matchesHeader(tls *libc.TLS, p uintptr, page []byte, i, offset int64) (bool, int32) {
	var start [logHeaderBytes]byte
	if rc := f.readAt(tls, p, start[:], 0); rc != lib.SQLITE_OK {
		return false, rc
	}
	sum := newChecksum(binary.BigEndian.Uint32(start[:]))
	before := start[24:32]
	if i > 0 {
		var header [frameHeaderBytes]byte
		if rc := f.readAt(tls, p, header[:], offset-int64(len(page))-2*frameHeaderBytes); rc != lib.SQLITE_OK {
			return false, rc
		}
		before = header[16:24]
	}
	var header [frameHeaderBytes]byte
	if rc := f.readAt(tls, p, header[:], offset-frameHeaderBytes); rc != lib.SQLITE_OK {
		return false, rc
	}
	sum.set(before)
	sum.add(header[:8])
	sum.add(page)
	return sum.equals(header[16:]), lib.SQLITE_OK
}

// readAt reads with SQLite's own method.
func (f *file) readAt(tls *libc.TLS, p uintptr, to []byte, offset int64) int32 {
	buffer := tls.Alloc(len(to))
	defer tls.Free(len(to))
	rc := f.engine.read(tls, p, buffer, int32(len(to)), offset)
	copy(to, memory(buffer, int64(len(to))))
	return rc
}

// Changes collects the numbers of the pages that are written to a log.
type Changes struct{ frames *frames }

// TrackChanges begins to collect the pages that any connection of this process writes to the log of a database. The caller
// must have a connection to the database, and call Close. There is one collection for each database at a time.
func TrackChanges(path string) (*Changes, error) {
	full, err := fullPath(path)
	if err != nil {
		return nil, err
	}
	l := openFrames(full + Log.suffix())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed = map[int64]struct{}{}
	l.tracked.Store(true)
	return &Changes{frames: l}, nil
}

// Take returns the numbers of the pages that were written since the last call, in order. Call it between two transactions.
func (c *Changes) Take() []int64 {
	c.frames.mu.Lock()
	defer c.frames.mu.Unlock()
	taken := slices.Sorted(maps.Keys(c.frames.changed))
	clear(c.frames.changed)
	return taken
}

// Any reports whether Take would return something.
func (c *Changes) Any() bool {
	c.frames.mu.Lock()
	defer c.frames.mu.Unlock()
	return len(c.frames.changed) > 0
}

// Close ends the collection.
func (c *Changes) Close() {
	c.frames.tracked.Store(false)
	c.frames.mu.Lock()
	c.frames.changed = nil
	c.frames.mu.Unlock()
	c.frames.close()
}

// noteChange collects the page of a frame whose header is written.
func (l *frames) noteChange(size int64, buffer uintptr, n int32, offset int64) {
	if !l.tracked.Load() || n != frameHeaderBytes || size == 0 || (offset-logHeaderBytes)%(size+frameHeaderBytes) != 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed != nil {
		l.changed[int64(binary.BigEndian.Uint32(memory(buffer, int64(n))))] = struct{}{}
	}
}

// A RowChange is a row that a statement is about to insert, update or delete. It is valid only during the call that receives it.
type RowChange struct {
	// Table is the name of the table. Its memory belongs to SQLite: copy what is kept.
	Table string
	// Inserts and Deletes say what happens; neither is set for an update.
	Inserts, Deletes bool
	// OldRow and NewRow are the row's number before and after. Only an update of an integer primary key changes it.
	OldRow, NewRow int64

	c *Conn
}

// Opaque stands for bytes, which a RowChange does not return.
type Opaque struct{}

// OnRowChange calls f, on the goroutine of the statement, before each change of a row by this connection: by statements, by foreign
// keys and by triggers. It is also called for changes that are undone later. Virtual tables and WITHOUT ROWID tables are left out.
// Call it before statements are compiled, and only once.
func (c *Conn) OnRowChange(f func(*RowChange)) {
	c.rowChanged, c.changing.c = f, c
	c.changed = libc.Xmalloc(c.tls, types.Size_t(unsafe.Sizeof(uintptr(0))))
	if c.changed == 0 {
		panic("out of memory")
	}
	lib.Xsqlite3_preupdate_hook(c.tls, c.db, funcPointer(preUpdate), c.id)
}

// preUpdate is SQLite's callback.
func preUpdate(tls *libc.TLS, id, _ uintptr, op int32, _, table uintptr, oldRow, newRow int64) {
	v, ok := conns.Load(id)
	if !ok {
		return
	}
	c := v.(*Conn)
	n := 0
	for *(*byte)(at(table + uintptr(n))) != 0 {
		n++
	}
	r := &c.changing
	r.Table = unsafe.String((*byte)(at(table)), n)
	r.Inserts, r.Deletes = op == lib.SQLITE_INSERT, op == lib.SQLITE_DELETE
	r.OldRow, r.NewRow = oldRow, newRow
	c.rowChanged(r)
	r.Table = ""
}

// Old returns a column of the row before the change: nil, int64, float64, string or [Opaque]. Columns are counted from 0, as the
// table declares them. There is no row before an insertion.
func (r *RowChange) Old(column int) any {
	if lib.Xsqlite3_preupdate_old(r.c.tls, r.c.db, int32(column), r.c.changed) != lib.SQLITE_OK {
		return Opaque{}
	}
	return r.value()
}

// New returns a column of the row after the change. There is no row after a deletion.
func (r *RowChange) New(column int) any {
	if lib.Xsqlite3_preupdate_new(r.c.tls, r.c.db, int32(column), r.c.changed) != lib.SQLITE_OK {
		return Opaque{}
	}
	return r.value()
}

func (r *RowChange) value() any {
	tls, p := r.c.tls, *(*uintptr)(at(r.c.changed))
	switch lib.Xsqlite3_value_type(tls, p) {
	case lib.SQLITE_INTEGER:
		return lib.Xsqlite3_value_int64(tls, p)
	case lib.SQLITE_FLOAT:
		return lib.Xsqlite3_value_double(tls, p)
	case lib.SQLITE_TEXT:
		text := lib.Xsqlite3_value_text(tls, p)
		return string(unsafe.Slice((*byte)(at(text)), int(lib.Xsqlite3_value_bytes(tls, p))))
	case lib.SQLITE_NULL:
		return nil
	}
	return Opaque{}
}
