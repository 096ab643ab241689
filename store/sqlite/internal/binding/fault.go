package binding

import (
	"fmt"
	"runtime/debug"
	"syscall"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Readers see the database file through a mapping. A page of it that the disk cannot read, or that was cut off, is no
// error of a call then but a bus error in the midst of the engine, which would end the process with the stacks of all
// goroutines. The functions here turn it into a failure that the watch hears of.

// step is the engine's step, with bus errors reported as IOERR.
func (c *Conn) step(p uintptr) (rc int32) {
	before := debug.SetPanicOnFault(true)
	returned := false
	defer func() {
		if !returned {
			rc = c.faulted(recover())
		}
		debug.SetPanicOnFault(before)
	}()
	rc = lib.Xsqlite3_step(c.tls, p)
	returned = true
	return rc
}

// prepare is the engine's prepare, which may read the schema, in the same way.
func (c *Conn) prepare(sql uintptr, bytes int32, stmt, tail uintptr) (rc int32) {
	before := debug.SetPanicOnFault(true)
	returned := false
	defer func() {
		if !returned {
			rc = c.faulted(recover())
		}
		debug.SetPanicOnFault(before)
	}()
	rc = lib.Xsqlite3_prepare_v3(c.tls, c.db, sql, bytes, lib.SQLITE_PREPARE_PERSISTENT, stmt, tail)
	returned = true
	return rc
}

// faulted reports a bus error and passes every other panic on. The engine was left in the midst of something, so that the
// connection must not be used again: the watch ends the process, and where there is none the panic goes on.
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
