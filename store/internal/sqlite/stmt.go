package sqlite

import (
	"fmt"
	"slices"
	"strconv"
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

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

// Stmt is a compiled statement. The order is: Begin, bind all parameters, Step until it says
// false, Reset.
type Stmt struct {
	c       *Conn
	p       uintptr
	params  []int // number of the argument ($n) that each parameter takes, from 1
	args    int   // highest of these
	columns int

	buffer, size, filled uintptr   // C memory for the text and blob arguments of the run
	outgrown             []uintptr // earlier buffers that the run's parameters still point into

	busy bool // between Begin and Reset
	kept bool // in the connection's map; otherwise finalized by Reset
	run  uint64
	used uint64

	// Tag is the owner's note about the statement, kept with it.
	Tag any
}

func newStmt(c *Conn, p uintptr) (*Stmt, error) {
	s := &Stmt{c: c, p: p, columns: int(lib.Xsqlite3_column_count(c.tls, p))}
	n := int(lib.Xsqlite3_bind_parameter_count(c.tls, p))
	s.params = make([]int, n)
	for i := range s.params {
		name := libc.GoString(lib.Xsqlite3_bind_parameter_name(c.tls, p, int32(i+1)))
		number := 0
		if len(name) > 1 && name[0] == '$' {
			number, _ = strconv.Atoi(name[1:])
		}
		if number < 1 {
			s.finalize()
			return nil, fmt.Errorf("parameter %q: write $1, $2, …", name)
		}
		s.params[i] = number
		s.args = max(s.args, number)
	}
	return s, nil
}

// Params gives for each parameter of the statement the number of the argument it takes, from 1.
func (s *Stmt) Params() []int { return s.params }

// Args is the number of arguments that the statement takes.
func (s *Stmt) Args() int { return s.args }

// Columns is the number of columns that a row has.
func (s *Stmt) Columns() int { return s.columns }

// Begin marks the statement as running, before its parameters are bound. The number it gives stands
// for this run.
func (s *Stmt) Begin() uint64 {
	s.busy = true
	s.run++
	s.c.running = append(s.c.running, s)
	return s.run
}

// Running tells whether the run with this number has not been ended.
func (s *Stmt) Running(run uint64) bool { return s.busy && s.run == run }

// BindNull sets parameter i (from 0) to NULL.
func (s *Stmt) BindNull(i int) error {
	return s.bound(lib.Xsqlite3_bind_null(s.c.tls, s.p, int32(i+1)))
}

// BindInt sets parameter i to an integer.
func (s *Stmt) BindInt(i int, v int64) error {
	return s.bound(lib.Xsqlite3_bind_int64(s.c.tls, s.p, int32(i+1), v))
}

// BindFloat sets parameter i to a floating-point number.
func (s *Stmt) BindFloat(i int, v float64) error {
	return s.bound(lib.Xsqlite3_bind_double(s.c.tls, s.p, int32(i+1), v))
}

// maxArgument is the longest text or blob that SQLite takes.
const maxArgument = 1_000_000_000

// BindText sets parameter i to a text.
func (s *Stmt) BindText(i int, v string) error {
	if len(v) > maxArgument {
		return s.c.fail(lib.SQLITE_TOOBIG)
	}
	p := s.reserve(uintptr(len(v)))
	copy(unsafe.Slice((*byte)(at(p)), len(v)), v)
	return s.bound(lib.Xsqlite3_bind_text(s.c.tls, s.p, int32(i+1), p, int32(len(v)), lib.SQLITE_STATIC))
}

// BindBlob sets parameter i to bytes.
func (s *Stmt) BindBlob(i int, v []byte) error {
	if len(v) > maxArgument {
		return s.c.fail(lib.SQLITE_TOOBIG)
	}
	p := s.reserve(uintptr(len(v)))
	copy(unsafe.Slice((*byte)(at(p)), len(v)), v)
	return s.bound(lib.Xsqlite3_bind_blob(s.c.tls, s.p, int32(i+1), p, int32(len(v)), lib.SQLITE_STATIC))
}

// BindBytesAsText sets parameter i to a text that is given as bytes.
func (s *Stmt) BindBytesAsText(i int, v []byte) error {
	return s.BindText(i, unsafe.String(unsafe.SliceData(v), len(v)))
}

func (s *Stmt) bound(rc int32) error {
	if rc != lib.SQLITE_OK {
		return s.c.fail(rc)
	}
	return nil
}

// reserve gives n bytes of C memory that stay as they are until the next run. SQLite is told that
// they are static, which saves it a copy and an allocation for each argument.
func (s *Stmt) reserve(n uintptr) uintptr {
	if n == 0 {
		n = 1 // a pointer that is not NULL, which SQLite would take for the NULL value
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

// Step runs the statement up to its next row and tells whether there is one.
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

// keepBuffer is the largest argument buffer that a statement keeps between two runs.
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

// Name is the name of column i (from 0).
func (s *Stmt) Name(i int) string {
	return libc.GoString(lib.Xsqlite3_column_name(s.c.tls, s.p, int32(i)))
}

// Type is the storage class of column i in the current row. Ask before reading the value.
func (s *Stmt) Type(i int) Type {
	return Type(lib.Xsqlite3_column_type(s.c.tls, s.p, int32(i)))
}

// Int reads column i of the current row.
func (s *Stmt) Int(i int) int64 { return lib.Xsqlite3_column_int64(s.c.tls, s.p, int32(i)) }

// Float reads column i of the current row.
func (s *Stmt) Float(i int) float64 { return lib.Xsqlite3_column_double(s.c.tls, s.p, int32(i)) }

// Size is how many bytes a text or blob in column i of the current row takes; numbers take none.
func (s *Stmt) Size(i int) int {
	if t := s.Type(i); t != Text && t != Blob {
		return 0
	}
	return int(lib.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i)))
}

// Text reads column i of the current row into a new string.
func (s *Stmt) Text(i int) string {
	p := lib.Xsqlite3_column_text(s.c.tls, s.p, int32(i))
	n := lib.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i))
	if p == 0 || n == 0 {
		return ""
	}
	return string(unsafe.Slice((*byte)(at(p)), n))
}

// Bytes reads column i of the current row into new memory.
func (s *Stmt) Bytes(i int) []byte {
	p := lib.Xsqlite3_column_blob(s.c.tls, s.p, int32(i))
	n := lib.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i))
	if p == 0 || n == 0 {
		return []byte{}
	}
	return append(make([]byte, 0, n), unsafe.Slice((*byte)(at(p)), n)...)
}
