package postgres

import (
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// errBroken is the error of a connection that was lost before.
var errBroken = errors.New("the connection is lost")

// errSkipped is the error of a statement that the server has skipped because one before it in the same round trip failed.
var errSkipped = errors.New("a statement before this one failed")

// conn is a connection. It belongs to one goroutine at a time, except for interrupt.
//
// Requests are collected in out and sent together. The server answers them in their order; requests holds what has not been
// answered. After an error the server skips all requests up to the next sync.
type conn struct {
	pg    *pgconn.PgConn // made the connection; sends cancel requests
	front *pgproto3.Frontend
	texts *texts

	statements map[string]*entry // by text
	clock      uint64            // counts uses of statements, to drop the least recently used
	named      uint64            // statements prepared, for their names
	portals    []string          // free names

	out      []byte
	requests []request // not answered from head on
	head     int
	synced   int    // requests before it were sent and end with a sync
	syncs    uint64 // that were sent
	unsynced bool   // requests were collected or sent after the last sync
	status   byte   // of the transaction, after the last sync: 'I' none, 'T' open, 'E' failed
	broken   error
	opening  string  // begins a transaction together with its first statement
	failed   failure // the first since the last takeFailure

	active *statement // whose rows are being received
	open   []*statement

	patience time.Duration // bounds a round trip; 0: no bound
	losses   uint64        // Engine.losses before the connection was made
	busy     atomic.Bool   // the server works for the connection, so that an interrupt makes sense
	ended    func() error  // returns the error that ends a statement; nil: nothing does
	cancel   canceller
}

// request is one request that the server has not answered yet.
type request struct {
	kind  requestKind
	p     *prepared
	s     *statement // whose rows the request returns; nil: no statement waits for its answer
	owner any        // of a request whose answer no statement awaits
}

type requestKind byte

const (
	askParse requestKind = iota
	askDescribe
	askBind
	askExecute
	askClose
	askSync
	askScript // several statements, whose end is a sync
)

// failure is a failed request whose answer no statement awaits.
type failure struct {
	err   error
	owner any
}

// executeAll runs the unnamed portal to its end.
var executeAll = &pgproto3.Execute{}

func newConn(pg *pgconn.PgConn, known *texts) *conn {
	return &conn{pg: pg, front: pg.Frontend(), texts: known, statements: make(map[string]*entry), status: 'I'}
}

// send writes the collected requests.
func (c *conn) send() error {
	if c.broken != nil {
		return c.broken
	}
	if len(c.out) == 0 {
		return nil
	}
	if c.patience > 0 {
		_ = c.pg.Conn().SetDeadline(time.Now().Add(c.patience)) // a closed connection fails in the write
	}
	_, err := c.pg.Conn().Write(c.out)
	c.out = c.out[:0]
	if cap(c.out) > maxKeptBuffer {
		c.out = nil
	}
	if err != nil {
		return c.lose(err)
	}
	return nil
}

// maxKeptBuffer is the largest buffer that a connection keeps for its requests, in bytes.
const maxKeptBuffer = 256 << 10

// sync ends the collected requests with a sync and sends them.
func (c *conn) sync() error {
	c.request(request{kind: askSync}, &pgproto3.Sync{})
	c.unsynced, c.synced = false, len(c.requests)
	c.syncs++
	c.busy.Store(true)
	return c.send()
}

// request collects a request.
func (c *conn) request(r request, msg pgproto3.FrontendMessage) {
	out, err := msg.Encode(c.out)
	if err != nil { // longer than a message may be
		_ = c.lose(err) // it is in c.broken
		return
	}
	c.out = out
	c.requests = append(c.requests, r)
	c.unsynced = true
}

// lose records that the connection cannot be used any more.
func (c *conn) lose(err error) error {
	if c.broken == nil {
		c.broken = fmt.Errorf("%w: %w", errBroken, err)
		c.close()
	}
	c.busy.Store(false)
	return c.broken
}

// receive reads answers until a row of s has arrived, or everything that was sent is answered. Rows of other statements that
// are still read are kept for them.
func (c *conn) receive(s *statement) (row bool, err error) {
	for c.head < c.synced {
		if c.broken != nil {
			return false, c.broken
		}
		msg, err := c.front.Receive()
		if err != nil {
			return false, c.lose(err)
		}
		if row, err = c.handle(msg, s); row || err != nil {
			return row, err
		}
	}
	c.busy.Store(false)
	return false, c.broken
}

// handle processes one answer. row is true for a row of s.
func (c *conn) handle(msg pgproto3.BackendMessage, s *statement) (row bool, err error) {
	r := &c.requests[c.head]
	switch m := msg.(type) {
	case *pgproto3.DataRow:
		if r.s == nil {
			return false, nil
		}
		if r.s == s {
			s.row = m.Values
			return true, nil
		}
		r.s.keep(m.Values)
		return false, nil
	case *pgproto3.ParameterDescription:
		r.p.oids = append(r.p.oids[:0], m.ParameterOIDs...)
		return false, nil
	case *pgproto3.RowDescription:
		r.p.describe(m)
	case *pgproto3.CommandComplete:
		if r.kind == askScript {
			return false, nil
		}
		if r.s != nil {
			r.s.completed(m.CommandTag)
		}
	case *pgproto3.PortalSuspended:
		if r.s != nil {
			r.s.suspended = true
		}
	case *pgproto3.ReadyForQuery:
		c.status = m.TxStatus
	case *pgproto3.ErrorResponse:
		return false, c.fail(pgconn.ErrorResponseToPgError(m))
	case *pgproto3.ParseComplete:
		r.p.text.accepted.Store(true)
	case *pgproto3.NoData, *pgproto3.BindComplete, *pgproto3.CloseComplete, *pgproto3.EmptyQueryResponse:
	case *pgproto3.NoticeResponse, *pgproto3.ParameterStatus, *pgproto3.NotificationResponse:
		return false, nil
	default:
		return false, c.lose(fmt.Errorf("unexpected message %T", msg))
	}
	c.answered(1)
	return false, nil
}

// answered counts answers.
func (c *conn) answered(n int) {
	c.head += n
	if c.head == len(c.requests) {
		clear(c.requests)
		c.requests, c.head, c.synced = c.requests[:0], 0, 0
	}
}

// fail records the error of the first request that is not answered. The server skips those after it, up to the next sync.
// An error of the whole connection, after which the server closes it, loses the connection.
func (c *conn) fail(err error) error {
	if isFatal(err) {
		return c.lose(err)
	}
	r := c.requests[c.head]
	if r.s != nil {
		r.s.fail(err)
	} else if c.failed.err == nil {
		c.failed = failure{err: err, owner: r.owner}
	}
	n := 0
	for _, skipped := range c.requests[c.head:] {
		if skipped.kind == askSync || skipped.kind == askScript { // an error at the sync itself ends the transaction, and the sync is answered after it
			break
		}
		if skipped.kind == askParse {
			c.forget(skipped.p)
		}
		if skipped.s != nil && n > 0 {
			skipped.s.fail(errSkipped)
		}
		n++
	}
	c.answered(n)
	return nil
}

// isFatal reports whether the server ends the connection after an error.
func isFatal(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.SeverityUnlocalized == "FATAL" || pg.SeverityUnlocalized == "PANIC")
}

