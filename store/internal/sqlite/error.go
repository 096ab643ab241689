package sqlite

import (
	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Error is a failure that SQLite reported.
type Error struct {
	Code    int // extended result code
	Message string
}

// Error gives SQLite's own words.
func (e *Error) Error() string { return e.Message }

// Primary is the result code without its extension.
func (e *Error) Primary() int { return e.Code & 0xff }

// fail makes the error for a result code; an interrupted statement fails with its context's error.
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
	return &Error{Code: int(rc), Message: message}
}
