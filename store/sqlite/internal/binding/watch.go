package binding

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// Kind is which of the files of a database a file is.
type Kind int32

// The files of a database.
const (
	Database = Kind(lib.SQLITE_OPEN_MAIN_DB)
	Journal  = Kind(lib.SQLITE_OPEN_MAIN_JOURNAL) // while a database is made
	Log      = Kind(lib.SQLITE_OPEN_WAL)
)

// suffix is what is appended to the name of the database.
func (k Kind) suffix() string {
	switch k {
	case Log:
		return "-wal"
	case Journal:
		return "-journal"
	}
	return ""
}

// Op is what was done with a file.
type Op int

// The operations that are watched.
const (
	Read Op = iota
	Write
	Truncate
	Sync
	Map // a read through a mapping
)

// String names the operation as it stands in a message.
func (op Op) String() string { return [...]string{"read", "write", "truncate", "sync", "read"}[op] }

// code is what the engine is told of a failure.
func (op Op) code() int32 {
	return [...]int32{lib.SQLITE_IOERR_READ, lib.SQLITE_IOERR_WRITE, lib.SQLITE_IOERR_TRUNCATE, lib.SQLITE_IOERR_FSYNC, lib.SQLITE_IOERR_READ}[op]
}

// IOError is a failed operation on a file of a database.
type IOError struct {
	Op     Op
	Kind   Kind
	Path   string
	Offset int64
	Errno  syscall.Errno // 0 when the system did not say
}

// Error names the file and what the system said.
func (e *IOError) Error() string {
	if e.Errno == 0 {
		return fmt.Sprintf("%s %s: the system reports an error", e.Op, e.Path)
	}
	return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Errno)
}

// Unwrap returns the error number.
func (e *IOError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// A Watch sees what fails on the files of one database, whichever connection is at it.
type Watch struct {
	// Failed is called when an operation failed, on the goroutine that was at it and before the engine
	// hears of it. It is not called when there is no room, which is no failure of the disk.
	Failed func(*IOError)

	intercept atomic.Pointer[Intercept]
	failed    atomic.Bool
}

// An Intercept may make an operation fail, with the error number that it returns, before it reaches the disk.
type Intercept func(op Op, kind Kind, offset int64) syscall.Errno

// SetIntercept puts f before all operations. It is for tests of what happens when a disk fails.
func (w *Watch) SetIntercept(f Intercept) { w.intercept.Store(&f) }

// Stop makes everything fail from now on that would change a file: after a write or a sync that failed nobody knows what
// the disk has, and a checkpoint on the way out could make that worse.
func (w *Watch) Stop() { w.failed.Store(true) }

// report stops what follows a failed change, and tells of the failure.
func (w *Watch) report(err *IOError) {
	if err.Op != Read {
		w.Stop()
	}
	if w.Failed != nil {
		w.Failed(err)
	}
}

// noRoom reports whether an error number says that a write has no room.
func noRoom(errno syscall.Errno) bool {
	return errors.Is(errno, syscall.ENOSPC) || errors.Is(errno, syscall.EDQUOT)
}

var watches sync.Map // path of a database, as the engine writes it → *Watch

// Add makes w watch the database at path, in files that are opened from now on. Call remove when all of them are closed.
func (w *Watch) Add(path string) (remove func(), err error) {
	full, err := fullPath(path)
	if err != nil {
		return nil, err
	}
	if _, taken := watches.LoadOrStore(full, w); taken {
		return nil, fmt.Errorf("%s is watched already", path)
	}
	return func() { watches.CompareAndDelete(full, w) }, nil
}

// watched returns the watch of a file's database.
func watched(path string, kind Kind) *Watch {
	suffix := kind.suffix()
	if len(path) <= len(suffix) {
		return nil
	}
	w, _ := watches.Load(path[:len(path)-len(suffix)])
	found, _ := w.(*Watch)
	return found
}

// fullPath returns a path in the form in which the engine opens it.
func fullPath(path string) (string, error) {
	if err := Register(); err != nil {
		return "", err
	}
	tls := libc.NewTLS()
	defer tls.Close()
	name, err := libc.CString(path)
	if err != nil {
		return "", err
	}
	defer libc.Xfree(tls, name)
	vfs := (*lib.Tsqlite3_vfs)(at(layer.below))
	room := vfs.FmxPathname + 1
	full := libc.Xmalloc(tls, types.Size_t(room))
	if full == 0 {
		return "", errors.New("out of memory")
	}
	defer libc.Xfree(tls, full)
	write := function[func(*libc.TLS, uintptr, uintptr, int32, uintptr) int32](vfs.FxFullPathname)
	if rc := write(tls, layer.below, name, room, full); rc&0xff != lib.SQLITE_OK {
		return "", fmt.Errorf("%s has no full path: result code %d", path, rc)
	}
	return libc.GoString(full), nil
}
