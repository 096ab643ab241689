package sse

import (
	"bytes"
	"errors"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// queue contains the streams with waiting frames, each once.
type queue struct {
	mu     sync.Mutex
	more   *sync.Cond
	list   []*Stream
	next   int
	closed bool
}

func (q *queue) init() { q.more = sync.NewCond(&q.mu) }

func (q *queue) add(streams ...*Stream) {
	if len(streams) == 0 {
		return
	}
	q.mu.Lock()
	q.list = append(q.list, streams...)
	q.mu.Unlock()
	if len(streams) == 1 {
		q.more.Signal()
	} else {
		q.more.Broadcast()
	}
}

// get waits for a stream. It reports false when the queue is closed.
func (q *queue) get() (*Stream, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.next == len(q.list) && !q.closed {
		q.more.Wait()
	}
	if q.closed {
		return nil, false
	}
	s := q.list[q.next]
	q.list[q.next] = nil
	if q.next++; q.next == len(q.list) {
		const keep = 1 << 12 // entries
		if q.next = 0; cap(q.list) > keep {
			q.list = nil
		}
		q.list = q.list[:0]
	}
	return s, true
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.more.Broadcast()
}

// fastWriteTimeout is how long a shared writer waits for a client that does not read. Another goroutine then continues, so that
// a slow client does not delay others.
const fastWriteTimeout = 5 * time.Millisecond

// heldPause is the time between two looks at whether frames may be written again.
const heldPause = 20 * time.Millisecond

// write is one of the writers.
func (h *Hub) write() {
	defer func() {
		if cause := recover(); cause != nil {
			h.options.Log.Error("panic while writing to streams", "cause", cause, "stack", string(debug.Stack()))
			h.stopped.Go(h.write)
		}
	}()
	var buffer []byte
	with := newSender()
	for {
		s, ok := h.ready.get()
		if !ok {
			return
		}
		buffer = s.flush(buffer, with)
	}
}

// flush writes all waiting frames of the stream with one call. buffer is reused.
func (s *Stream) flush(buffer []byte, with *sender) []byte {
	for {
		if !s.hub.options.MayWrite() {
			time.AfterFunc(heldPause, func() { s.hub.ready.add(s) }) // still busy
			return buffer
		}
		frames, final := s.take()
		if frames == nil {
			return buffer
		}
		buffer = buffer[:0]
		for _, f := range frames {
			buffer = append(append(buffer, f.Own...), f.Shared...)
		}
		if isSecure(s.conn) {
			go s.flushSlowly(bytes.Clone(buffer), frames, final)
			return buffer
		}
		n, err := s.writeNow(buffer, with)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			rest := append([]byte(nil), buffer[n:]...)
			go s.flushSlowly(rest, frames, final)
			return buffer
		}
		if !s.wrote(frames, final, err) {
			return buffer
		}
	}
}

// isSecure reports whether a connection has TLS. A write of crypto/tls that has timed out cannot be continued, so it must not
// have the timeout of a shared writer.
func isSecure(conn net.Conn) bool {
	_, ok := conn.(interface{ NetConn() net.Conn })
	return ok
}

// flushSlowly writes to a client that is slow or has TLS.
func (s *Stream) flushSlowly(rest []byte, frames []Frame, final bool) {
	_, err := s.write(rest, writeTimeout)
	if s.wrote(frames, final, err) {
		s.hub.ready.add(s) // still busy: a writer writes the frames that came meanwhile
	}
}

// wrote records written frames and reports whether the stream continues.
func (s *Stream) wrote(frames []Frame, final bool, err error) bool {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.end(slow)
	case err != nil:
		s.end(left)
	}
	if err != nil {
		return false
	}
	s.hub.counts.frames.Add(uint64(len(frames)))
	var positions []Position // heartbeats have none
	for _, f := range frames {
		if f.Position != (Position{}) {
			positions = append(positions, f.Position)
		}
	}
	if len(positions) > 0 {
		s.hub.options.Wrote(positions)
	}
	if final {
		s.end(ended)
	}
	return !final
}
