package sse

import (
	"bytes"
	"errors"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// fastWriteTimeout is how long a shared writer waits for a client that does not read, where it must wait. Another goroutine then
// continues, so that a slow client does not delay others.
const fastWriteTimeout = 5 * time.Millisecond

// heldPause is the time between two looks at whether frames may be written again.
const heldPause = 20 * time.Millisecond

// maxKeptBuffer is the size in bytes of the largest buffer that a writer keeps.
const maxKeptBuffer = 64 << 10

// writer writes the waiting frames of streams, a few streams at a time.
type writer struct {
	hub       *Hub
	streams   []*Stream // taken from the queue and not yet written to
	buffer    []byte
	frames    uint64     // written and not yet reported
	positions []Position // of these frames
}

// write runs one of the writers. After a panic another one replaces it.
func (h *Hub) write() {
	w := &writer{hub: h}
	defer func() {
		if cause := recover(); cause != nil {
			h.options.Log.Error("panic while writing to streams", "cause", cause, "stack", string(debug.Stack()))
			h.stopped.Go(h.write)
			w.abandon()
		}
	}()
	taken := make([]*Stream, 0, streamsAtOnce)
	for {
		w.streams = h.ready.take(taken)
		if len(w.streams) == 0 {
			return
		}
		for len(w.streams) > 0 {
			w.flush(w.streams[0])
			w.streams = w.streams[1:]
		}
		clear(taken[:streamsAtOnce])
		w.report()
		runtime.Gosched() // requests must not wait for thousands of frames
	}
}

// abandon ends the stream whose frames caused a panic, and leaves the others to the next writer.
func (w *writer) abandon() {
	if len(w.streams) > 0 {
		w.hub.ready.add(w.streams[1:]...)
		w.streams[0].end(ended)
	}
}

// flush writes all waiting frames of a stream with one call.
func (w *writer) flush(s *Stream) {
	for {
		if !w.hub.options.MayWrite() {
			time.AfterFunc(heldPause, func() { w.hub.ready.add(s) }) // still busy
			return
		}
		frames, final := s.take()
		if frames == nil {
			return
		}
		w.fill(frames)
		if s.raw == nil && isSecure(s.conn) {
			go s.flushSlowly(bytes.Clone(w.buffer), frames, final)
			return
		}
		n, err := s.writeNow(w.buffer)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			go s.flushSlowly(bytes.Clone(w.buffer[n:]), frames, final)
			return
		}
		if !w.wrote(s, frames, final, err) {
			return
		}
	}
}

// fill makes the frames the content of the buffer.
func (w *writer) fill(frames []Frame) {
	if cap(w.buffer) > maxKeptBuffer {
		w.buffer = nil
	}
	w.buffer = w.buffer[:0]
	for _, f := range frames {
		w.buffer = append(append(w.buffer, f.Own...), f.Shared...)
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
	w := writer{hub: s.hub}
	if w.wrote(s, frames, final, err) {
		w.report()
		s.hub.ready.add(s) // still busy: a writer writes the frames that came meanwhile
	}
}

// wrote counts written frames and reports whether the stream continues. Call report afterwards.
func (w *writer) wrote(s *Stream, frames []Frame, final bool, err error) bool {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.end(slow)
	case err != nil:
		s.end(left)
	}
	if err != nil {
		return false
	}
	w.frames += uint64(len(frames))
	for _, f := range frames {
		// Heartbeats have no position. The streams of a user often follow each other.
		if n := len(w.positions); f.Position != (Position{}) && (n == 0 || w.positions[n-1] != f.Position) {
			w.positions = append(w.positions, f.Position)
		}
	}
	if final {
		w.report() // when the last stream has ended, everything was reported
		s.end(ended)
	}
	return !final
}

// report passes on which frames were written.
func (w *writer) report() {
	w.hub.counts.frames.Add(w.frames)
	w.frames = 0
	if len(w.positions) > 0 {
		w.hub.options.Wrote(w.positions)
		w.positions = w.positions[:0]
	}
}

