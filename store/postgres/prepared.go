package postgres

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/jackc/pgx/v5/pgproto3"

	"kontor/store/engine"
)

// maxStatements is how many texts a connection keeps prepared. A server keeps some ten kilobytes for each.
const maxStatements = 1024

// entry is what a connection keeps for the text of a statement.
type entry struct {
	text     *text
	used     uint64
	variants []*prepared  // one, unless its arguments are of different types at times
	free     []*statement // to be used again
}

// prepared is a statement that the server keeps for the connection.
type prepared struct {
	text    *text
	name    string
	oids    []uint32 // types of the parameters; oidUnknown: not known yet
	columns []column
	formats []int16 // of the columns
	gone    bool    // the server has rejected it
}

// column is a column of a result.
type column struct {
	name string
	oid  uint32
}

// describe takes over the columns of the result.
func (p *prepared) describe(m *pgproto3.RowDescription) {
	p.columns = make([]column, len(m.Fields))
	p.formats = make([]int16, len(m.Fields))
	for i, f := range m.Fields {
		p.columns[i] = column{name: string(f.Name), oid: f.DataTypeOID}
		p.formats[i] = resultFormat(f.DataTypeOID)
	}
}

// entry returns what the connection keeps for a text.
func (c *conn) entry(sql string) *entry {
	c.clock++
	e, ok := c.statements[sql]
	if !ok {
		if len(c.statements) >= maxStatements {
			c.evict()
		}
		e = &entry{text: c.texts.get(sql)}
		c.statements[sql] = e
	}
	e.used = c.clock
	return e
}

// evict has the server drop the less recently used half of the statements.
func (c *conn) evict() {
	limit := c.clock - min(c.clock, maxStatements/2)
	for sql, e := range c.statements {
		if e.used > limit {
			continue
		}
		for _, p := range e.variants {
			c.request(request{kind: askClose}, &pgproto3.Close{ObjectType: 'S', Name: p.name})
		}
		delete(c.statements, sql)
	}
}

// forget drops a statement that the server did not prepare.
func (c *conn) forget(p *prepared) {
	p.gone = true
	e, ok := c.statements[p.text.sql]
	if !ok {
		return
	}
	for i, v := range e.variants {
		if v == p {
			e.variants = append(e.variants[:i:i], e.variants[i+1:]...)
			return
		}
	}
}

// reset drops all prepared statements, after the schema has changed below them.
func (c *conn) reset() {
	for _, e := range c.statements {
		for _, p := range e.variants {
			c.request(request{kind: askClose}, &pgproto3.Close{ObjectType: 'S', Name: p.name})
		}
		e.variants = nil
	}
}

// find returns the prepared statement whose parameters fit the arguments, or nil.
func (e *entry) find(args []arg) *prepared {
next:
	for _, p := range e.variants {
		for i, a := range args {
			if !a.fits(p.oids[i]) {
				continue next
			}
		}
		return p
	}
	return nil
}

// declare has the server prepare a statement for arguments. Its answer comes with the next round trip.
func (c *conn) declare(e *entry, args []arg, owner any) *prepared {
	c.named++
	p := &prepared{text: e.text, name: "s" + strconv.FormatUint(c.named, 36), oids: e.text.declared(args)}
	e.variants = append(e.variants, p)
	c.request(request{kind: askParse, p: p, owner: owner}, &pgproto3.Parse{Name: p.name, Query: e.text.sql, ParameterOIDs: p.oids})
	c.request(request{kind: askDescribe, p: p, owner: owner}, &pgproto3.Describe{ObjectType: 'S', Name: p.name})
	return p
}

// How the types of the parameters of a statement are declared.
const (
	declareArguments  int32 = iota // those of the arguments; the server infers the type of NULL
	declareNullAsText              // the same, and NULL is a text: where the server cannot infer a type
	declareNothing                 // the server infers all: where a function or column needs another type of number
)

// declared returns the types of the parameters as they are declared to the server.
func (t *text) declared(args []arg) []uint32 {
	oids := make([]uint32, len(args))
	mode := t.mode.Load()
	if mode == declareNothing {
		return oids
	}
	for i, a := range args {
		oids[i] = oidOf[a.kind]
		if a.kind == engine.Null && mode == declareNullAsText {
			oids[i] = oidText
		}
	}
	return oids
}

// declareOtherwise changes how types are declared after the server has rejected them. It returns false when there is no further way.
func (t *text) declareOtherwise(err error) bool {
	if !hasCode(err, codeUndefinedFunction, codeDatatypeMismatch, codeIndeterminateType, codeAmbiguousFunction) {
		return false
	}
	mode := t.mode.Load()
	return mode < declareNothing && t.mode.CompareAndSwap(mode, mode+1)
}

// prepare returns the prepared statement for the arguments of s. If it is new to the connection, the server prepares it in a
// round trip of its own.
func (c *conn) prepare(s *statement) (*prepared, error) {
	for {
		if p := s.entry.find(s.args); p != nil {
			return p, nil
		}
		if err := c.catchUp(); err != nil {
			return nil, err
		}
		guarded := c.status == 'T' && !s.entry.text.accepted.Load() // a failure must not end the transaction
		if guarded {
			c.ask(setParsePoint, nil)
		}
		p := c.declare(s.entry, s.args, s)
		if guarded {
			c.ask(releaseParsePoint, nil)
		}
		err := c.exchange()
		if err == nil && c.failed.err == nil {
			return p, nil
		}
		if err != nil || c.failed.owner != any(s) {
			return nil, err
		}
		err = c.takeFailure().err
		if guarded {
			c.ask(undoParsePoint, nil)
			c.ask(releaseParsePoint, nil)
			if err := c.roundTrip(); err != nil {
				return nil, err
			}
		}
		if !s.entry.text.declareOtherwise(err) {
			return nil, err
		}
	}
}

const (
	setParsePoint     = "SAVEPOINT parse"
	releaseParsePoint = "RELEASE parse"
	undoParsePoint    = "ROLLBACK TO parse"
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
