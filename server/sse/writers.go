package sse

import (
	"bytes"
	"errors"
	"net"
	"os"
	"runtime"
	"runtime/debug"
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
	sender    *sender
	streams   []*Stream // taken from the queue and not yet written to
	buffer    []byte
	frames    uint64     // written and not yet reported
	positions []Position // of these frames
}

// write runs one of the writers. After a panic another one replaces it.
func (h *Hub) write() {
	w := &writer{hub: h, sender: newSender()}
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
		n, err := s.writeNow(w.buffer, w.sender)
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
