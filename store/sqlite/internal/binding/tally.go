package binding

import (
	"fmt"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/sqlite/lib"
)

// Tally receives the values of the SQL function kontor_tally(value). A method returns false to end the statement, which then fails.
type Tally interface {
	// AddText receives a text in memory of SQLite, which is valid only during the call.
	AddText(text []byte) bool
	AddNumber(value int64) bool
	AddNull() bool
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
		more = t.AddNumber(lib.Xsqlite3_value_int64(tls, value))
	case lib.SQLITE_TEXT:
		text := lib.Xsqlite3_value_text(tls, value)
		more = t.AddText(unsafe.Slice((*byte)(at(text)), int(lib.Xsqlite3_value_bytes(tls, value))))
	case lib.SQLITE_NULL:
		more = t.AddNull()
	}
	if !more {
		lib.Xsqlite3_result_error_code(tls, call, lib.SQLITE_ABORT)
	}
}

// tallyFinal is SQLite's callback for the result, which is NULL.
func tallyFinal(*libc.TLS, uintptr) {}
