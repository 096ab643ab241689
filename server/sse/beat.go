package sse

import "time"

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
