package binding

import (
	"fmt"
	"slices"
	"strconv"
	"unsafe"

	"modernc.org/libc"
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

// Size returns how many bytes a text or blob in column i of the current row takes, and 0 for other types.
func (s *Stmt) Size(i int) int {
	if t := s.Type(i); t != Text && t != Blob {
		return 0
	}
	return int(lib.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i)))
}

// Text returns column i of the current row as a new string.
func (s *Stmt) Text(i int) string {
	p := lib.Xsqlite3_column_text(s.c.tls, s.p, int32(i))
	n := lib.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i))
	if p == 0 || n == 0 {
		return ""
	}
	return string(unsafe.Slice((*byte)(at(p)), n))
}

// AppendText appends column i of the current row to b.
func (s *Stmt) AppendText(b []byte, i int) []byte {
	p := lib.Xsqlite3_column_text(s.c.tls, s.p, int32(i))
	n := lib.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i))
	if p == 0 || n == 0 {
		return b
	}
	return append(b, unsafe.Slice((*byte)(at(p)), n)...)
}

// Bytes returns column i of the current row in new memory.
func (s *Stmt) Bytes(i int) []byte {
	p := lib.Xsqlite3_column_blob(s.c.tls, s.p, int32(i))
	n := lib.Xsqlite3_column_bytes(s.c.tls, s.p, int32(i))
	if p == 0 || n == 0 {
		return []byte{}
	}
	return append(make([]byte, 0, n), unsafe.Slice((*byte)(at(p)), n)...)
}
