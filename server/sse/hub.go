package sse

import (
	"errors"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Errors of [Hub.Open].
var (
	ErrTooMany  = errors.New("sse: the user holds too many streams")
	ErrDraining = errors.New("sse: the hub is closing")
)

// Options configure a hub.
type Options struct {
	Heartbeat time.Duration // between two keepalives on a stream
	PerUser   int           // limit of open streams of a user
	Now       func() time.Time

	// Check reports at each heartbeat whether a stream is still allowed.
	Check func(s *Stream) bool
	// Wrote is called with the positions of frames that were written to streams. A position may come several times. It must be
	// quick, and must not keep the slice.
	Wrote func(positions []Position)
	// Ended is called when a stream of a user has ended. It must be quick. nil does nothing.
	Ended func(user string)
	// MayWrite reports whether frames may be written now. While it returns false, frames wait. It must be quick. nil always
	// allows it.
	MayWrite func() bool
	// Release returns unused memory to the system, after many streams have been opened. nil means [debug.FreeOSMemory].
	Release func()
	// CloseFrame is the last frame of every stream when the hub closes.
	CloseFrame []byte
	Log        *slog.Logger
}

const (
	// maxPending and maxPendingBytes bound the frames that wait for one stream. One group of commits causes fewer.
	maxPending      = 2048
	maxPendingBytes = 2 << 20
	// writeTimeout is how long a slow client may take to read, see flushSlowly.
	writeTimeout = 10 * time.Second
	// attachTime is how long an opened stream may wait for its connection.
	attachTime = 10 * time.Second
)

// Hub contains the open streams.
type Hub struct {
	options Options
	counts  counts

	mu       sync.RWMutex
	users    map[string][]*Stream
	total    int
	opened   int       // since memory was released
	latest   time.Time // when a stream was opened
	draining bool
	empty    chan struct{} // closed when the hub is draining and its last stream has ended

	signalEmpty func() // closes empty, once
	ready       queue
	poller      poller
	stop        chan struct{}
	stopped     sync.WaitGroup
	stopOne     sync.Once
}

// New starts a hub. [Hub.Close] ends it.
func New(o Options) *Hub {
	if o.Wrote == nil {
		o.Wrote = func([]Position) {}
	}
	if o.Ended == nil {
		o.Ended = func(string) {}
	}
	if o.Release == nil {
		o.Release = debug.FreeOSMemory
	}
	if o.MayWrite == nil {
		o.MayWrite = func() bool { return true }
	}
	h := &Hub{options: o, users: map[string][]*Stream{}, empty: make(chan struct{}), stop: make(chan struct{})}
	h.signalEmpty = sync.OnceFunc(func() { close(h.empty) })
	h.ready.init()
	for range runtime.GOMAXPROCS(0) + 1 {
		h.stopped.Go(h.write)
	}
	h.stopped.Go(h.beat)
	return h
}

// Open creates a stream for a user. It counts against the user's limit, but has no connection until [Stream.Attach]. The
// positions of frames that are published from now on are recorded, see [Stream.Live]. data is for the caller.
func (h *Hub) Open(user, language string, expires time.Time, data any) (*Stream, error) {
	s := &Stream{hub: h, User: user, Language: language, Data: data, expires: expires, beat: time.Now().Add(attachTime)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining {
		return nil, ErrDraining
	}
	if len(h.users[user]) >= h.options.PerUser {
		h.counts.refused.Add(1)
		return nil, ErrTooMany
	}
	h.users[user] = append(h.users[user], s)
	h.total++
	h.opened++
	h.latest = s.beat.Add(-attachTime)
	return s, nil
}

// Refuse ends a stream that was opened beyond a limit of the caller. It counts like one that Open has rejected.
func (h *Hub) Refuse(s *Stream) {
	h.counts.refused.Add(1)
	s.end(ended)
}

// remove removes a stream.
func (h *Hub) remove(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	streams := h.users[s.User]
	if i := slices.Index(streams, s); i >= 0 {
		h.total--
		if h.users[s.User] = slices.Delete(streams, i, i+1); len(streams) == 1 {
			delete(h.users, s.User)
		}
	}
	if h.draining && h.total == 0 {
		h.signalEmpty()
	}
}

// Users returns the users with open streams.
func (h *Hub) Users() []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	users := make([]string, 0, len(h.users))
	for user := range h.users {
		users = append(users, user)
	}
	return users
}

// Count returns the number of open streams of a user.
func (h *Hub) Count(user string) int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return len(h.users[user])
}

// Connected reports whether one of the users has an open stream.
func (h *Hub) Connected(users []string) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, user := range users {
		if len(h.users[user]) > 0 {
			return true
		}
	}
	return false
}

// Publish queues a frame for the streams of each user, in their order. make returns the frame for a stream of the i-th
// user; it must not call the hub. Publish does not wait for clients.
func (h *Hub) Publish(users []string, make func(i int, s *Stream) Frame) {
	var some [publishPart]*Stream
	woken := some[:0]
	clock := h.options.Now()
	h.mu.RLock()
	defer h.mu.RUnlock()
	for i, user := range users {
		for _, s := range h.users[user] {
			if s.push(make(i, s), clock) {
				woken = append(woken, s)
			}
			if len(woken) == publishPart {
				h.ready.add(woken...)
				woken = woken[:0]
			}
		}
	}
	h.ready.add(woken...)
}

// publishPart is how many streams Publish passes to the writers at a time, so that they write while it queues frames for others.
const publishPart = 128

// Drain ends all streams with the close frame and rejects new ones. It does not wait.
func (h *Hub) Drain() {
	h.mu.Lock()
	already := h.draining
	h.draining = true
	if h.total == 0 {
		h.signalEmpty()
	}
	streams := h.all()
	h.mu.Unlock()
	if already {
		return
	}
	var woken []*Stream
	for _, s := range streams {
		if s.finish(h.options.CloseFrame) {
			woken = append(woken, s)
		}
	}
	h.ready.add(woken...)
}

// all returns the streams. The caller must hold the lock.
func (h *Hub) all() []*Stream {
	streams := make([]*Stream, 0, h.total)
	for _, list := range h.users {
		streams = append(streams, list...)
	}
	return streams
}

// Drained is closed when the hub is draining and the last stream has ended.
func (h *Hub) Drained() <-chan struct{} { return h.empty }

// Close closes the streams that are still open and ends the hub. Call Drain before, so that clients get the close frame.
func (h *Hub) Close() {
	h.Drain()
	h.stopOne.Do(func() {
		close(h.stop)
		h.ready.close()
		h.poller.close()
	})
	h.mu.Lock()
	streams := h.all()
	h.mu.Unlock()
	for _, s := range streams {
		s.end(ended)
	}
	h.stopped.Wait()
}

// counts are the hub's own counters.
type counts struct {
	frames, refused atomic.Uint64
	ended           [reasons]atomic.Uint64
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
	ended := &h.counts.ended
	return Stats{Open: open, Frames: h.counts.frames.Load(), Refused: h.counts.refused.Load(), Left: ended[left].Load(),
		Slow: ended[slow].Load(), Revoked: ended[revoked].Load()}
}

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
	if ok && hasUnsent(socketOf(conn)) {
		_ = tcp.SetLinger(0) // a closed connection has nothing left to send
	}
}
