package binding

import (
	"syscall"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

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
