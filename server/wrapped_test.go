package server

import (
	"net"
	"time"
)

// Wrapper changes the connections of a test.
type Wrapper struct {
	Shorten func(time.Duration) time.Duration // the time for which a read may wait
	Reads   func()                            // called before each read
	Accept  func(net.Conn)                    // takes each connection
}

// ServeWrapped is [Server.Serve] with other connections.
func (s *Server) ServeWrapped(listener net.Listener, w Wrapper) error {
	limiter := newQuietLimiter(listener, s.MaxConnections)
	limiter.plain = s.TLS == nil
	listener = wrappingListener{limiter, w}
	if s.TLS != nil {
		listener = tlsListener{listener, s.TLS}
	}
	return s.app.Listener(listener)
}

type wrappingListener struct {
	net.Listener
	w Wrapper
}

func (l wrappingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.w.Accept(c)
	return &wrapped{c.(*countedTCP), l.w}, nil
}

// wrapped is a connection whose deadlines of reads come sooner.
type wrapped struct {
	*countedTCP
	w Wrapper
}

func (c *wrapped) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		now := time.Now()
		at = now.Add(c.w.Shorten(at.Sub(now)))
	}
	return c.countedTCP.SetReadDeadline(at)
}

func (c *wrapped) Read(b []byte) (int, error) {
	c.w.Reads()
	return c.countedTCP.Read(b)
}

// Running returns the number of requests that count against the limits of their callers.
func (s *Server) Running() (n int) {
	s.concurrency.mutex.Lock()
	defer s.concurrency.mutex.Unlock()
	for _, of := range s.concurrency.running {
		n += max(of, 1) // an entry without requests would never be deleted
	}
	return n
}
