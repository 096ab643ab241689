package postgres

import (
	"encoding/binary"
	"fmt"
	"math"

	"kontor/store/engine"
)

// Args returns the highest n of the parameters $n.
func (s *statement) Args() int { return s.entry.text.args }

// smallBuffer is the first size of the buffer for arguments in bytes.
const smallBuffer = 64

// set records argument n, whose value was appended to the buffer from start on.
func (s *statement) set(n int, kind engine.Type, start int) error {
	if n < 1 || n > len(s.args) {
		return fmt.Errorf("there is no parameter $%d", n)
	}
	s.args[n-1] = arg{kind: kind, start: start, end: len(s.buffer)}
	return nil
}

// BindNull sets an argument to NULL.
func (s *statement) BindNull(n int) error { return s.set(n, engine.Null, len(s.buffer)) }

// BindInt sets an integer.
func (s *statement) BindInt(n int, v int64) error {
	start := len(s.buffer)
	s.buffer = binary.BigEndian.AppendUint64(s.buffer, uint64(v))
	return s.set(n, engine.Integer, start)
}

// BindBool sets a boolean.
func (s *statement) BindBool(n int, v bool) error {
	start := len(s.buffer)
	b := byte(0)
	if v {
		b = 1
	}
	s.buffer = append(s.buffer, b)
	return s.set(n, engine.Boolean, start)
}

// BindFloat sets a floating point number.
func (s *statement) BindFloat(n int, v float64) error {
	start := len(s.buffer)
	s.buffer = binary.BigEndian.AppendUint64(s.buffer, math.Float64bits(v))
	return s.set(n, engine.Float, start)
}

// BindText sets a text.
func (s *statement) BindText(n int, v string) error {
	start := len(s.buffer)
	s.buffer = append(s.buffer, v...)
	return s.set(n, engine.Text, start)
}

// BindTextBytes sets a text.
func (s *statement) BindTextBytes(n int, v []byte) error {
	start := len(s.buffer)
	s.buffer = append(s.buffer, v...)
	return s.set(n, engine.Text, start)
}

// BindBytes sets bytes.
func (s *statement) BindBytes(n int, v []byte) error {
	start := len(s.buffer)
	s.buffer = append(s.buffer, v...)
	return s.set(n, engine.Bytes, start)
}
