package server

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

const (
	// maxConnections is the number of connections where the system would allow more.
	maxConnections = 60_000
	// A quarter of the files is left for database, log, avatars, gateways and backups, within these bounds. Kontor at rest
	// has about 25 open.
	minFileReserve = 48
	maxFileReserve = 128
	// leastConnections are taken even where that leaves too few files: a failed accept is waited over.
	leastConnections = 8
	// unknownFileLimit is assumed where the system does not say.
	unknownFileLimit = 1024

	// networkShare is the part of all connections that one network may hold, and leastPerNetwork what it may hold in any
	// case: a household or an office behind one address.
	networkShare    = 4
	leastPerNetwork = 16

	// acceptPause and maxAcceptPause bound the pause after a failed accept. It doubles while accepts fail.
	acceptPause    = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

var (
	connectionsOpen    = metrics.GetOrCreateCounter("kontor_connections_open")
	connectionsRefused = metrics.GetOrCreateCounter("kontor_connections_refused_total")
)

// connectionsFor returns how many connections a process may hold that may open so many files.
func connectionsFor(files int) int {
	reserve := max(minFileReserve, min(files/4, maxFileReserve))
	return max(leastConnections, min(files-reserve, maxConnections))
}

// gate is a listener that keeps the number of open connections below a limit and one network below its share. It answers
// surplus connections with 503 and closes them. A failed accept never ends it: only Close does.
//
// Hijacked connections count until they are closed, so event streams are included.
type gate struct {
	net.Listener
	limit  int
	share  int
	exempt func(netip.Addr) bool // peers that no share holds for
	refuse []byte                // answer to a surplus connection
	log    *slog.Logger
	pause  func(time.Duration) // waits after a failed accept, or until Close
	closed chan struct{}
	once   sync.Once

	lingering chan struct{} // a slot for each refused connection that is still being closed

	mu       sync.Mutex
	open     int
	networks map[netip.Prefix]int
}

// maxLingering bounds the refused connections that are kept until the client has read the answer. They take files of the
// reserve.
const maxLingering = minFileReserve / 6

func newGate(listener net.Listener, limit int, exempt func(netip.Addr) bool, refuse []byte, log *slog.Logger) *gate {
	g := &gate{
		Listener: listener, limit: limit, share: max(leastPerNetwork, limit/networkShare), exempt: exempt, refuse: refuse, log: log,
		closed: make(chan struct{}), lingering: make(chan struct{}, maxLingering), networks: map[netip.Prefix]int{},
	}
	g.pause = func(d time.Duration) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-g.closed:
		}
	}
	return g
}

// Accept returns the next connection that there is room for. It fails only after Close.
func (g *gate) Accept() (net.Conn, error) {
	pause := acceptPause
	for {
		connection, err := g.Listener.Accept()
		if err == nil {
			pause = acceptPause
			if counted, ok := g.admit(connection); ok {
				return counted, nil
			}
			g.turnAway(connection)
			continue
		}
		if g.isClosed() {
			return nil, net.ErrClosed
		}
		// No files left (EMFILE, ENFILE), no memory, a client that has gone (ECONNABORTED): all that the system refuses
		// passes. What it does not come from is the end of the listener.
		if _, ok := errors.AsType[syscall.Errno](err); !ok || errors.Is(err, net.ErrClosed) {
			return nil, err
		}
		if pause == maxAcceptPause || pause == acceptPause {
			g.log.Warn("a connection could not be accepted", "err", err, "pause", pause.String())
		}
		g.pause(pause)
		pause = min(2*pause, maxAcceptPause)
	}
}

// Close ends Accept.
func (g *gate) Close() error {
	g.once.Do(func() { close(g.closed) })
	return g.Listener.Close()
}

func (g *gate) isClosed() bool {
	select {
	case <-g.closed:
		return true
	default:
		return false
	}
}

// admit counts a connection, or reports that there is no room for it.
func (g *gate) admit(connection net.Conn) (net.Conn, bool) {
	network, shared := g.network(connection.RemoteAddr())
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= g.limit || shared && g.networks[network] >= g.share {
		return nil, false
	}
	g.open++
	if shared {
		g.networks[network]++
	}
	connectionsOpen.Inc()
	leave := sync.OnceFunc(func() { g.leave(network, shared) })
	if tcp, ok := connection.(*net.TCPConn); ok {
		return &countedTCP{tcp, leave}, true
	}
	return &counted{connection, leave}, true
}

// network returns the network that a connection counts for. Loopback, proxies and what has no address have none.
func (g *gate) network(address net.Addr) (network netip.Prefix, shared bool) {
	peer, ok := netip.AddrFromSlice(addressBytes(address))
	if peer = peer.Unmap(); !ok || g.exempt(peer) {
		return network, false
	}
	// A /48 is what one subscriber can get: one /64 for each connection would make shares worthless.
	const v4, v6 = 32, 48
	bits := v4
	if peer.Is6() {
		bits = v6
	}
	network, err := peer.Prefix(bits)
	return network, err == nil
}

func (g *gate) leave(network netip.Prefix, shared bool) {
	connectionsOpen.Dec()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if !shared {
		return
	}
	if g.networks[network]--; g.networks[network] == 0 {
		delete(g.networks, network)
	}
}

// lingerTime is how long a refused client has to read the answer.
const lingerTime = time.Second

// turnAway answers a surplus connection and closes it. A connection that is closed with unread bytes loses the answer, so
// a bounded number of them is read to the end first.
func (g *gate) turnAway(connection net.Conn) {
	connectionsRefused.Inc()
	_ = connection.SetDeadline(time.Now().Add(lingerTime))
	_, err := connection.Write(g.refuse) // into the empty buffer of the system: it does not wait
	half, ok := connection.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = connection.Close()
		return
	}
	select {
	case g.lingering <- struct{}{}:
	default:
		_ = connection.Close()
		return
	}
	go func() {
		defer func() { <-g.lingering }()
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

// counted is a connection that counts until it is closed.
type counted struct {
	net.Conn
	leave func()
}

// Close closes the connection.
func (c *counted) Close() error {
	err := c.Conn.Close()
	c.leave()
	return err
}

// countedTCP is a TCP connection that counts until it is closed. The engine and the streams use what only TCP has.
type countedTCP struct {
	*net.TCPConn
	leave func()
}

// Close closes the connection.
func (c *countedTCP) Close() error {
	err := c.TCPConn.Close()
	c.leave()
	return err
}
