package binding

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// VFS is the name of the file layer that all connections use. It is SQLite's own layer with some methods replaced, see
// [shim].
const VFS = "kontor"

// A shim between SQLite and its own file layer observes which writes and syncs fail, and why. SQLite itself reports a failure
// only to the current statement, and a failed checkpoint during the close of a connection not at all.
//
// The shim does not wrap files. SQLite's layer opens a file; then the pointer to the file's table of methods is replaced by
// one to a copy of that table, in which some methods are ours. SQLite calls all other methods directly. The
// shim's own state of a file follows SQLite's part of the file structure, at stateOffset.
type shim struct {
	vfs         uintptr // ours, in C memory
	below       uintptr // SQLite's
	belowOpen   func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	stateOffset uintptr

	mu     sync.Mutex
	tables map[uintptr]*methods // by SQLite's table
}

// layer is the shim of the process, because SQLite's registry of layers is one for the process.
var layer = shim{tables: map[uintptr]*methods{}}

var registration struct {
	once sync.Once
	err  error
}

// Register registers the file layer with SQLite. [Open] calls it.
func Register() error {
	registration.once.Do(func() { registration.err = layer.register() })
	return registration.err
}

// register registers the shim under its name, as a copy of the default layer.
func (s *shim) register() error {
	tls := libc.NewTLS()
	defer tls.Close()
	s.below = lib.Xsqlite3_vfs_find(tls, 0)
	if s.below == 0 {
		return errors.New("SQLite has no file layer")
	}
	engine := (*lib.Tsqlite3_vfs)(at(s.below))
	s.belowOpen = function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](engine.FxOpen)
	const word = unsafe.Sizeof(uintptr(0))
	s.stateOffset = (uintptr(engine.FszOsFile) + word - 1) &^ (word - 1)

	name, err := libc.CString(VFS)
	if err != nil {
		return err
	}
	s.vfs = libc.Xmalloc(tls, types.Size_t(unsafe.Sizeof(lib.Tsqlite3_vfs{}))) // never freed, like the name
	if s.vfs == 0 {
		return errors.New("out of memory")
	}
	ours := (*lib.Tsqlite3_vfs)(at(s.vfs))
	*ours = *engine
	ours.FpNext, ours.FzName = 0, name
	ours.FszOsFile = int32(s.stateOffset + word)
	ours.FxOpen = funcPointer(openFile)
	if rc := lib.Xsqlite3_vfs_register(tls, s.vfs, 0); rc != lib.SQLITE_OK {
		return fmt.Errorf("register the file layer: result code %d", rc)
	}
	return nil
}

// function returns the Go function behind a function pointer of translated C code.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// A file is the shim's state of an open file of a database.
type file struct {
	path   string
	kind   Kind
	watch  *Watch   // nil when the database is not watched
	engine *methods // SQLite's
	unread *IOError // of the last read that failed
	pin    runtime.Pinner

	pages   *pages  // of the database file
	frames  *frames // of the log
	logPage int64   // size of the pages in the log, once it is known
}

// state returns the shim's part of an open file.
func state(p uintptr) *file {
	return *(**file)(at(p + layer.stateOffset))
}

// openFile is xOpen. The files of a database get our methods; temporary files keep SQLite's.
func openFile(tls *libc.TLS, _, name, p uintptr, flags int32, outFlags uintptr) int32 {
	s := &layer
	*(*uintptr)(at(p + s.stateOffset)) = 0
	rc := s.belowOpen(tls, s.below, name, p, flags, outFlags)
	kind := Kind(flags & (lib.SQLITE_OPEN_MAIN_DB | lib.SQLITE_OPEN_MAIN_JOURNAL | lib.SQLITE_OPEN_WAL))
	table := (*lib.Tsqlite3_file)(at(p))
	if rc != lib.SQLITE_OK || kind == 0 || name == 0 || table.FpMethods == 0 {
		return rc
	}
	f := &file{path: libc.GoString(name), kind: kind, engine: s.methods(tls, table.FpMethods)}
	f.watch = watched(f.path, kind)
	switch kind {
	case Database:
		f.pages = openPages(f.path)
	case Log:
		f.frames = openFrames(f.path)
	}
	// C memory holds the address, which the garbage collector does not see. The pin keeps the state alive and in place.
	f.pin.Pin(f)
	*(**file)(at(p + s.stateOffset)) = f
	table.FpMethods = f.engine.ours
	return rc
}

