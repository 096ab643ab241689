package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/metrics"
)

const (
	// maxConnections bounds the connections even if the system allows more.
	maxConnections = 60_000
	// A quarter of the files, within these bounds, is reserved for database, log, avatars, gateways and backups. An idle
	// Kontor has about 25 open.
	minFileReserve = 48
	maxFileReserve = 128
	// minConnections are accepted even if too few files remain: a failed accept is retried.
	minConnections = 8
	// unknownFileLimit is assumed when the system reports no limit.
	unknownFileLimit = 1024

	// One network may hold 1/networkShare of all connections, and minPerNetwork in any case, since an office may be behind
	// one address.
	networkShare  = 4
	minPerNetwork = 16

	// acceptPause and maxAcceptPause bound the pause after a failed accept, which doubles while accepts fail.
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// connectionMetrics count connections.
type connectionMetrics struct {
	open     atomic.Int64
	rejected atomic.Uint64
}

// add adds the series to a scrape.
func (m *connectionMetrics) add(s *metrics.Scrape) {
	s.Gauge("kontor_connections_open", "Open connections, event streams included.", float64(m.open.Load()))
	s.Counter("kontor_connections_refused_total", "Connections refused because too many were open.", float64(m.rejected.Load()))
}

// connectionsFor returns the limit of connections of a process with a limit of open files.
func connectionsFor(files int) int {
	reserve := max(minFileReserve, min(files/4, maxFileReserve))
	return max(minConnections, min(files-reserve, maxConnections))
}

// connectionLimiter is a listener that limits the open connections, in all and of one network. It answers surplus connections
// with 503 and closes them. Errors of the system do not end it, only Close does.
//
// Hijacked connections, such as event streams, count until they are closed.
type connectionLimiter struct {
	net.Listener
	limit   int
	share   int
	exempt  func(netip.Addr) bool // peers without a share, such as proxies
	answer  []byte                // to a surplus connection
	metrics *connectionMetrics
	log     *slog.Logger
	pause   func(time.Duration) // waits after a failed accept, or until Close
	closed  chan struct{}
	once    sync.Once
	plain   bool // the connections carry HTTP itself, not TLS

	lingering chan struct{} // one slot for each rejected connection that is still open

	mu       sync.Mutex
	open     int
	networks map[netip.Prefix]int
}

// maxLingering bounds the rejected connections that stay open until the client has read the answer. They use files of the
// reserve.
const maxLingering = minFileReserve / 6

func newConnectionLimiter(listener net.Listener, limit int, exempt func(netip.Addr) bool, answer []byte, metrics *connectionMetrics, log *slog.Logger) *connectionLimiter {
	l := &connectionLimiter{
		Listener: listener, limit: limit, share: max(minPerNetwork, limit/networkShare), exempt: exempt, answer: answer, metrics: metrics, log: log,
		closed: make(chan struct{}), lingering: make(chan struct{}, maxLingering), networks: map[netip.Prefix]int{},
	}
	l.pause = func(d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-l.closed:
		}
	}
	return l
}

// Accept returns the next connection within the limits. It fails only after Close.
func (l *connectionLimiter) Accept() (net.Conn, error) {
	pause := acceptPause
	for {
		connection, err := l.Listener.Accept()
		if err == nil {
			pause = acceptPause
			if counted, ok := l.acquire(connection); ok {
				return counted, nil
			}
			l.reject(connection)
			continue
		}
		if l.isClosed() {
			return nil, net.ErrClosed
		}
		// Errors of the system are temporary: no files left (EMFILE, ENFILE), no memory, a client that disconnected
		// (ECONNABORTED). Any other error is the end of the listener.
		if _, ok := errors.AsType[syscall.Errno](err); !ok || errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if pause == maxAcceptPause || pause == acceptPause {
			l.log.Warn("a connection could not be accepted", "err", err, "pause", pause.String())
		}
		l.pause(pause)
		pause = min(2*pause, maxAcceptPause)
	}
}

