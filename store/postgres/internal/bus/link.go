package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// row holds the columns of a row as texts; NULL is empty.
type row []string

// link is a connection on which statements are sent while notifications and answers arrive. Answers come in the order of
// the statements. One goroutine calls receive, which calls everything that handles an answer or a notification.
type link struct {
	conn     net.Conn
	frontend *pgproto3.Frontend // Receive and Send share nothing
	pid      uint32             // of the server's process, as the server has introduced itself
	notified func(channel, payload string) error

	mu      sync.Mutex // held while a statement is sent
	pending []*request
	failed  atomic.Pointer[error]
}

// answer handles the answer to a statement, on the goroutine of receive. Its error ends the connection.
type answer func(rows []row, err error) error

// request is a statement that was sent.
type request struct {
	answer answer
	rows   []row
	err    error
}

const (
	// maxMessage bounds a message of the server. The longest is a row of a node.
	maxMessage = 1 << 20
	// sendLimit bounds the time in which the server takes a statement.
	sendLimit = 5 * time.Second
)

// newLink takes over a connection that is idle.
func newLink(conn *pgconn.PgConn, notified func(channel, payload string) error) (*link, error) {
	h, err := conn.Hijack()
	if err != nil {
		return nil, err
	}
	h.Frontend.SetMaxBodyLen(maxMessage)
	return &link{conn: h.Conn, frontend: h.Frontend, pid: h.PID, notified: notified}, nil
}

// exec sends a prepared statement, whose arguments are texts. The answer is handled by the goroutine of receive.
func (l *link) exec(name string, answer answer, args ...string) error {
	values := make([][]byte, len(args))
	for i, arg := range args {
		values[i] = []byte(arg)
	}
	return l.send(&request{answer: answer}, func() {
		l.frontend.SendBind(&pgproto3.Bind{PreparedStatement: name, Parameters: values})
		l.frontend.SendExecute(&pgproto3.Execute{})
		l.frontend.SendSync(&pgproto3.Sync{})
	})
}

// prepare compiles a statement under a name.
func (l *link) prepare(name, sql string, answer answer) error {
	return l.send(&request{answer: answer}, func() {
		l.frontend.SendParse(&pgproto3.Parse{Name: name, Query: sql})
		l.frontend.SendSync(&pgproto3.Sync{})
	})
}

// query sends statements without arguments. Several of them are one transaction.
func (l *link) query(sql string, answer answer) error {
	return l.send(&request{answer: answer}, func() { l.frontend.SendQuery(&pgproto3.Query{String: sql}) })
}

func (l *link) send(r *request, write func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reason := l.failed.Load(); reason != nil { // set before finish takes pending
		return *reason
	}
	l.pending = append(l.pending, r)
	write()
	if err := l.conn.SetWriteDeadline(time.Now().Add(sendLimit)); err != nil {
		return err
	}
	return l.frontend.Flush()
}

// call sends a prepared statement and waits for its answer.
func (l *link) call(ctx context.Context, name string, args ...string) error {
	_, err := l.all(ctx, func(answer answer) error { return l.exec(name, answer, args...) })
	return err
}

// step sends a statement.
type step func(answer answer) error