// methods holds the methods of SQLite that ours call, and a table with ours in their place. There is one for each table of
// SQLite; it is never freed.
type methods struct {
	ours uintptr // in C memory

	close    func(tls *libc.TLS, p uintptr) int32
	read     func(tls *libc.TLS, p, buffer uintptr, n int32, offset int64) int32
	write    func(tls *libc.TLS, p, buffer uintptr, n int32, offset int64) int32
	truncate func(tls *libc.TLS, p uintptr, size int64) int32
	sync     func(tls *libc.TLS, p uintptr, flags int32) int32
	control  func(tls *libc.TLS, p uintptr, op int32, argument uintptr) int32
	traits   func(tls *libc.TLS, p uintptr) int32
	fetch    func(tls *libc.TLS, p uintptr, offset int64, n int32, result uintptr) int32
	unfetch  func(tls *libc.TLS, p uintptr, offset int64, page uintptr) int32
}

// methods returns the methods for files that have a table of SQLite. All replacements are made here.
func (s *shim) methods(tls *libc.TLS, engine uintptr) *methods {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.tables[engine]; ok {
		return m
	}
	of := (*lib.Tsqlite3_io_methods)(at(engine))
	m := &methods{
		close:    function[func(*libc.TLS, uintptr) int32](of.FxClose),
		read:     function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](of.FxRead),
		write:    function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](of.FxWrite),
		truncate: function[func(*libc.TLS, uintptr, int64) int32](of.FxTruncate),
		sync:     function[func(*libc.TLS, uintptr, int32) int32](of.FxSync),
		control:  function[func(*libc.TLS, uintptr, int32, uintptr) int32](of.FxFileControl),
	}
	m.traits = function[func(*libc.TLS, uintptr) int32](of.FxDeviceCharacteristics)
	if of.FiVersion >= 3 {
		m.fetch = function[func(*libc.TLS, uintptr, int64, int32, uintptr) int32](of.FxFetch)
		m.unfetch = function[func(*libc.TLS, uintptr, int64, uintptr) int32](of.FxUnfetch)
	}
	m.ours = libc.Xmalloc(tls, types.Size_t(unsafe.Sizeof(*of)))
	if m.ours == 0 {
		panic("out of memory")
	}
	ours := (*lib.Tsqlite3_io_methods)(at(m.ours))
	*ours = *of
	ours.FxClose = funcPointer(closeFile)
	ours.FxRead = funcPointer(readFile)
	ours.FxWrite = funcPointer(writeFile)
	ours.FxTruncate = funcPointer(truncateFile)
	ours.FxSync = funcPointer(syncFile)
	ours.FxDeviceCharacteristics = funcPointer(fileTraits)
	if of.FiVersion >= 3 {
		ours.FxFetch = funcPointer(fetchPage)
	}
	s.tables[engine] = m
	return m
}

func closeFile(tls *libc.TLS, p uintptr) int32 {
	f := state(p)
	rc := f.engine.close(tls, p)
	if f.pages != nil {
		f.pages.close()
	}
	if f.frames != nil {
		f.frames.close()
	}
	f.pin.Unpin()
	return rc
}

func readFile(tls *libc.TLS, p, buffer uintptr, n int32, offset int64) int32 {
	f := state(p)
	if rc := f.before(Read, offset); rc != lib.SQLITE_OK {
		return rc
	}
	rc := f.after(tls, p, Read, offset, f.engine.read(tls, p, buffer, n, offset))
	switch {
	case rc != lib.SQLITE_OK:
		return rc
	case f.pages != nil:
		return f.pages.afterRead(buffer, n, offset)
	case f.frames != nil:
		return f.frameHolds(tls, p, buffer, n, offset)
	}
	return rc
}

func writeFile(tls *libc.TLS, p, buffer uintptr, n int32, offset int64) int32 {
	f := state(p)
	if rc := f.before(Write, offset); rc != lib.SQLITE_OK {
		return rc
	}
	if f.pages != nil {
		f.pages.beforeWrite(buffer, n, offset)
	}
	rc := f.after(tls, p, Write, offset, f.engine.write(tls, p, buffer, n, offset))
	if f.frames != nil {
		size := f.frameSize(tls, p)
		f.frames.afterWrite(size, buffer, n, offset)
		f.frames.noteChange(size, buffer, n, offset)
	}
	return rc
}

