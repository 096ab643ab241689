package binding

import (
	"fmt"
	"runtime/debug"
	"syscall"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Readers map the database file. When the disk cannot read a mapped page, or the file was truncated, no call fails. Instead
// there is a bus error inside SQLite, which would end the process with the stacks of all goroutines. The functions here
// convert it to a failure that is reported to the watch.

// step is SQLite's step, with bus errors reported as IOERR.
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

// prepare is SQLite's prepare, which may read the schema, with the same treatment.
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
