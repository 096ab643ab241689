package sse

import "time"

// beat gives each stream its sign of life when it is due, and ends those that may not go on.
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
	}
}

// due reports whether a heartbeat is due, and notes the next. It ends a stream whose token has expired or that never got
// a connection.
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

// expired reports whether the token that opened the stream has ended.
func (s *Stream) expired(clock time.Time) bool {
	return !s.expires.IsZero() && !clock.Before(s.expires)
}

// allowed asks whether the stream may go on, and ends it otherwise.
func (s *Stream) allowed() bool {
	if s.hub.options.Check(s) {
		return true
	}
	s.end(revoked)
	return false
}
