package binding

import (
	"syscall"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

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