// queue contains the streams with waiting frames, each once.
type queue struct {
	mu     sync.Mutex
	more   *sync.Cond
	list   []*Stream // those before next were taken
	next   int
	closed bool
}

func (q *queue) init() { q.more = sync.NewCond(&q.mu) }

// add adds streams, and wakes as many writers as these keep busy.
func (q *queue) add(streams ...*Stream) {
	if len(streams) == 0 {
		return
	}
	q.mu.Lock()
	if q.next > len(q.list)/2 { // a queue that is never empty must not grow
		kept := copy(q.list, q.list[q.next:])
		clear(q.list[kept:])
		q.list, q.next = q.list[:kept], 0
	}
	q.list = append(q.list, streams...)
	q.mu.Unlock()
	if len(streams) > streamsAtOnce {
		q.more.Broadcast()
	} else {
		q.more.Signal()
	}
}

// take waits for streams and appends up to streamsAtOnce of them to an empty slice. It returns none when the queue is closed.
func (q *queue) take(streams []*Stream) []*Stream {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.next == len(q.list) && !q.closed {
		q.more.Wait()
	}
	if q.closed {
		return nil
	}
	n := min(streamsAtOnce, len(q.list)-q.next)
	taken := q.list[q.next : q.next+n]
	streams = append(streams, taken...)
	clear(taken)
	if q.next += n; q.next == len(q.list) {
		const keep = 1 << 12 // entries
		if q.next = 0; cap(q.list) > keep {
			q.list = nil
		}
		q.list = q.list[:0]
	}
	return streams
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.more.Broadcast()
}

// beat sends due heartbeats, and ends streams that are no longer allowed.
func (h *Hub) beat() {
	tick := min(max(h.options.Heartbeat/25, 10*time.Millisecond), time.Second)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	keepalive := Frame{Shared: []byte(Keepalive)}
	for {
		select {
		case <-h.stop:
			return
		case <-ticker.C:
		}
		h.mu.RLock()
		streams := h.all()
		h.mu.RUnlock()
		now, clock := time.Now(), h.options.Now()
		var woken []*Stream
		for _, s := range streams {
			if s.due(now, clock, h.options.Heartbeat) && s.allowed() && s.push(keepalive, clock) {
				woken = append(woken, s)
			}
		}
		h.ready.add(woken...)
		h.releaseMemory(now)
	}
}

const (
	// releaseStreams is the number of opened streams after which memory is released. Opening one takes several times the memory
	// that an open one needs: a thousand clients that reconnect would otherwise leave some megabytes behind.
	releaseStreams = 1000
	// releasePause is the time without new streams before memory is released.
	releasePause = 3 * time.Second
)

// releaseMemory returns unused memory to the system when many streams were opened, and none recently.
func (h *Hub) releaseMemory(now time.Time) {
	h.mu.Lock()
	due := h.opened >= releaseStreams && now.Sub(h.latest) >= releasePause
	if due {
		h.opened = 0
	}
	h.mu.Unlock()
	if due {
		h.options.Release()
	}
}

// due reports whether a heartbeat is due, and sets the time of the next. It ends a stream whose token has expired or that got
// no connection in time.
func (s *Stream) due(now, clock time.Time, period time.Duration) bool {
	s.mu.Lock()
	expired := s.expired(clock)
	due := !now.Before(s.beat)
	unattached := due && s.conn == nil
	if due {
		s.beat = now.Add(period)
	}
	s.mu.Unlock()
	switch {
	case unattached:
		s.end(left)
	case expired:
		s.end(revoked)
	default:
		return due
	}
	return false
}

// expired reports whether the token of the stream has expired.
func (s *Stream) expired(clock time.Time) bool {
	return !s.expires.IsZero() && !clock.Before(s.expires)
}

// allowed checks whether the stream is still allowed, and ends it otherwise.
func (s *Stream) allowed() bool {
	if s.hub.options.Check(s) {
		return true
	}
	s.end(revoked)
	return false
}
