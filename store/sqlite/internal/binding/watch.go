package binding

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// Kind says which of the files of a database a file is.
type Kind int32

// The files of a database.
const (
	Database = Kind(lib.SQLITE_OPEN_MAIN_DB)
	Journal  = Kind(lib.SQLITE_OPEN_MAIN_JOURNAL) // while a database is created
	Log      = Kind(lib.SQLITE_OPEN_WAL)
)

// suffix follows the name of the database in the name of the file.
func (k Kind) suffix() string {
	switch k {
	case Log:
		return "-wal"
	case Journal:
		return "-journal"
	}
	return ""
}

// Op is an operation on a file.
type Op int

// The operations that are watched.
const (
	Read Op = iota
	Write
	Truncate
	Sync
	Map // a read through a mapping
)

// String returns the name of the operation for messages.
func (op Op) String() string { return [...]string{"read", "write", "truncate", "sync", "read"}[op] }

// code returns the result code of a failed operation.
func (op Op) code() int32 {
	return [...]int32{lib.SQLITE_IOERR_READ, lib.SQLITE_IOERR_WRITE, lib.SQLITE_IOERR_TRUNCATE, lib.SQLITE_IOERR_FSYNC, lib.SQLITE_IOERR_READ}[op]
}

// IOError is a failed operation on a file of a database.
type IOError struct {
	Op     Op
	Kind   Kind
	Path   string
	Offset int64
	Errno  syscall.Errno // 0 when it is not known
}

// Error names the file and the system's error.
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

// A Watch observes failed operations on the files of one database, on all connections.
type Watch struct {
	// Failed is called when an operation has failed, on the same goroutine and before SQLite returns. It is not called when
	// there is no space, which is no failure of the disk.
	Failed func(*IOError)

	intercept atomic.Pointer[Intercept]
	failed    atomic.Bool
}

// An Intercept may return an error number, which makes an operation fail before it reaches the disk.
type Intercept func(op Op, kind Kind, offset int64) syscall.Errno

// SetIntercept calls f before all operations. It is for tests of a failing disk.
func (w *Watch) SetIntercept(f Intercept) { w.intercept.Store(&f) }

// Stop makes all later operations fail that would change a file. After a failed write or sync the content of the disk is
// unknown, and a checkpoint at exit could make the damage worse.
func (w *Watch) Stop() { w.failed.Store(true) }

// report reports a failure, and stops all changes after a failed one.
func (w *Watch) report(err *IOError) {
	if err.Op != Read {
		w.Stop()
	}
	if w.Failed != nil {
		w.Failed(err)
	}
}

// noRoom reports whether an error number says that there is no space for a write.
func noRoom(errno syscall.Errno) bool {
	return errors.Is(errno, syscall.ENOSPC) || errors.Is(errno, syscall.EDQUOT)
}

var watches sync.Map // path of a database, as SQLite writes it → *Watch

// Add makes w watch the database at path, in all files that are opened later. Call remove when all of them are closed.
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

// watched returns the watch of a file's database, or nil.
func watched(path string, kind Kind) *Watch {
	suffix := kind.suffix()
	if len(path) <= len(suffix) {
		return nil
	}
	w, _ := watches.Load(path[:len(path)-len(suffix)])
	found, _ := w.(*Watch)
	return found
}

// fullPath returns a path in the form in which SQLite opens it.
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

// Tally receives the values of the SQL function kontor_tally(value). A method returns false to end the statement, which then fails.
type Tally interface {
	// AddText receives a text in memory of SQLite, which is valid only during the call.
	AddText(text []byte) bool
	// Add receives an int64, or nil for NULL.
	Add(value any) bool
}

const tallyName = "kontor_tally"

// SetTally makes the aggregate function kontor_tally of later statements pass its values to t: that takes a third of the time of reading
// them as rows. nil removes it; statements with the function fail then. Only numbers without a fraction, texts and NULL are passed.
func (c *Conn) SetTally(t Tally) error {
	if c.tally = t; t == nil || c.tallies {
		return nil
	}
	name, err := libc.CString(tallyName)
	if err != nil {
		return err
	}
	defer libc.Xfree(c.tls, name)
	const flags = lib.SQLITE_UTF8 | lib.SQLITE_DIRECTONLY
	if rc := lib.Xsqlite3_create_function_v2(c.tls, c.db, name, 1, flags, c.id, 0, funcPointer(tallyStep), funcPointer(tallyFinal), 0); rc != lib.SQLITE_OK {
		return fmt.Errorf("define %s: %w", tallyName, c.fail(rc))
	}
	c.tallies = true
	return nil
}

// tallyStep is SQLite's callback for one row. args has the address of the value.
func tallyStep(tls *libc.TLS, call uintptr, _ int32, args uintptr) {
	v, ok := conns.Load(lib.Xsqlite3_user_data(tls, call))
	if !ok || v.(*Conn).tally == nil {
		lib.Xsqlite3_result_error_code(tls, call, lib.SQLITE_MISUSE)
		return
	}
	t := v.(*Conn).tally
	value := *(*uintptr)(at(args))
	more := false
	switch lib.Xsqlite3_value_type(tls, value) {
	case lib.SQLITE_INTEGER:
		more = t.Add(lib.Xsqlite3_value_int64(tls, value))
	case lib.SQLITE_TEXT:
		text := lib.Xsqlite3_value_text(tls, value)
		more = t.AddText(unsafe.Slice((*byte)(at(text)), int(lib.Xsqlite3_value_bytes(tls, value))))
	case lib.SQLITE_NULL:
		more = t.Add(nil)
	}
	if !more {
		lib.Xsqlite3_result_error_code(tls, call, lib.SQLITE_ABORT)
	}
}

// tallyFinal is SQLite's callback for the result, which is NULL.
func tallyFinal(*libc.TLS, uintptr) {}
