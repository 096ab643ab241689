package sse

import (
	"net"
	"sync"
	"time"
)

// reason says why a stream ended.
type reason int

const (
	ended   reason = iota // by the hub
	left                  // the client closed it, or its line is dead
	slow                  // the client did not read
	revoked               // session or rights ended
)

// Stream is one open event stream.
type Stream struct {
	User     string
	Language string
	Data     any // the caller's own

	hub     *Hub
	expires time.Time // of the token that opened it

	writing sync.Mutex // held during a write; taken before mu

	mu      sync.Mutex
	conn    net.Conn
	beat    time.Time // of the next heartbeat
	pending []Frame
	bytes   int
	last    Position // of what was handed over or replayed
	newest  Position // of what was published while the stream was not live
	live    bool
	busy    bool // stands in the queue, or is being written to
	final   bool // nothing more after pending
	gone    bool
}

// Attach gives the stream its connection, which belongs to it from now on. The client's leaving is noticed from here.
// It reports false, and closes the connection, when the stream has ended meanwhile.
func (s *Stream) Attach(conn net.Conn) bool {
	s.mu.Lock()
	gone := s.gone
	if !gone {
		s.conn = conn
		s.beat = time.Now().Add(s.hub.options.Heartbeat)
	}
	s.mu.Unlock()
	if gone {
		_ = conn.Close() // nobody is left to be told
		return false
	}
	boundSilence(conn, s.hub.options.Heartbeat)
	go s.watch(conn)
	return true
}

// maxReceived bounds what a client may send on a stream; it has no reason to send anything.
const maxReceived = 64 << 10

// watch waits for the client to leave.
func (s *Stream) watch(conn net.Conn) {
	var sink [32]byte
	for received := 0; received < maxReceived; {
		n, err := conn.Read(sink[:])
		if err != nil {
			break
		}
		received += n
	}
	s.end(left)
}

// Write writes at once, before the stream is live: head, first frames, what was missed. It reports whether the client
// has taken it; otherwise the stream has ended.
func (s *Stream) Write(b []byte) bool {
	if _, err := s.write(b, patience); err != nil {
		s.end(left)
		return false
	}
	return true
}

// Live puts the stream behind a position up to which everything has been written, so that what is published from now on
// reaches it. It reports false when something newer was published meanwhile: read that, write it, and try again.
func (s *Stream) Live(last Position) bool {
	s.mu.Lock()
	if s.newest.After(last) && !s.gone && !s.final {
		s.mu.Unlock()
		return false
	}
	s.live, s.last = true, last
	wake := s.wake()
	s.mu.Unlock()
	if wake {
		s.hub.ready.add(s)
	}
	return true
}

// Newest is the position of the newest frame that was published while the stream was not live.
func (s *Stream) Newest() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// Ended reports whether the stream is over.
func (s *Stream) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// End ends the stream.
func (s *Stream) End() { s.end(ended) }

// push leaves a frame for the writers. It reports whether the stream has to be put into their queue. After the end of
// the token nothing is taken; the next beat ends the stream.
func (s *Stream) push(f Frame, clock time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.final || s.expired(clock) {
		return false
	}
	ordered := f.Position != Position{}
	if !s.live {
		if ordered && f.Position.After(s.newest) {
			s.newest = f.Position
		}
		return false
	}
	if ordered {
		if !f.Position.After(s.last) {
			return false
		}
		s.last = f.Position
	}
	if len(s.pending) >= maxPending || s.bytes+f.size() > maxPendingBytes {
		go s.end(slow)
		return false
	}
	s.pending = append(s.pending, f)
	s.bytes += f.size()
	return s.wake()
}

// finish leaves the last frame. The stream ends behind it.
func (s *Stream) finish(frame []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || s.final {
		return false
	}
	s.final = true
	s.pending = append(s.pending, Frame{Shared: frame})
	return s.wake()
}

// wake notes that the stream goes into the queue. The lock is held.
func (s *Stream) wake() bool {
	if !s.live || s.busy || s.gone || len(s.pending) == 0 {
		return false
	}
	s.busy = true
	return true
}

// take gives the writer everything that waits. Without anything the stream is no longer busy.
func (s *Stream) take() (frames []Frame, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone || len(s.pending) == 0 {
		s.busy = false
		return nil, false
	}
	frames, s.pending, s.bytes = s.pending, nil, 0
	return frames, s.final
}

// end closes the connection and takes the stream out of the hub, once. When end returns, whoever has ended the stream,
// nothing more is written to it: a write that is under way is cut short, and end waits for it.
func (s *Stream) end(why reason) {
	s.mu.Lock()
	first, conn := !s.gone, s.conn
	s.gone, s.pending = true, nil
	if conn != nil {
		_ = conn.SetWriteDeadline(longAgo) // a connection that is closed needs none
	}
	s.mu.Unlock()
	s.writing.Lock() // a writer that comes later sees that the stream is gone
	if conn != nil {
		if why == revoked {
			discardUnsent(conn)
		}
		_ = conn.Close() // the peer may be gone already
	}
	s.writing.Unlock()
	if first {
		s.hub.remove(s)
		s.hub.counts.end(why)
	}
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// write writes within a time. It returns net.ErrClosed when the stream has ended.
func (s *Stream) write(b []byte, d time.Duration) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	if s.gone {
		s.mu.Unlock()
		return 0, net.ErrClosed
	}
	conn, err := s.conn, s.conn.SetWriteDeadline(time.Now().Add(d))
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return conn.Write(b)
}