func truncateFile(tls *libc.TLS, p uintptr, size int64) int32 {
	f := state(p)
	if rc := f.before(Truncate, size); rc != lib.SQLITE_OK {
		return rc
	}
	if f.pages != nil {
		f.pages.forgetAll()
	}
	return f.after(tls, p, Truncate, size, f.engine.truncate(tls, p, size))
}

func syncFile(tls *libc.TLS, p uintptr, flags int32) int32 {
	f := state(p)
	if rc := f.before(Sync, 0); rc != lib.SQLITE_OK {
		return rc
	}
	return f.after(tls, p, Sync, 0, f.engine.sync(tls, p, flags))
}

// before returns the result code of an operation that must not reach the disk, or SQLITE_OK.
func (f *file) before(op Op, offset int64) int32 {
	w := f.watch
	if w == nil {
		return lib.SQLITE_OK
	}
	if op != Read && w.failed.Load() {
		return op.code()
	}
	if intercept := w.intercept.Load(); intercept != nil {
		if errno := (*intercept)(op, f.kind, offset); errno != 0 {
			return f.report(op, offset, errno)
		}
	}
	return lib.SQLITE_OK
}

// after reports a failed operation and returns the result code for SQLite.
func (f *file) after(tls *libc.TLS, p uintptr, op Op, offset int64, rc int32) int32 {
	if rc == lib.SQLITE_OK || rc == lib.SQLITE_IOERR_SHORT_READ || rc == lib.SQLITE_FULL {
		return rc
	}
	var errno int32
	argument := tls.Alloc(8)
	defer tls.Free(8)
	*(*int32)(at(argument)) = 0
	if f.engine.control(tls, p, lib.SQLITE_FCNTL_LAST_ERRNO, argument) == lib.SQLITE_OK {
		errno = *(*int32)(at(argument))
	}
	return f.report(op, offset, syscall.Errno(errno))
}

// report reports a failure to the watch and returns the result code for SQLite. A write without space is no failure of the
// disk: nothing was written, and the old content stays.
func (f *file) report(op Op, offset int64, errno syscall.Errno) int32 {
	if op == Write && noRoom(errno) {
		return lib.SQLITE_FULL
	}
	err := &IOError{Op: op, Kind: f.kind, Path: f.path, Offset: offset, Errno: errno}
	if op == Read {
		f.unread = err
	}
	if f.watch != nil {
		f.watch.report(err)
	}
	return op.code()
}

// beforeWrite clears the unused bytes of a page that is about to be written, and writes its checksum.
func (p *pages) beforeWrite(buffer uintptr, n int32, offset int64) {
	if offset == 0 {
		p.learn(memory(buffer, int64(n)))
	}
	if number, ok := p.number(n, offset); ok {
		page := memory(buffer, int64(n))
		p.scrub(page, number)
		sealPage(page, number)
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

// fetchPage is xFetch: it returns a page in the mapping of the file, or none.
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

// fileTraits is xDeviceCharacteristics. Without SUBPAGE_READ, SQLite always reads whole pages, which can be compared.
// Otherwise it reads the pages of long values in part.
func fileTraits(tls *libc.TLS, p uintptr) int32 {
	f := state(p)
	traits := f.engine.traits(tls, p)
	if f.pages != nil && f.pages.size.Load() != 0 {
		traits &^= lib.SQLITE_IOCAP_SUBPAGE_READ
	}
	return traits
}

// AsWritten changes a page that was read in a transaction into what the file layer would write to the database file: a page
// that is still in the log has neither its checksum nor cleared unused bytes.
func (c *Conn) AsWritten(page []byte, number int64) {
	shared := c.pages()
	if shared == nil || shared.size.Load() != int64(len(page)) || (number-1)*int64(len(page)) == pendingByte {
		return
	}
	shared.scrub(page, number)
	sealPage(page, number)
}

// HasChecksums reports whether the pages of the database have checksums. The connection must have read something before.
func (c *Conn) HasChecksums() bool {
	shared := c.pages()
	return shared != nil && shared.size.Load() != 0
}

// pages returns the shared state of the database file, or nil.
func (c *Conn) pages() *pages {
	if f, _ := c.file(); f != nil {
		return f.pages
	}
	return nil
}
