package postgres

import (
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
	called   bool         // by a caller, not only by the engine itself
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
