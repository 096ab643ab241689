package sse

import (
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// poller notices which clients send something or disconnect, so that a stream that waits needs no goroutine. It watches the
// connections with an epoll(7) of its own beside that of the runtime. The first event of a connection is its last: from then on
// a goroutine reads it, see [Stream.watch]. The zero poller starts with its first connection.
type poller struct {
	mu      sync.Mutex
	started bool
	closed  bool
	ended   chan struct{} // closed when its goroutine has ended
	file    *os.File
	raw     syscall.RawConn
	last    uint64
	streams map[uint64]*Stream // that had no event yet
}

// start opens the epoll and starts its goroutine. It leaves raw nil if the system has none. The caller must hold the lock.
func (p *poller) start() {
	p.started = true
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return
	}
	if err := unix.SetNonblock(fd, true); err != nil { // the runtime waits for events of this epoll with its own
		_ = unix.Close(fd)
		return
	}
	file := os.NewFile(uintptr(fd), "streams")
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return
	}
	p.file, p.raw, p.streams, p.ended = file, raw, map[uint64]*Stream{}, make(chan struct{})
	go p.run()
}

// add begins to watch the connection of a stream. It returns false if the connection cannot be watched.
func (p *poller) add(s *Stream, conn net.Conn) bool {
	if wrapper, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = wrapper.NetConn() // TLS
	}
	raw := socketOf(conn)
	if raw == nil {
		return false
	}
	id := p.enter(s)
	if id == 0 {
		return false
	}
	added := false
	err := raw.Control(func(fd uintptr) {
		event := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: int32(id), Pad: int32(id >> 32)} //nolint:gosec // both halves of the number
		_ = p.raw.Control(func(epoll uintptr) {
			added = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_ADD, int(fd), &event) == nil
		})
	})
	if err != nil || !added {
		p.take(id)
		return false
	}
	return true
}

// enter gives a stream a number, which is never used again: unlike that of its connection. It returns 0 without an epoll.
func (p *poller) enter(s *Stream) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started && !p.closed {
		p.start()
	}
	if p.raw == nil || p.closed {
		return 0
	}
	p.last++
	s.polled.Store(p.last)
	p.streams[p.last] = s
	return p.last
}

// take removes and returns the stream with a number, or nil if it has ended or had an event.
func (p *poller) take(id uint64) *Stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.streams[id]
	delete(p.streams, id)
	return s
}

// remove forgets a stream that has ended. Closing its connection has removed that from the epoll.
func (p *poller) remove(s *Stream) {
	if id := s.polled.Load(); id != 0 {
		p.take(id)
	}
}

// run starts a reader for each connection with an event, until close.
func (p *poller) run() {
	defer close(p.ended)
	events := make([]unix.EpollEvent, 128)
	for {
		var n int
		err := p.raw.Read(func(epoll uintptr) bool {
			var err error
			n, err = unix.EpollWait(int(epoll), events, 0)
			return err == nil && n > 0
		})
		if err != nil {
			return
		}
		for _, event := range events[:n] {
			id := uint64(uint32(event.Fd)) | uint64(uint32(event.Pad))<<32 //nolint:gosec // both halves of the number
			if s := p.take(id); s != nil {
				go s.watch(s.conn)
			}
		}
	}
}

// close ends the goroutine of the poller. Connections that it watches are closed by their streams.
func (p *poller) close() {
	p.mu.Lock()
	file := p.file
	first := !p.closed
	p.closed = true
	p.mu.Unlock()
	if first && file != nil {
		_ = file.Close()
		<-p.ended
	}
}
