package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"kontor/store/engine"
)

const (
	// connectWait bounds an attempt to connect to one address.
	connectWait = 5 * time.Second
	// unacknowledged is how long either end waits until the other end's system has confirmed what was sent.
	unacknowledged = 10 * time.Second
	// keepAlive finds out within half a minute that the other end of an idle connection is gone.
	keepAlive = 10 * time.Second
	// oldestServer is the oldest major version of PostgreSQL that the engine accepts.
	oldestServer = 15
)

// The settings of a session. The server ends transactions in which a stopped or disconnected node keeps the lock of all writers;
// see lockedWait.
var (
	commonSettings = map[string]string{
		"application_name": "kontor", "client_encoding": "UTF8", "standard_conforming_strings": "on", "jit": "off",
		"DateStyle": "ISO", "extra_float_digits": "1",
	}
	readerSettings = map[string]string{"default_transaction_read_only": "on", "idle_in_transaction_session_timeout": "60000"}
	writerSettings = map[string]string{
		"idle_in_transaction_session_timeout": strconv.FormatInt(lockedWait.Milliseconds(), 10),
		"lock_timeout":                        strconv.FormatInt(lockWait.Milliseconds(), 10),
		"default_transaction_isolation":       "read committed",
		"tcp_keepalives_idle":                 "5",
		"tcp_keepalives_interval":             "2",
		"tcp_keepalives_count":                "2",
		"tcp_user_timeout":                    strconv.FormatInt(unacknowledged.Milliseconds(), 10),
	}
)

const (
	// lockedWait is how long the writer may hold the lock of all writers without a statement. After that the server ends its
	// transaction, and its jobs run again.
	lockedWait = 2 * time.Second
	// lockWait is how long a statement waits for a lock: for that of all writers, while others hold it.
	lockWait = 15 * time.Second
	// writerPatience bounds a round trip of the writer, which may wait for a lock and then for the disk.
	writerPatience = lockWait + 5*time.Second
)

// address is where the database is.
type address struct{ config *pgconn.Config }

// parseAddress reads a URL as in "postgres://user:password@host:5432/database?sslmode=verify-full". Its error does not contain
// the password.
func parseAddress(url string) (address, error) {
	if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		return address{}, errors.New("the address of the database must begin with postgres://")
	}
	config, err := pgconn.ParseConfig(url)
	if err != nil {
		return address{}, fmt.Errorf("the address of the database cannot be used: %w", err)
	}
	maps.Copy(config.RuntimeParams, commonSettings)
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectWait
	}
	dialer := &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive, Count: 2},
		Control:         boundSending,
	}
	config.DialFunc = dialer.DialContext
	// A standby may lack writes that were acknowledged.
	config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	return address{config}, nil
}

// String names the database in messages.
func (a address) String() string {
	host := a.config.Host
	if !strings.HasPrefix(host, "/") {
		host = net.JoinHostPort(host, strconv.Itoa(int(a.config.Port)))
	}
	return fmt.Sprintf("the database %q at %s", a.config.Database, host)
}

// connect makes a connection with settings for its session, to the first host that is a primary and that accept returns nil for. Without
// accept it accepts all.
func (a address) connect(ctx context.Context, settings map[string]string, accept pgconn.ValidateConnectFunc) (*pgconn.PgConn, error) {
	config := a.config.Copy()
	maps.Copy(config.RuntimeParams, settings)
	isPrimary := config.ValidateConnect
	config.ValidateConnect = func(ctx context.Context, pg *pgconn.PgConn) error {
		if err := isPrimary(ctx, pg); err != nil || accept == nil {
			return err
		}
		return accept(ctx, pg)
	}
	pg, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, a.explain(err)
	}
	return pg, nil
}

// explain says in one line why there is no connection.
func (a address) explain(err error) error {
	text := err.Error()
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		text = pg.Message
	} else if network, ok := errors.AsType[*net.OpError](err); ok {
		text = network.Err.Error()
	}
	verb := "reached"
	if known, ok := errors.AsType[*unusable](err); ok {
		verb, text = "used", known.text
	} else if hasCode(err, codeNoRight, codeNoTable) {
		verb, err = "used", fmt.Errorf("%w: %w", engine.ErrReadOnly, err)
	}
	text = strings.Join(strings.Fields(text), " ")
	return &unreachable{text: a.String() + " cannot be " + verb + ": " + text, cause: err}
}

// unusable is the error of a server that answers, but whose settings or rights do not allow what the engine needs.
type unusable struct{ text string }

func (e *unusable) Error() string { return e.text }
func (e *unusable) Unwrap() error { return engine.ErrReadOnly }