// Close ends Accept.
func (l *connectionLimiter) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func (l *connectionLimiter) isClosed() bool {
	select {
	case <-l.closed:
		return true
	default:
		return false
	}
}

// acquire counts a connection. It reports false when the limit is reached.
func (l *connectionLimiter) acquire(connection net.Conn) (net.Conn, bool) {
	network, shared := l.network(connection.RemoteAddr())
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.limit || shared && l.networks[network] >= l.share {
		return nil, false
	}
	l.open++
	if shared {
		l.networks[network]++
	}
	l.metrics.open.Add(1)
	counts := counting{plain: l.plain, release: sync.OnceFunc(func() { l.release(network, shared) })}
	if tcp, ok := connection.(*net.TCPConn); ok {
		return &countedTCP{tcp, counts}, true
	}
	return &counted{connection, counts}, true
}

// network returns the network for which a connection counts. Loopback, proxies and other addresses than IP have none.
func (l *connectionLimiter) network(address net.Addr) (network netip.Prefix, shared bool) {
	peer, ok := netip.AddrFromSlice(addressBytes(address))
	if peer = peer.Unmap(); !ok || l.exempt(peer) {
		return network, false
	}
	// A subscriber may get a /48: with one /64 for each connection, a share by /64 would have no effect.
	const v4, v6 = 32, 48
	bits := v4
	if peer.Is6() {
		bits = v6
	}
	network, err := peer.Prefix(bits)
	return network, err == nil
}

func (l *connectionLimiter) release(network netip.Prefix, shared bool) {
	l.metrics.open.Add(-1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
	if !shared {
		return
	}
	if l.networks[network]--; l.networks[network] == 0 {
		delete(l.networks, network)
	}
}

// lingerTime is how long a rejected client has to read the answer.
const lingerTime = time.Second

// reject answers a surplus connection and closes it. A connection that is closed with unread bytes loses the answer, so
// a bounded number of connections is read to the end first.
func (l *connectionLimiter) reject(connection net.Conn) {
	l.metrics.rejected.Add(1)
	_ = connection.SetDeadline(time.Now().Add(lingerTime))
	_, err := connection.Write(l.answer) // fits into the empty buffer of the system: does not block
	half, ok := connection.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = connection.Close()
		return
	}
	select {
	case l.lingering <- struct{}{}:
	default:
		_ = connection.Close()
		return
	}
	go func() {
		defer func() { <-l.lingering }()
		defer connection.Close()
		const maxDiscarded = 64 << 10
		buffer := make([]byte, 2<<10)
		for discarded := 0; discarded < maxDiscarded; {
			n, err := connection.Read(buffer)
			if err != nil {
				return
			}
			discarded += n
		}
	}()
}

// counting is the part of a connection that counts until it is closed.
type counting struct {
	carried
	framing framing
	plain   bool // see [connectionLimiter]
	release func()
}

// read reads what has arrived, or waits for it until the deadline.
func (c *counting) read(from net.Conn, b []byte) (int, error) {
	if c.plain {
		return c.framing.read(from, b)
	}
	return from.Read(b)
}

// end closes the connection.
func (c *counting) end(connection net.Conn) error {
	defer c.release()
	return connection.Close()
}

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	counting
}

func (c *counted) Read(b []byte) (int, error) { return c.read(c.Conn, b) }

// Close closes the connection.
func (c *counted) Close() error { return c.end(c.Conn) }

// countedTCP is counted for TCP connections, whose further methods the engine and the streams use.
type countedTCP struct {
	*net.TCPConn
	counting
}

func (c *countedTCP) Read(b []byte) (int, error) { return c.read(c.TCPConn, b) }

// Close closes the connection.
func (c *countedTCP) Close() error { return c.end(c.TCPConn) }

// transfers implements [endpoint.Transfers].
type transfers struct {
	server  *Server
	exports *exportLimit
}

func newTransfers(s *Server) *transfers { return &transfers{s, newExportLimit()} }

