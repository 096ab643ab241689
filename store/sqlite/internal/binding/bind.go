package binding

import (
	"unsafe"

	"modernc.org/libc"
	"modernc.org/libc/sys/types"
	lib "modernc.org/sqlite/lib"
)

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
	parameter := s.params[n-1]
	if parameter == 0 {
		return nil
	}
	if len(v) > maxArgument {
		return s.c.fail(lib.SQLITE_TOOBIG)
	}
	p := s.reserve(uintptr(len(v)))
	copy(unsafe.Slice((*byte)(at(p)), len(v)), v)
	return s.bound(lib.Xsqlite3_bind_text(s.c.tls, s.p, parameter, p, int32(len(v)), lib.SQLITE_STATIC))
}

// BindBytes sets argument n to a blob.
func (s *Stmt) BindBytes(n int, v []byte) error {
	parameter := s.params[n-1]
	if parameter == 0 {
		return nil
	}
	if len(v) > maxArgument {
		return s.c.fail(lib.SQLITE_TOOBIG)
	}
	p := s.reserve(uintptr(len(v)))
	copy(unsafe.Slice((*byte)(at(p)), len(v)), v)
	return s.bound(lib.Xsqlite3_bind_blob(s.c.tls, s.p, parameter, p, int32(len(v)), lib.SQLITE_STATIC))
}

// BindTextBytes sets argument n to a text that is held as bytes.
func (s *Stmt) BindTextBytes(n int, v []byte) error {
	return s.BindText(n, unsafe.String(unsafe.SliceData(v), len(v)))
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