// all sends statements in one go and waits until all are answered. It returns their rows, or the first error.
func (l *link) all(ctx context.Context, steps ...step) ([]row, error) {
	var mu sync.Mutex
	var found []row
	var failure error
	left, done := len(steps), make(chan struct{})
	answered := func(rows []row, err error) error {
		mu.Lock()
		defer mu.Unlock()
		found = append(found, rows...)
		if failure == nil {
			failure = err
		}
		if left--; left == 0 {
			close(done)
		}
		return nil
	}
	for _, send := range steps {
		if err := send(answered); err != nil {
			return nil, err
		}
	}
	select {
	case <-done:
		return found, failure
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// receive handles what the server sends, until the connection ends. It returns the reason, never nil.
func (l *link) receive() error {
	for {
		message, err := l.frontend.Receive()
		if err == nil {
			err = l.handle(message)
		}
		if err != nil {
			return l.finish(err)
		}
	}
}

func (l *link) handle(message pgproto3.BackendMessage) error {
	switch m := message.(type) {
	case *pgproto3.NotificationResponse:
		return l.notified(m.Channel, m.Payload)
	case *pgproto3.DataRow:
		if r := l.current(); r != nil {
			values := make(row, len(m.Values))
			for i, value := range m.Values {
				values[i] = string(value)
			}
			r.rows = append(r.rows, values)
		}
	case *pgproto3.ErrorResponse:
		err := pgconn.ErrorResponseToPgError(m)
		if r := l.current(); r != nil && m.SeverityUnlocalized != "FATAL" {
			r.err = err
			return nil
		}
		return err
	case *pgproto3.ReadyForQuery:
		l.mu.Lock()
		if len(l.pending) == 0 {
			l.mu.Unlock()
			return fmt.Errorf("the server answered a statement that was not sent")
		}
		r := l.pending[0]
		l.pending = l.pending[1:]
		l.mu.Unlock()
		return r.answer(r.rows, r.err)
	}
	return nil
}

// current returns the statement that the server answers now, or nil.
func (l *link) current() *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.pending) == 0 {
		return nil
	}
	return l.pending[0]
}

// abort ends the connection, which ends receive. The first reason counts.
func (l *link) abort(reason error) {
	l.failed.CompareAndSwap(nil, &reason)
	_ = l.conn.Close() // what was not sent is lost anyway
}

// finish ends the connection and all statements without an answer. It returns the first reason.
func (l *link) finish(reason error) error {
	l.abort(reason)
	reason = *l.failed.Load()
	l.mu.Lock()
	pending := l.pending
	l.pending = nil
	l.mu.Unlock()
	for _, r := range pending {
		_ = r.answer(nil, reason) // the connection has ended
	}
	return reason
}

var errPool = errors.New("the address of the database is that of a connection pool in transaction mode, on which LISTEN does not work; " +
	"use the address of PostgreSQL itself, or a pool in session mode")

// arrivalLimit is how long a notification may take to arrive.
const arrivalLimit = 3 * time.Second

// RejectPool returns an error when notifications do not arrive on a connection, because a pool lends the connection to the
// server for single transactions. conn must be idle. connect returns another connection to the same address.
func RejectPool(ctx context.Context, conn *pgconn.PgConn, connect func(context.Context) (*pgconn.PgConn, error)) error {
	results, err := conn.Exec(ctx, `SELECT pg_backend_pid()`).ReadAll()
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return fmt.Errorf("ask for the process of the database server: %w", err)
	}
	if string(results[0].Rows[0][0]) == strconv.FormatUint(uint64(conn.PID()), 10) {
		return nil // the process that has accepted the connection serves it
	}
	channel := "kontor_probe_" + strings.ToLower(rand.Text())
	if _, err := conn.Exec(ctx, `LISTEN `+channel).ReadAll(); err != nil {
		return fmt.Errorf("listen for a notification: %w", err)
	}
	other, err := connect(ctx)
	if err != nil {
		return err
	}
	defer other.Close(ctx) //nolint:errcheck // it has done its work
	if _, err := other.Exec(ctx, `NOTIFY `+channel).ReadAll(); err != nil {
		return fmt.Errorf("send a notification: %w", err)
	}
	waiting, cancel := context.WithTimeout(ctx, arrivalLimit)
	defer cancel()
	if err := conn.WaitForNotification(waiting); err != nil {
		if ctx.Err() != nil || !pgconn.Timeout(err) {
			return fmt.Errorf("wait for a notification: %w", err)
		}
		return errPool
	}
	_, err = conn.Exec(ctx, `UNLISTEN `+channel).ReadAll()
	return err
}

// rejectPool does the same for the connections of the bus.
func (s *session) rejectPool(ctx context.Context) error {
	conn, err := s.bus.config.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it has done its work
	return RejectPool(ctx, conn, s.bus.config.Connect)
}