// takeFailure returns the first failure of a request whose answer no statement awaited, and forgets it.
func (c *conn) takeFailure() failure {
	f := c.failed
	c.failed = failure{}
	return f
}

// exchange sends what was collected and waits until everything is answered. Its error is that of the connection; failures of
// requests are in c.failed.
func (c *conn) exchange() error {
	if err := c.detach(); err != nil {
		return err
	}
	if c.unsynced {
		if err := c.sync(); err != nil {
			return err
		}
	}
	_, err := c.receive(nil)
	return err
}

// roundTrip is exchange, and also returns the failure of a request.
func (c *conn) roundTrip() error {
	if err := c.exchange(); err != nil {
		return err
	}
	return c.takeFailure().err
}

// ask collects a statement without arguments whose rows do not matter.
func (c *conn) ask(sql string, owner any) {
	e := c.entry(sql)
	p := e.find(nil)
	if p == nil {
		p = c.declare(e, nil, owner)
	}
	c.bind(p, "", nil, nil, owner)
	c.request(request{kind: askExecute, owner: owner}, executeAll)
}

// bind collects the binding of arguments to a portal.
func (c *conn) bind(p *prepared, portal string, args []arg, buffer []byte, owner any) {
	values, formats := make([][]byte, len(args)), make([]int16, len(args))
	for i, a := range args {
		values[i], formats[i] = a.encode(buffer, p.oids[i])
	}
	c.request(request{kind: askBind, owner: owner}, &pgproto3.Bind{
		DestinationPortal: portal, PreparedStatement: p.name,
		Parameters: values, ParameterFormatCodes: formats, ResultFormatCodes: p.formats,
	})
}

// run runs a statement without arguments whose rows do not matter, in a round trip.
func (c *conn) run(sql string) error {
	c.ask(sql, nil)
	return c.roundTrip()
}

// portal returns a free name for a portal.
func (c *conn) portal() string {
	if n := len(c.portals); n > 0 {
		name := c.portals[n-1]
		c.portals = c.portals[:n-1]
		return name
	}
	c.named++
	return "p" + strconv.FormatUint(c.named, 36)
}

func (c *conn) close() {
	_ = c.pg.Conn().Close() // nothing is to be lost: the server rolls back
}
