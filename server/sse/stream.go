// Package sse writes event streams (HTML standard, section 9.2): frames, the head of the response, and a hub that has the open
// streams of all users and writes to them without waiting for any client.
//
// A stream costs its connection and a few hundred bytes. All streams share a few writer goroutines and, on Linux, one that
// notices when clients disconnect. Callers decide which frames exist, who may see them, and which frames a client missed before
// it opened the stream.
package sse

import (
	"bytes"
	"net"
	"net/textproto"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// reason is the reason why a stream ended.
type reason int

const (
	ended   reason = iota // by the hub
	left                  // the client closed it, or its connection is dead
	slow                  // the client did not read
	revoked               // session or permissions ended
	reasons
)

// Stream is one open event stream.
type Stream struct {
	User     string
	Language string
	Data     any // for the caller of Open

	hub     *Hub
	expires time.Time     // of the token that opened it
	polled  atomic.Uint64 // number in the poller; 0 means that a goroutine reads the connection

	writing sync.Mutex // held during a write; taken before mu

	mu      sync.Mutex
	conn    net.Conn
	raw     syscall.RawConn // of conn, to send directly; nil where that is not possible
	beat    time.Time       // of the next heartbeat
	pending []Frame
	bytes   int
	last    Position // of the newest frame that was queued or replayed
	newest  Position // of the newest frame that was published while the stream was not live
	live    bool
	busy    bool // is in the queue, or is being written to
	final   bool // nothing more after pending
	gone    bool
}

// Attach sets the connection, which the stream owns from now on, and starts to watch for the client's disconnection. It
// reports false, and closes the connection, when the stream has ended meanwhile.
func (s *Stream) Attach(conn net.Conn) bool {
	s.mu.Lock()
	gone := s.gone
	if !gone {
		s.conn, s.raw = conn, socketOf(conn)
		s.beat = time.Now().Add(s.hub.options.Heartbeat)
	}
	s.mu.Unlock()
	if gone {
		_ = conn.Close() // the stream has ended
		return false
	}
	setUserTimeout(socketOf(conn), s.hub.options.Heartbeat)
	if !s.hub.poller.add(s, conn) {
		go s.watch(conn)
	}
	return true
}

// maxReceived bounds the bytes that a client may send on a stream; it has no reason to send any.
const maxReceived = 64 << 10

// watch reads what the client sends until it disconnects. Streams of clients that send nothing have no such goroutine where the
// system has a poller.
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

// Write writes immediately, before the stream is live: head, first frames and missed frames. It reports whether the client has
// accepted the data; otherwise the stream has ended.
func (s *Stream) Write(b []byte) bool {
	if _, err := s.write(b, writeTimeout); err != nil {
		s.end(left)
		return false
	}
	return true
}

// Live makes the stream receive published frames after a position up to which everything has been written. It reports false
// when newer frames were published meanwhile: the caller must read and write these, and call Live again.
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

// Newest returns the position of the newest frame that was published while the stream was not live.
func (s *Stream) Newest() Position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// Ended reports whether the stream has ended.
func (s *Stream) Ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// End ends the stream.
func (s *Stream) End() { s.end(ended) }

// push queues a frame for the writers. It reports whether the stream must be added to their queue. After the token has
// expired, it drops frames; the next beat ends the stream.
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

// finish queues the last frame. The stream ends after it.
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

// wake marks the stream as queued. The caller must hold the lock.
func (s *Stream) wake() bool {
	if !s.live || s.busy || s.gone || len(s.pending) == 0 {
		return false
	}
	s.busy = true
	return true
}

// take returns all waiting frames. Without any, the stream is no longer busy.
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

// end closes the connection and removes the stream from the hub, once. When end returns, nothing more is written to the stream,
// even if another caller has ended it: a running write is cut short, and end waits for it.
func (s *Stream) end(why reason) {
	s.mu.Lock()
	first, conn := !s.gone, s.conn
	s.gone, s.pending = true, nil
	if conn != nil {
		_ = conn.SetWriteDeadline(past) // a closed connection needs no deadline
	}
	s.mu.Unlock()
	s.writing.Lock() // later writers see that the stream has ended
	if conn != nil {
		if why == revoked {
			discardUnsent(conn)
		}
		_ = conn.Close() // the peer may have closed it
	}
	s.writing.Unlock()
	if first {
		s.hub.poller.remove(s)
		s.hub.remove(s)
		s.hub.counts.ended[why].Add(1)
		s.hub.options.Ended(s.User)
	}
}

// past is a deadline that has passed.
var past = time.Unix(1, 0)

// write writes with a timeout. It returns net.ErrClosed when the stream has ended.
func (s *Stream) write(b []byte, d time.Duration) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.setDeadline(time.Now().Add(d)); err != nil {
		return 0, err
	}
	n, err := s.conn.Write(b)
	if err == nil {
		err = s.setDeadline(time.Time{}) // writeNow has none
	}
	return n, err
}

