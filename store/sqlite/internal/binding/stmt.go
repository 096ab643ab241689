package binding

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

// Prepare returns the compiled form of one statement, which is kept and found again by its text. While it is running, Prepare
// compiles another that is not kept.
func (c *Conn) Prepare(text string) (*Stmt, error) {
	c.clock++
	if s, ok := c.stmts[text]; ok && !s.busy {
		s.used = c.clock
		return s, nil
	} else if ok {
		return c.compile(text)
	}
	s, err := c.compile(text)
	if err != nil {
		return nil, err
	}
	if len(c.stmts) >= maxStatements {
		c.evict()
	}
	s.kept, s.used = true, c.clock
	c.stmts[text] = s
	return s, nil
}

// evict drops the less recently used half of the statements that are not running.
func (c *Conn) evict() {
	limit := c.clock - min(c.clock, maxStatements/2)
	for text, s := range c.stmts {
		if s.used <= limit && !s.busy {
			s.finalize()
			delete(c.stmts, text)
		}
	}
}

// compile compiles exactly one statement.
func (c *Conn) compile(text string) (*Stmt, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, fmt.Errorf("statement contains a NUL byte")
	}
	sql, err := libc.CString(text)
	if err != nil {
		return nil, err
	}
	defer libc.Xfree(c.tls, sql)
	out := libc.Xmalloc(c.tls, 16)
	defer libc.Xfree(c.tls, out)

	rc := c.prepare(sql, int32(len(text))+1, out, out+8)
	if rc != lib.SQLITE_OK {
		return nil, c.fail(rc)
	}
	p := *(*uintptr)(at(out))
	tail := int(*(*uintptr)(at(out + 8)) - sql)
	if p == 0 || strings.TrimRight(text[tail:], " \t\r\n;") != "" {
		lib.Xsqlite3_finalize(c.tls, p)
		return nil, fmt.Errorf("exactly one statement expected: %.80q", text)
	}
	return newStmt(c, p)
}

// Run compiles a statement, runs it once and ignores its rows.
func (c *Conn) Run(text string) error {
	s, err := c.compile(text)
	if err != nil {
		return err
	}
	defer s.finalize()
	for {
		if more, err := s.Step(); err != nil || !more {
			return err
		}
	}
}

// Type is the storage class of a value in a row.
type Type int32

// The storage classes.
const (
	Integer = Type(lib.SQLITE_INTEGER)
	Float   = Type(lib.SQLITE_FLOAT)
	Text    = Type(lib.SQLITE_TEXT)
	Blob    = Type(lib.SQLITE_BLOB)
	Null    = Type(lib.SQLITE_NULL)
)

// Stmt is a compiled statement. The order of calls is: Begin, bind all arguments, Step until it returns false, Reset.
type Stmt struct {
	c       *Conn
	p       uintptr
	params  []int32 // by argument number less 1: SQLite's number of the parameter $n, or 0 when no parameter names it
	columns int

	buffer, size, filled uintptr   // C memory for the text and blob arguments of the run
	outgrown             []uintptr // earlier buffers that the run's parameters still point into

	busy bool // between Begin and Reset
	kept bool // in the connection's map; otherwise finalized by Reset
	run  uint64
	used uint64

	// Tag holds a value of the owner for as long as the statement is kept.
	Tag any
}

func newStmt(c *Conn, p uintptr) (*Stmt, error) {
	s := &Stmt{c: c, p: p, columns: int(lib.Xsqlite3_column_count(c.tls, p))}
	n := int(lib.Xsqlite3_bind_parameter_count(c.tls, p))
	for i := range n {
		name := libc.GoString(lib.Xsqlite3_bind_parameter_name(c.tls, p, int32(i+1)))
		number := 0
		if len(name) > 1 && name[0] == '$' {
			number, _ = strconv.Atoi(name[1:])
		}
		if number < 1 || number > maxParameter {
			s.finalize()
			return nil, fmt.Errorf("parameter %q: write $1, $2, …", name)
		}
		for len(s.params) < number {
			s.params = append(s.params, 0)
		}
		s.params[number-1] = int32(i + 1)
	}
	return s, nil
}

// maxParameter is the highest n of a parameter $n: as many as a statement may have.
const maxParameter = 32766

// Args returns the number of arguments that the statement takes.
func (s *Stmt) Args() int { return len(s.params) }

// Columns returns the number of columns of a row.
func (s *Stmt) Columns() int { return s.columns }

// Begin marks the statement as running, before its arguments are bound. It returns the number of the run.
func (s *Stmt) Begin() uint64 {
	s.busy = true
	s.run++
	s.c.running = append(s.c.running, s)
	return s.run
}

// Running reports whether the run with this number has not ended.
func (s *Stmt) Running(run uint64) bool { return s.busy && s.run == run }

// Step runs the statement up to its next row and reports whether there is one.
func (s *Stmt) Step() (bool, error) {
	switch rc := s.c.step(s.p); rc {
	case lib.SQLITE_ROW:
		return true, nil
	case lib.SQLITE_DONE:
		return false, nil
	default:
		return false, s.c.fail(rc)
	}
}

// keepBuffer is the size of the largest argument buffer that a statement keeps between two runs.
const keepBuffer = 16 << 10

// Reset ends the run, so that the statement can run again.
func (s *Stmt) Reset() {
	if !s.busy {
		return
	}
	s.busy = false
	for i := len(s.c.running) - 1; i >= 0; i-- {
		if s.c.running[i] == s {
			s.c.running = slices.Delete(s.c.running, i, i+1)
			break
		}
	}
	// The result repeats the error of the last Step, which has been reported.
	lib.Xsqlite3_reset(s.c.tls, s.p)
	if !s.kept {
		s.finalize()
		return
	}
	for _, p := range s.outgrown {
		libc.Xfree(s.c.tls, p)
	}
	s.outgrown = s.outgrown[:0]
	s.filled = 0
	if s.size > keepBuffer {
		libc.Xfree(s.c.tls, s.buffer)
		s.buffer, s.size = 0, 0
	}
}

