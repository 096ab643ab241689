package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"kontor/store/engine"
)

// The object identifiers of PostgreSQL's types that the engine distinguishes.
const (
	oidUnknown = 0
	oidBool    = 16
	oidBytea   = 17
	oidName    = 19
	oidInt8    = 20
	oidInt2    = 21
	oidInt4    = 23
	oidText    = 25
	oidFloat4  = 700
	oidFloat8  = 701
	oidVarchar = 1043
	oidNumeric = 1700
)

const (
	formatText   = 0
	formatBinary = 1
)

// oidOf is the type with which an argument is declared. The server infers the type of NULL.
var oidOf = [...]uint32{
	engine.Null: oidUnknown, engine.Integer: oidInt8, engine.Boolean: oidBool, engine.Float: oidFloat8,
	engine.Text: oidText, engine.Bytes: oidBytea,
}

// arg is an argument of a run. Its value is in the statement's buffer.
type arg struct {
	kind       engine.Type
	start, end int
}

// fits reports whether an argument may be bound to a parameter of a type.
func (a arg) fits(oid uint32) bool {
	switch a.kind {
	case engine.Null:
		return true
	case engine.Integer:
		return oid == oidInt8 || oid == oidInt4 || oid == oidInt2 || oid == oidNumeric
	case engine.Text:
		return oid == oidText || oid == oidVarchar || oid == oidName
	case engine.Float:
		return oid == oidFloat8 || oid == oidFloat4 || oid == oidNumeric
	}
	return oid == oidOf[a.kind]
}

// encode returns an argument as the server expects it for a type, and its format. The type that is natural for the argument is
// sent as it is in the buffer.
func (a arg) encode(buffer []byte, oid uint32) (value []byte, format int16) {
	if a.kind == engine.Null {
		return nil, formatText
	}
	value = buffer[a.start:a.end:a.end]
	if oid == oidOf[a.kind] || a.kind == engine.Text {
		return value, natural[a.kind]
	}
	switch a.kind {
	case engine.Integer:
		return strconv.AppendInt(nil, int64(binary.BigEndian.Uint64(value)), 10), formatText
	case engine.Float:
		return strconv.AppendFloat(nil, math.Float64frombits(binary.BigEndian.Uint64(value)), 'g', -1, 64), formatText
	case engine.Boolean:
		return strconv.AppendBool(nil, value[0] != 0), formatText
	default:
		return append([]byte(`\x`), hex.AppendEncode(nil, value)...), formatText
	}
}

// natural is the format of the values in a statement's buffer.
var natural = [...]int16{
	engine.Null: formatText, engine.Integer: formatBinary, engine.Boolean: formatBinary, engine.Float: formatBinary,
	engine.Text: formatText, engine.Bytes: formatBinary,
}

// resultFormat returns the format in which a column is requested.
func resultFormat(oid uint32) int16 {
	switch oid {
	case oidBool, oidBytea, oidInt2, oidInt4, oidInt8, oidFloat4, oidFloat8:
		return formatBinary
	}
	return formatText
}

// typeOf returns the type of a value in a row. Sums of integers are numeric, as are decimal constants.
func typeOf(oid uint32, value []byte) engine.Type {
	if value == nil {
		return engine.Null
	}
	switch oid {
	case oidInt2, oidInt4, oidInt8:
		return engine.Integer
	case oidBool:
		return engine.Boolean
	case oidFloat4, oidFloat8:
		return engine.Float
	case oidBytea:
		return engine.Bytes
	case oidNumeric:
		if _, err := strconv.ParseInt(string(value), 10, 64); err == nil {
			return engine.Integer
		}
		return engine.Float
	}
	return engine.Text
}

// integer returns the value of a column of an integer or boolean type.
func integer(oid uint32, value []byte) (n int64, ok bool) {
	switch {
	case oid == oidBool && len(value) == 1:
		return int64(value[0]), true
	case oid == oidInt2 && len(value) == 2:
		return int64(int16(binary.BigEndian.Uint16(value))), true
	case oid == oidInt4 && len(value) == 4:
		return int64(int32(binary.BigEndian.Uint32(value))), true
	case oid == oidInt8 && len(value) == 8:
		return int64(binary.BigEndian.Uint64(value)), true
	case oid == oidNumeric:
		n, err := strconv.ParseInt(string(value), 10, 64)
		return n, err == nil
	}
	return 0, false
}

// intOf returns a value as an integer. Other values return 0.
func intOf(oid uint32, value []byte) int64 {
	if n, ok := integer(oid, value); ok {
		return n
	}
	return int64(floatOf(oid, value))
}

// floatOf returns a value as a floating point number. Other values return 0.
func floatOf(oid uint32, value []byte) float64 {
	if n, ok := integer(oid, value); ok {
		return float64(n)
	}
	switch {
	case oid == oidFloat8 && len(value) == 8:
		return math.Float64frombits(binary.BigEndian.Uint64(value))
	case oid == oidFloat4 && len(value) == 4:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(value)))
	}
	f, _ := strconv.ParseFloat(string(value), 64)
	return f
}

// textOf returns a value as a text.
func textOf(oid uint32, value []byte) string {
	switch typeOf(oid, value) {
	case engine.Integer, engine.Boolean:
		return strconv.FormatInt(intOf(oid, value), 10)
	case engine.Float:
		if resultFormat(oid) == formatBinary {
			return fmt.Sprint(floatOf(oid, value))
		}
	}
	return string(value)
}
