package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"kontor/store/engine"
)

// chunk is how many rows a statement in a transaction receives at a time. Other statements may use the connection meanwhile, for which the
// rest of a chunk is kept in memory.
const chunk = 500

// statement implements engine.Statement. After its end it is kept with its connection and used again.
type statement struct {
	conn  *conn
	entry *entry
	p     *prepared
	owner owner

	args   []arg
	buffer []byte // the values of the arguments
	number uint64 // of the run

	running, started, complete, suspended bool

	portal  string     // named in a transaction, where statements may run within each other
	row     [][]byte   // the current one
	kept    [][][]byte // rows that have arrived while another statement used the connection
	changed int64
	err     error
	known   *result // read before; nil: the statement has to run
}

// owner is what a statement belongs to: a reader of the pool, a view, or a job's transaction.
type owner interface {
	// begin is called before the first step, and decides how the statement runs.
	begin(s *statement) (more bool, err error)
	// failed translates the error of a step.
	failed(err error) error
	// closed is called after the end of a run.
	closed()
	// inTransaction reports whether the statement runs in a transaction that holds others too.
	inTransaction() bool
}

// statement returns a statement for a text that is not running.
func (c *conn) statement(sql string, o owner) *statement {
	e := c.entry(sql)
	var s *statement
	if n := len(e.free); n > 0 {
		s = e.free[n-1]
		e.free = e.free[:n-1]
	} else {
		s = &statement{conn: c, entry: e}
	}
	s.owner = o
	if _, own := o.(own); !own {
		e.called = true
	}
	return s
}

// Begin begins a run.
func (s *statement) Begin() uint64 {
	s.number++
	s.running = true
	s.args = slices.Grow(s.args[:0], s.Args())[:s.Args()]
	clear(s.args)
	if s.buffer == nil {
		s.buffer = make([]byte, 0, smallBuffer) // an empty text must not be nil, which is NULL
	}
	s.buffer = s.buffer[:0]
	s.conn.open = append(s.conn.open, s)
	return s.number
}

// Running reports whether a run has begun and was not closed.
func (s *statement) Running(run uint64) bool { return s.running && s.number == run }

// Step runs the statement up to its next row.
func (s *statement) Step() (more bool, err error) {
	switch {
	case !s.running:
		return false, engine.ErrClosed
	case !s.started:
		s.started = true
		more, err = s.owner.begin(s)
	default:
		more, err = s.next()
	}
	if err != nil {
		return false, s.owner.failed(err)
	}
	return more, nil
}

// start runs the statement at once, up to its first row.
func (s *statement) start() (more bool, err error) {
	c := s.conn
	if s.p, err = c.prepare(s); err != nil {
		return false, err
	}
	if err := c.detach(); err != nil {
		return false, err
	}
	if c.opening != "" {
		c.ask(c.opening, nil)
		c.opening = ""
	}
	limit := uint32(0)
	if s.owner.inTransaction() && len(s.p.columns) > 0 {
		s.portal, limit = c.portal(), chunk
	}
	c.bind(s.p, s.portal, s.args, s.buffer, nil)
	return s.execute(limit)
}

// execute has the server run the portal up to a number of rows, 0 for all, and returns the first.
func (s *statement) execute(limit uint32) (more bool, err error) {
	c := s.conn
	c.request(request{kind: askExecute, s: s}, &pgproto3.Execute{Portal: s.portal, MaxRows: limit})
	c.active = s
	if err := c.sync(); err != nil {
		return false, err
	}
	if c.ended != nil {
		if err := c.ended(); err != nil {
			c.interrupt()
			return false, err
		}
	}
	return s.next()
}

// next goes to the next row.
func (s *statement) next() (more bool, err error) {
	s.row = nil
	if len(s.kept) > 0 {
		s.row, s.kept = s.kept[0], s.kept[1:]
		return true, nil
	}
	if s.err == nil && !s.complete && !s.suspended {
		more, err = s.conn.receive(s)
		if more || err != nil {
			return more, err
		}
	}
	if s.conn.active == s {
		s.conn.active = nil
	}
	if s.suspended && s.err == nil {
		s.suspended = false
		if err := s.conn.detach(); err != nil {
			return false, err
		}
		return s.execute(chunk)
	}
	return false, s.err
}

// completed records the end of the run and how many rows it changed.
func (s *statement) completed(tag []byte) {
	s.complete = true
	t := pgconn.NewCommandTag(string(tag))
	if t.Insert() || t.Update() || t.Delete() {
		s.changed = t.RowsAffected()
	}
}

// fail records the error of the run.
func (s *statement) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// Changed returns how many rows the run changed.
func (s *statement) Changed() int64 { return s.changed }

// Close ends the run. Rows that are still on their way are discarded when the connection is used next.
func (s *statement) Close() {
	if !s.running {
		if s.owner != nil && !s.started { // prepared and never begun
			s.end()
		}
		return
	}
	c := s.conn
	if i := slices.Index(c.open, s); i >= 0 {
		c.open = slices.Delete(c.open, i, i+1)
	}
	for i := range c.requests[c.head:] {
		if r := &c.requests[c.head+i]; r.s == s {
			r.s = nil
		}
	}
	if c.active == s {
		c.active = nil
	}
	if s.portal != "" {
		c.request(request{kind: askClose}, &pgproto3.Close{ObjectType: 'P', Name: s.portal})
		c.portals = append(c.portals, s.portal)
	}
	s.end()
}

// end makes the statement ready for its next use, and tells its owner.
func (s *statement) end() {
	o := s.owner
	s.running, s.started, s.complete, s.suspended = false, false, false, false
	s.portal, s.row, s.kept, s.changed, s.err, s.p, s.owner, s.known = "", nil, nil, 0, nil, nil, nil, nil
	if cap(s.buffer) > maxKeptBuffer {
		s.buffer = nil
	}
	if len(s.entry.free) < 2 {
		s.entry.free = append(s.entry.free, s)
	}
	o.closed()
}