func (s *Stmt) finalize() {
	if s.p != 0 {
		lib.Xsqlite3_finalize(s.c.tls, s.p) // repeats the error of the last Step
		s.p = 0
	}
	for _, p := range append(s.outgrown, s.buffer) {
		if p != 0 {
			libc.Xfree(s.c.tls, p)
		}
	}
	s.outgrown, s.buffer, s.size, s.filled = nil, 0, 0, 0
}

// Name returns the name of column i, counted from 0.
func (s *Stmt) Name(i int) string {
	return libc.GoString(lib.Xsqlite3_column_name(s.c.tls, s.p, int32(i)))
}

// Type returns the storage class of column i in the current row. Call it before reading the value, which may convert it.
func (s *Stmt) Type(i int) Type {
	return Type(lib.Xsqlite3_column_type(s.c.tls, s.p, int32(i)))
}

// Int returns column i of the current row.
func (s *Stmt) Int(i int) int64 { return lib.Xsqlite3_column_int64(s.c.tls, s.p, int32(i)) }

// Float returns column i of the current row.
func (s *Stmt) Float(i int) float64 { return lib.Xsqlite3_column_double(s.c.tls, s.p, int32(i)) }

// Text returns column i of the current row as a new string.
func (s *Stmt) Text(i int) string {
	return string(s.content(i, lib.Xsqlite3_column_text(s.c.tls, s.p, int32(i))))
}

// AppendText appends column i of the current row to b.
func (s *Stmt) AppendText(b []byte, i int) []byte {
	return append(b, s.content(i, lib.Xsqlite3_column_text(s.c.tls, s.p, int32(i)))...)
}

// Bytes returns column i of the current row in new memory.
func (s *Stmt) Bytes(i int) []byte {
	return append([]byte{}, s.content(i, lib.Xsqlite3_column_blob(s.c.tls, s.p, int32(i)))...)
}

// content returns the memory of SQLite, at an address, that holds column i of the current row.
func (s *Stmt) content(i int, p uintptr) []byte {
	n := lib.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i))
	if p == 0 || n == 0 {
		return nil
	}
	return memory(p, int64(n))
}

// BindNull sets argument n, counted from 1, to NULL.
func (s *Stmt) BindNull(n int) error {
	if p := s.params[n-1]; p != 0 {
		return s.bound(lib.Xsqlite3_bind_null(s.c.tls, s.p, p))
	}
	return nil
}

// BindInt sets argument n to an integer.
func (s *Stmt) BindInt(n int, v int64) error {
	if p := s.params[n-1]; p != 0 {
		return s.bound(lib.Xsqlite3_bind_int64(s.c.tls, s.p, p, v))
	}
	return nil
}

// BindBool sets argument n to 0 or 1.
func (s *Stmt) BindBool(n int, v bool) error {
	if v {
		return s.BindInt(n, 1)
	}
	return s.BindInt(n, 0)
}

// BindFloat sets argument n to a floating-point number.
func (s *Stmt) BindFloat(n int, v float64) error {
	if p := s.params[n-1]; p != 0 {
		return s.bound(lib.Xsqlite3_bind_double(s.c.tls, s.p, p, v))
	}
	return nil
}

// maxArgument is the longest text or blob that SQLite accepts.
const maxArgument = 1_000_000_000

// BindText sets argument n to a text.
func (s *Stmt) BindText(n int, v string) error {
	return s.BindTextBytes(n, unsafe.Slice(unsafe.StringData(v), len(v)))
}

// BindTextBytes sets argument n to a text that is held as bytes.
func (s *Stmt) BindTextBytes(n int, v []byte) error {
	return s.bindContent(n, v, lib.Xsqlite3_bind_text)
}

// BindBytes sets argument n to a blob.
func (s *Stmt) BindBytes(n int, v []byte) error {
	return s.bindContent(n, v, lib.Xsqlite3_bind_blob)
}

// bindContent copies a text or blob into memory of the statement and binds it.
func (s *Stmt) bindContent(n int, v []byte, bind func(tls *libc.TLS, stmt uintptr, parameter int32, p uintptr, bytes int32, free uintptr) int32) error {
	parameter := s.params[n-1]
	if parameter == 0 {
		return nil
	}
	if len(v) > maxArgument {
		return s.c.fail(lib.SQLITE_TOOBIG)
	}
	p := s.reserve(uintptr(len(v)))
	copy(memory(p, int64(len(v))), v)
	return s.bound(bind(s.c.tls, s.p, parameter, p, int32(len(v)), lib.SQLITE_STATIC))
}

func (s *Stmt) bound(rc int32) error {
	if rc != lib.SQLITE_OK {
		return s.c.fail(rc)
	}
	return nil
}

// reserve returns n bytes of C memory that stay unchanged until the next run. They are bound as static, which saves SQLite a
// copy and an allocation for each argument.
func (s *Stmt) reserve(n uintptr) uintptr {
	if n == 0 {
		n = 1 // SQLite treats a NULL pointer as the NULL value
	}
	if s.filled+n > s.size {
		if s.buffer != 0 {
			s.outgrown = append(s.outgrown, s.buffer)
		}
		s.size = max(256, 2*s.size, n)
		s.buffer = libc.Xmalloc(s.c.tls, types.Size_t(s.size))
		if s.buffer == 0 {
			panic("out of memory")
		}
		s.filled = 0
	}
	p := s.buffer + s.filled
	s.filled += n
	return p
}
