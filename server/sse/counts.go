package sse

import "sync/atomic"

// counts are the hub's own counters.
type counts struct {
	frames, refused, left, slow, revoked atomic.Uint64
}

func (c *counts) end(why reason) {
	switch why {
	case left:
		c.left.Add(1)
	case slow:
		c.slow.Add(1)
	case revoked:
		c.revoked.Add(1)
	case ended:
	}
}

// Stats are counters since the start of the hub.
type Stats struct {
	Open    int    // streams that are open
	Frames  uint64 // written, heartbeats included
	Refused uint64 // beyond the limit of a user
	Left    uint64 // ended because the client disconnected or its connection was dead
	Slow    uint64 // ended because the client did not read
	Revoked uint64 // ended with the token, the session or the permission
}

// Stats returns the current counters.
func (h *Hub) Stats() Stats {
	h.mu.RLock()
	open := h.total
	h.mu.RUnlock()
	return Stats{Open: open, Frames: h.counts.frames.Load(), Refused: h.counts.refused.Load(), Left: h.counts.left.Load(),
		Slow: h.counts.slow.Load(), Revoked: h.counts.revoked.Load()}
}
