// Package binding is a thin statement-level binding of the SQLite that is compiled into modernc.org/sqlite.
//
// It exists because the driver's database/sql interface costs more than the queries that it runs: each run reads the name
// and the declared type of each column into new strings, allocates each text argument twice and boxes every value. Here a
// statement is compiled once, its text arguments are copied into a buffer that it keeps, and columns are read one at a time
// into the type that the caller asks for.
//
// A connection and its statements must not be used by two goroutines at once: connections are opened without SQLite's own
// mutexes.
package binding

import (
	"fmt"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Mode says how a database file is opened.
type Mode int32

const (
	// ReadWrite opens an existing file for reading and writing.
	ReadWrite = Mode(lib.SQLITE_OPEN_READWRITE)
	// ReadOnly opens an existing file for reading.
	ReadOnly = Mode(lib.SQLITE_OPEN_READONLY)
	// Immutable opens a file that no process can change, on a read-only file system for example. It needs no log.
	Immutable = Mode(lib.SQLITE_OPEN_READONLY | lib.SQLITE_OPEN_URI)
)

// progressSteps is how many virtual machine instructions run between two checks of the context: about a tenth of a
// millisecond, so that a cancelled query ends at once and an ordinary one never checks.
const progressSteps = 4096

// maxStatements bounds the compiled statements that a connection keeps. Filters and sort orders produce many texts; each
// compiled statement takes a few kilobytes.
const maxStatements = 400

// Conn is one connection.
type Conn struct {
	tls   *libc.TLS
	db    uintptr
	id    uintptr
	ctx   ender // of the statement that is running, or nil
	stmts map[string]*Stmt
	clock uint64 // counts uses, to find the least recently used statements

	running []*Stmt // between Begin and Reset
	frames  int     // in the log after the last commit

	rowChanged func(*RowChange) // see OnRowChange
	changing   RowChange
	changed    uintptr // C memory in which SQLite returns a column of the row that is being changed

	tally   Tally // see SetTally
	tallies bool  // the function is defined
}

var (
	conns  sync.Map // id → *Conn, for the progress callback
	lastID atomic.Uintptr
)

// Open opens the database file at path, which must exist.
func Open(path string, mode Mode) (*Conn, error) {
	if err := Register(); err != nil {
		return nil, err
	}
	c := &Conn{tls: libc.NewTLS(), id: lastID.Add(1), stmts: make(map[string]*Stmt)}
	filename := path
	if mode == Immutable {
		filename = "file:" + (&url.URL{Path: path}).EscapedPath() + "?immutable=1"
	}
	name, err := libc.CString(filename)
	if err != nil {
		c.tls.Close()
		return nil, err
	}
	defer libc.Xfree(c.tls, name)
	handle := libc.Xmalloc(c.tls, 8)
	defer libc.Xfree(c.tls, handle)

	rc := lib.Xsqlite3_open_v2(c.tls, name, handle, int32(mode)|lib.SQLITE_OPEN_NOMUTEX, (*lib.Tsqlite3_vfs)(at(layer.vfs)).FzName)
	c.db = *(*uintptr)(at(handle))
	if rc != lib.SQLITE_OK {
		err := c.fail(rc)
		c.Close()
		return nil, err
	}
	if mode == ReadWrite {
		c.reserveChecksums()
	}
	lib.Xsqlite3_extended_result_codes(c.tls, c.db, 1)
	conns.Store(c.id, c)
	lib.Xsqlite3_progress_handler(c.tls, c.db, progressSteps, funcPointer(progress), c.id)
	if mode == ReadWrite {
		lib.Xsqlite3_wal_hook(c.tls, c.db, funcPointer(committed), c.id)
	}
	return c, nil
}

// funcPointer returns the function pointer of a top-level Go function, as translated C code holds callbacks.
func funcPointer[F any](f F) uintptr {
	return *(*uintptr)(unsafe.Pointer(&struct{ f F }{f}))
}

// at converts an address in C memory to a pointer. Go neither moves nor collects that memory, so the rules about such
// conversions do not apply.
func at(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// progress stops the running statement when its context has ended.
func progress(_ *libc.TLS, id uintptr) int32 {
	v, ok := conns.Load(id)
	if !ok {
		return 0
	}
	if c := v.(*Conn); c.ctx != nil && c.ctx.Err() != nil {
		return 1
	}
	return 0
}

// ResetAll ends the statements that were left running.
func (c *Conn) ResetAll() {
	for len(c.running) > 0 {
		c.running[len(c.running)-1].Reset()
	}
}

// ender is the part of a context that a running statement needs: Err returns why it must stop, or nil. Done is not used,
// because some contexts start a timer for it.
type ender interface{ Err() error }

// SetContext makes later statements end with the context's error once it has ended. nil removes the context.
func (c *Conn) SetContext(ctx ender) { c.ctx = ctx }

// Close finalizes the statements and closes the connection. A second Close does nothing.
func (c *Conn) Close() error {
	if c.tls == nil {
		return nil
	}
	for _, s := range c.stmts {
		s.finalize()
	}
	c.stmts = nil
	conns.Delete(c.id)
	var err error
	if c.db != 0 {
		if rc := lib.Xsqlite3_close_v2(c.tls, c.db); rc != lib.SQLITE_OK {
			err = c.fail(rc)
		}
		c.db = 0
	}
	if c.changed != 0 {
		libc.Xfree(c.tls, c.changed)
		c.changed = 0
	}
	c.tls.Close()
	c.tls = nil
	return err
}

// Changed returns how many rows the last statement changed.
func (c *Conn) Changed() int64 { return lib.Xsqlite3_changes64(c.tls, c.db) }

// TotalChanged returns how many rows all statements of the connection changed. A failed statement counts none, because it
// was undone.
func (c *Conn) TotalChanged() int64 { return lib.Xsqlite3_total_changes64(c.tls, c.db) }

// InTransaction reports whether a transaction is open. Some failures (a full disk, an I/O error) end it by themselves.
func (c *Conn) InTransaction() bool { return lib.Xsqlite3_get_autocommit(c.tls, c.db) == 0 }

// ReadError returns the last failed read of the database file by this connection, or nil. SQLite's own checks report such a
// page as damaged.
func (c *Conn) ReadError() error {
	if f, _ := c.file(); f != nil && f.unread != nil {
		return f.unread
	}
	return nil
}

// file returns the shim's state of the database file, and SQLite's file. The state is nil for a file without one.
func (c *Conn) file() (f *file, p uintptr) {
	argument := c.tls.Alloc(8)
	defer c.tls.Free(8)
	rc := lib.Xsqlite3_file_control(c.tls, c.db, 0, lib.SQLITE_FCNTL_FILE_POINTER, argument)
	if p = *(*uintptr)(at(argument)); rc != lib.SQLITE_OK || p == 0 {
		return nil, 0
	}
	return state(p), p
}

// BusyTimeout sets for how long a statement waits for a lock of another connection.
func (c *Conn) BusyTimeout(milliseconds int) {
	lib.Xsqlite3_busy_timeout(c.tls, c.db, int32(milliseconds))
}

// Error is a failure that SQLite reported.
type Error struct {
	Code    int           // extended result code
	Errno   syscall.Errno // of a failed operation on a file; 0 otherwise
	Message string
}

// Error returns SQLite's message, and that of the system if there is one.
func (e *Error) Error() string {
	if e.Errno == 0 {
		return e.Message
	}
	return e.Message + ": " + e.Errno.Error()
}

// Primary returns the result code without its extension.
func (e *Error) Primary() int { return e.Code & 0xff }

// fail returns the error of a result code. An interrupted statement fails with its context's error.
func (c *Conn) fail(rc int32) error {
	if rc&0xff == lib.SQLITE_INTERRUPT && c.ctx != nil {
		if err := c.ctx.Err(); err != nil {
			return err
		}
	}
	message := libc.GoString(lib.Xsqlite3_errstr(c.tls, rc))
	if c.db != 0 && lib.Xsqlite3_extended_errcode(c.tls, c.db)&0xff == rc&0xff {
		message = libc.GoString(lib.Xsqlite3_errmsg(c.tls, c.db))
	}
	if found := lastDamage.Load(); rc == lib.SQLITE_IOERR_DATA && found != nil {
		message = found.Error()
	}
	e := &Error{Code: int(rc), Message: message}
	if primary := rc & 0xff; c.db != 0 && rc != lib.SQLITE_IOERR_DATA && (primary == lib.SQLITE_IOERR || primary == lib.SQLITE_CANTOPEN) {
		e.Errno = syscall.Errno(lib.Xsqlite3_system_errno(c.tls, c.db))
	}
	return e
}

// committed records the length of the log after a commit. As the hook it replaces SQLite's own checkpoints.
func committed(_ *libc.TLS, id, _, _ uintptr, frames int32) int32 {
	if v, ok := conns.Load(id); ok {
		v.(*Conn).frames = int(frames)
	}
	return lib.SQLITE_OK
}

// LogFrames returns the number of pages in the write-ahead log after this connection's last commit.
func (c *Conn) LogFrames() int { return c.frames }

// Checkpoint copies what it can from the log into the database without waiting for other connections. It returns how many
// frames the log has and how many of them are copied.
func (c *Conn) Checkpoint() (frames, copied int, err error) {
	out := libc.Xmalloc(c.tls, 8)
	defer libc.Xfree(c.tls, out)
	rc := lib.Xsqlite3_wal_checkpoint_v2(c.tls, c.db, 0, lib.SQLITE_CHECKPOINT_PASSIVE, out, out+4)
	if rc != lib.SQLITE_OK {
		return 0, 0, c.fail(rc)
	}
	return int(*(*int32)(at(out))), int(*(*int32)(at(out + 4))), nil
}

// EmptyLog copies the whole log into the database and truncates it. It waits for other connections no longer than the busy
// timeout.
func (c *Conn) EmptyLog() error {
	rc := lib.Xsqlite3_wal_checkpoint_v2(c.tls, c.db, 0, lib.SQLITE_CHECKPOINT_TRUNCATE, 0, 0)
	if rc != lib.SQLITE_OK {
		return c.fail(rc)
	}
	return nil
}

// KeepLog makes Close leave the log unchanged. Otherwise the last connection copies the log into the database and deletes it.
func (c *Conn) KeepLog() { c.keepLog(1) }

// DropLog reverses KeepLog.
func (c *Conn) DropLog() { c.keepLog(0) }

func (c *Conn) keepLog(on int32) {
	const arguments = 16 // bytes: an int and a pointer
	at := c.tls.Alloc(arguments)
	defer c.tls.Free(arguments)
	lib.Xsqlite3_db_config(c.tls, c.db, lib.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, libc.VaList(at, on, uintptr(0)))
}

// lastDamage is the last damaged page. SQLite has only a result code for it.
var lastDamage atomic.Pointer[PageError]

var damageListeners sync.Map // path of a database, as SQLite writes it → func(*PageError)

// OnDamage registers f, which is called for each damaged page of the database at path or of its log, on the goroutine that
// read it. Call remove when the database is closed.
func OnDamage(path string, f func(*PageError)) (remove func(), err error) {
	full, err := fullPath(path)
	if err != nil {
		return nil, err
	}
	damageListeners.Store(full, f)
	return func() { damageListeners.Delete(full) }, nil
}

// damaged reports a page and returns the result code for SQLite.
func damaged(e *PageError) int32 {
	lastDamage.Store(e)
	if f, ok := damageListeners.Load(strings.TrimSuffix(e.Path, Log.suffix())); ok {
		f.(func(*PageError))(e)
	}
	return lib.SQLITE_IOERR_DATA
}

// Readers map the database file. When the disk cannot read a mapped page, or the file was truncated, no call fails. Instead
// there is a bus error inside SQLite, which would end the process with the stacks of all goroutines. The functions here
// convert it to a failure that is reported to the watch.

// step is SQLite's step, with bus errors reported as IOERR.
func (c *Conn) step(p uintptr) int32 {
	return c.guarded(func() int32 { return lib.Xsqlite3_step(c.tls, p) })
}

// prepare is SQLite's prepare, which may read the schema, with the same treatment.
func (c *Conn) prepare(sql uintptr, bytes int32, stmt, tail uintptr) int32 {
	return c.guarded(func() int32 {
		return lib.Xsqlite3_prepare_v3(c.tls, c.db, sql, bytes, lib.SQLITE_PREPARE_PERSISTENT, stmt, tail)
	})
}

func (c *Conn) guarded(call func() int32) (rc int32) {
	before := debug.SetPanicOnFault(true)
	returned := false
	defer func() {
		if !returned {
			rc = c.faulted(recover())
		}
		debug.SetPanicOnFault(before)
	}()
	rc = call()
	returned = true
	return rc
}

// faulted reports a bus error, and repeats every other panic. SQLite was interrupted in the middle of an operation, so the
// connection must not be used again: the watch ends the process. Without a watch, the panic continues.
func (c *Conn) faulted(cause any) int32 {
	fault, ok := cause.(interface{ Addr() uintptr })
	path := libc.GoString(lib.Xsqlite3_db_filename(c.tls, c.db, 0))
	w := watched(path, Database)
	if !ok || w == nil {
		panic(cause)
	}
	w.report(&IOError{Op: Map, Kind: Database, Path: path, Errno: syscall.EIO})
	panic(fmt.Sprintf("read %s at %#x through its mapping: %v", path, fault.Addr(), cause))
}