var (
	errNoSchema = &unusable{"search_path names no schema that exists and that the role may use; " +
		"create the schema, grant the role USAGE on it, or correct search_path of the role or of the database"}
	errReadOnly = &unusable{"it accepts no writes of this role: default_transaction_read_only is on for the role, the database or the server"}
)

// unreachable is the error of an attempt to connect.
type unreachable struct {
	text  string
	cause error
}

func (e *unreachable) Error() string { return e.text }

func (e *unreachable) Unwrap() []error { return []error{errUnreachable, e.cause} }

// checkServer returns an error for a server that the engine cannot use.
func checkServer(a address, pg *pgconn.PgConn) error {
	if version := pg.ParameterStatus("server_version"); !isSupported(version) {
		return fmt.Errorf("%s is PostgreSQL %s; Kontor needs version %d or newer", a, version, oldestServer)
	}
	// With SQL_ASCII the server stores the bytes as they are. Statements use no functions of characters.
	if encoding := pg.ParameterStatus("server_encoding"); encoding != "UTF8" && encoding != "SQL_ASCII" {
		return fmt.Errorf("%s has the encoding %s; create it with ENCODING 'UTF8'", a, encoding)
	}
	return nil
}

// isSupported reports whether a version such as "15.8 (Debian)" or "17beta1" is new enough. One that it does not understand is.
func isSupported(version string) bool {
	digits := version[:len(version)-len(strings.TrimLeft(version, "0123456789"))]
	major, err := strconv.Atoi(digits)
	return err != nil || major >= oldestServer
}

const (
	// cancelWait bounds the request to cancel a statement, and then the wait for the statement's end. A connection that
	// needs longer is closed.
	cancelWait = time.Second
)

// canceller is the state of a request to cancel the running statement.
type canceller struct {
	mu   sync.Mutex
	done chan struct{} // closed when the request was served; nil: there is none
}

// interrupt has the server end the running statement. It may be called from any goroutine and returns at once. The holder of the
// connection calls afterCancel before others use it.
func (c *conn) interrupt() {
	if !c.busy.Load() {
		return // the next statement asks ended before it waits
	}
	c.cancel.mu.Lock()
	defer c.cancel.mu.Unlock()
	if c.cancel.done != nil {
		return
	}
	done := make(chan struct{})
	c.cancel.done = done
	go func() {
		defer close(done)
		ctx, stop := context.WithTimeout(context.Background(), cancelWait)
		defer stop()
		until := time.Now()
		if c.pg.CancelRequest(ctx) == nil {
			until = until.Add(cancelWait)
		}
		_ = c.pg.Conn().SetReadDeadline(until) // fails for a closed connection, which needs none
	}()
}

// afterCancel waits until a request to cancel can affect no later statement.
func (c *conn) afterCancel() {
	c.cancel.mu.Lock()
	done := c.cancel.done
	c.cancel.done = nil
	c.cancel.mu.Unlock()
	if done == nil {
		return
	}
	<-done
	if c.broken == nil {
		c.unsynced = true // the server ignores a signal that comes between statements; after this answer none comes any more
		_ = c.exchange()
		c.failed = failure{}
	}
	_ = c.pg.Conn().SetDeadline(time.Time{})
}

// drainMessages is how many messages of a statement that was closed early are read before the server is asked to end it.
const drainMessages = 1000

// drain reads and discards what is on its way.
func (c *conn) drain() {
	if c.unsynced {
		_ = c.sync() // the error is in c.broken
	}
	for n := 0; c.head < c.synced && c.broken == nil; n++ {
		if n == drainMessages {
			c.interrupt()
		}
		msg, err := c.front.Receive()
		if err != nil {
			_ = c.lose(err) // it is in c.broken
			return
		}
		_, _ = c.handle(msg, nil)
	}
	c.busy.Store(false)
}

// detach lets another statement use the connection: the rows that are on their way are kept in memory.
func (c *conn) detach() error {
	a := c.active
	if a == nil {
		return nil
	}
	c.active = nil
	if a.row != nil {
		a.row = cloneRow(a.row)
	}
	return c.catchUp()
}

// catchUp reads the answers to what was sent, so that the status of the transaction is known.
func (c *conn) catchUp() error {
	if c.active != nil {
		return c.detach()
	}
	_, err := c.receive(nil)
	return err
}

// keep stores a row that has arrived while another statement uses the connection.
func (s *statement) keep(row [][]byte) { s.kept = append(s.kept, cloneRow(row)) }

func cloneRow(row [][]byte) [][]byte {
	size := 0
	for _, v := range row {
		size += len(v)
	}
	buffer, clone := make([]byte, 0, size), make([][]byte, len(row))
	for i, v := range row {
		if v != nil {
			start := len(buffer)
			buffer = append(buffer, v...)
			clone[i] = buffer[start:len(buffer):len(buffer)]
		}
	}
	return clone
}