// BeginExport takes a place.
func (t *transfers) BeginExport(request *endpoint.Info) (release func(), err error) {
	return t.exports.acquire(principal(request), request.Caller.Staff())
}

// Caller returns the caller as of now. The holder of an API key has no session.
func (t *transfers) Caller(ctx context.Context, caller *access.Caller) (*access.Caller, error) {
	s := t.server
	if s.Memory != nil && !s.Memory.Remembers() {
		if err := s.Memory.Renew(ctx); err != nil {
			return nil, apierr.AuthUnavailable.Wrap(err)
		}
	}
	if caller.UserID != "" {
		found, err := s.Auth.Session(ctx, caller)
		if err != nil {
			return nil, err
		}
		caller = found
	}
	if s.Policy != nil {
		caller = caller.WithPolicy(s.Policy.Load())
	}
	return caller, nil
}

// Principal names the caller to the database.
func (t *transfers) Principal(ctx context.Context, request *endpoint.Info) context.Context {
	if t.server.CallerKey == nil {
		return ctx
	}
	return context.WithValue(ctx, t.server.CallerKey, principal(request))
}

// exportLimit bounds the exports and tables that a node writes at the same time: one for each caller, and half of all for callers
// who are not staff. So customers cannot keep staff from exporting.
type exportLimit struct {
	mu      sync.Mutex
	callers map[string]bool // whether they are staff
	others  int             // callers who are not staff
	most    int
}

func newExportLimit() *exportLimit {
	return &exportLimit{callers: map[string]bool{}, most: max(4, 2*runtime.GOMAXPROCS(0))}
}

// acquire returns apierr.TooManyAtOnce without a free place. release may be called more than once.
func (l *exportLimit) acquire(caller string, staff bool) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, running := l.callers[caller]
	if running || len(l.callers) == l.most || !staff && l.others == l.most/2 {
		return nil, apierr.TooManyAtOnce.RetryAfter(time.Second)
	}
	l.callers[caller] = staff
	l.count(staff, 1)
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.callers, caller)
		l.count(staff, -1)
	}), nil
}

func (l *exportLimit) count(staff bool, n int) {
	if !staff {
		l.others += n
	}
}

// tlsListener speaks TLS on the connections of another listener. A handshake happens in the goroutine of the connection, within
// the limits of connections and of readTimeout.
type tlsListener struct {
	net.Listener
	config *tls.Config
}

// Accept returns the next connection.
func (l tlsListener) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tlsConnection{Conn: tls.Server(connection, l.config)}, nil
}

// tlsConnection answers a client that does not speak TLS.
type tlsConnection struct {
	*tls.Conn
	carried
	framing framing
}

// Read reads what has arrived, or waits for it until the deadline.
func (c *tlsConnection) Read(b []byte) (int, error) { return c.framing.read(c.Conn, b) }

// Handshake runs the handshake, unless it has run.
func (c *tlsConnection) Handshake() error {
	err := c.Conn.Handshake() //nolint:noctx // the engine calls it, with a deadline
	if plain, ok := errors.AsType[tls.RecordHeaderError](err); ok && plain.Conn != nil && looksLikeHTTP(plain.RecordHeader) {
		_, _ = io.WriteString(plain.Conn, plainAnswer) // the connection is closed in any case
	}
	return err
}

// SetWriteBuffer sets the size of the buffer of the operating system.
func (c *tlsConnection) SetWriteBuffer(bytes int) error {
	if tcp, ok := c.NetConn().(interface{ SetWriteBuffer(bytes int) error }); ok {
		return tcp.SetWriteBuffer(bytes)
	}
	return nil
}

func looksLikeHTTP(start [5]byte) bool {
	switch string(start[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "PATCH", "DELET", "OPTIO":
		return true
	}
	return false
}

const plainText = "This address expects HTTPS.\n"

var plainAnswer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " + strconv.Itoa(len(plainText)) +
	"\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n" + plainText