// setDeadline sets the deadline of writes, unless the stream has ended: then the deadline of end remains.
func (s *Stream) setDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		return net.ErrClosed
	}
	return s.conn.SetWriteDeadline(at)
}

// ownHeaders are the headers that a stream sets itself; those of the response are ignored.
var ownHeaders = map[string]bool{
	"Content-Type": true, "Content-Length": true, "Content-Encoding": true, "Transfer-Encoding": true, "Cache-Control": true,
	"Connection": true, "X-Accel-Buffering": true, "Vary": true, "Etag": true,
}

// Head returns the head of the response, with the headers that the response has already, such as those of CORS. The body has no
// length: it ends with the connection.
func Head(response *fasthttp.ResponseHeader) []byte {
	b := []byte("HTTP/1.1 200 OK\r\n" +
		"Content-Type: text/event-stream\r\n" +
		"Cache-Control: no-cache, no-transform\r\n" +
		"Connection: keep-alive\r\n" +
		"X-Accel-Buffering: no\r\n" +
		"Vary: Origin\r\n")
	for name, value := range response.All() {
		if canonical := textproto.CanonicalMIMEHeaderKey(string(name)); !ownHeaders[canonical] {
			b = appendHeader(b, string(name), string(value))
		}
	}
	return append(b, "\r\n"...)
}

func appendHeader(b []byte, name, value string) []byte {
	b = append(append(b, clean(name)...), ": "...)
	return append(append(b, clean(value)...), "\r\n"...)
}

// Position is a position in the order of the frames of one user. The zero Position is before all frames.
type Position struct {
	At int64
	ID string
}

// After reports whether p is after q.
func (p Position) After(q Position) bool { return p.At > q.At || p.At == q.At && p.ID > q.ID }

// Frame is written to a stream as a whole. Shared may belong to the frames of many streams and must not be changed.
type Frame struct {
	Position Position // zero for frames that are not part of the order
	Own      []byte   // written before Shared
	Shared   []byte
}

func (f Frame) size() int { return len(f.Own) + len(f.Shared) }

// Event returns a whole frame. An empty id is omitted.
func Event(id, event string, data []byte) []byte {
	b := Begin(make([]byte, 0, len(id)+len(event)+len(data)+32), id, event)
	for i, line := range bytes.Split(bytes.ReplaceAll(data, []byte("\r"), nil), []byte("\n")) {
		if i > 0 {
			b = append(b, "data: "...)
		}
		b = append(append(b, line...), '\n')
	}
	return append(b, '\n')
}

// Begin appends the lines of a frame up to the name of the data field. It is for frames whose data is one line that consists of
// parts. [End] must follow the data.
func Begin(b []byte, id, event string) []byte {
	if id = clean(id); id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(append(b, "event: "...), clean(event)...), '\n')
	return append(b, "data: "...)
}

// End ends a frame that [Begin] began.
const End = "\n\n"

// Keepalive is a comment, which clients ignore. Writing it detects dead connections.
const Keepalive = ": keepalive\n\n"

// clean removes characters that would end the line of an id or a name, or invalidate the id.
func clean(s string) string {
	if !strings.ContainsAny(s, "\r\n\x00") {
		return s
	}
	return strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(s)
}
