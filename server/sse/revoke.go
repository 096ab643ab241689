package sse

import "net"

// Revoke ends the streams of a user for which keep returns false. An empty user means all users. When Revoke returns, nothing
// more is written to the ended streams: queued frames are dropped, and a running write is cut short. keep must be quick; it
// runs without the hub's lock.
//
// A change of permissions must be in force before Revoke is called. A stream that is opened at the same time is then either
// checked here, or its own check after [Hub.Open] sees the change.
func (h *Hub) Revoke(user string, keep func(s *Stream) bool) {
	for _, s := range h.streamsOf(user) {
		if !keep(s) {
			s.end(revoked)
		}
	}
}

// streamsOf returns a copy of the list of a user's streams, or of all streams for an empty user.
func (h *Hub) streamsOf(user string) []*Stream {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if user == "" {
		return h.all()
	}
	return append([]*Stream(nil), h.users[user]...)
}

// discardUnsent makes the system drop data that the client has not received, so that closing the connection of a slow client
// does not deliver it. A client that has received everything sees an ordinary end.
func discardUnsent(conn net.Conn) {
	tcp, ok := conn.(interface{ SetLinger(sec int) error })
	if ok && hasUnsent(conn) {
		_ = tcp.SetLinger(0) // a closed connection has nothing left to send
	}
}
