package notifications_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// loadContent begins the content of an event of a benchmark. Its number and the time at which it was sent follow, in nanoseconds.
const loadContent = "sent "

// receivedEvent is what the clients report of an event when all of them have received it.
type receivedEvent struct {
	sent, last int64         // when it was sent and when its last frame was read, in nanoseconds
	p99        time.Duration // from the sending to the reading
	clients    time.Duration // processor time of the clients since their start
}

// loadClients are the clients of a benchmark. They run in one thread and cost as little as clients can, because they share the
// machine with the server: one wait for many sockets, and one read for a frame.
type loadClients struct {
	out     io.Writer
	sockets int
	rest    map[int][]byte // of sockets that have received a part of a frame
	events  map[int]*loadEvent
}

// loadEvent are the frames of an event that have been received.
type loadEvent struct {
	sent int64
	took []int64
}

// runLoadClients opens a stream for each line "address token" up to an empty line and writes "ready". Then it writes a line
// for each event that all streams have received.
func runLoadClients(in io.Reader, out io.Writer) error {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return err
	}
	c := &loadClients{out: out, rest: map[int][]byte{}, events: map[int]*loadEvent{}}
	lines := bufio.NewScanner(in)
	for lines.Scan() && lines.Text() != "" {
		address, token, _ := strings.Cut(lines.Text(), " ")
		socket, err := openStream(address, token)
		if err != nil {
			return err
		}
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(socket)}
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, socket, &event); err != nil {
			return err
		}
		c.sockets++
	}
	fmt.Fprintln(out, "ready")
	return c.run(epoll)
}

// openStream opens a stream, waits for its first frame, and returns its socket.
func openStream(address, token string) (socket int, err error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return 0, err
	}
	if socket, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return 0, err
	}
	if err := unix.Connect(socket, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil {
		return 0, err
	}
	if _, err := unix.Write(socket, fmt.Appendf(nil, "GET /v1/notifications/sse HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", token)); err != nil {
		return 0, err
	}
	buffer, filled := make([]byte, 4096), 0
	for !bytes.Contains(buffer[:filled], []byte("event: open\n")) || !bytes.HasSuffix(buffer[:filled], []byte("\n\n")) {
		n, err := unix.Read(socket, buffer[filled:])
		if n <= 0 {
			return 0, fmt.Errorf("a stream was not opened: %q, %w", buffer[:filled], err)
		}
		filled += n
	}
	return socket, unix.SetNonblock(socket, true)
}

// run reads the sockets until one of them ends.
func (c *loadClients) run(epoll int) error {
	ready, buffer := make([]unix.EpollEvent, 512), make([]byte, 64<<10)
	for {
		n, err := unix.EpollWait(epoll, ready, -1)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		for _, one := range ready[:n] {
			socket := int(one.Fd)
			filled := copy(buffer, c.rest[socket])
			n, err := unix.Read(socket, buffer[filled:])
			if n <= 0 {
				return fmt.Errorf("a stream has ended: %w", err)
			}
			if err := c.take(socket, buffer[:filled+n]); err != nil {
				return err
			}
		}
	}
}

// take counts the frames that a socket has received, and keeps the rest.
func (c *loadClients) take(socket int, data []byte) error {
	for {
		end := bytes.Index(data, []byte("\n\n"))
		if end < 0 {
			break
		}
		if _, content, ok := bytes.Cut(data[:end], []byte(`"content":"`+loadContent)); ok {
			if err := c.count(content); err != nil {
				return err
			}
		}
		data = data[end+2:]
	}
	if len(data) > 0 {
		c.rest[socket] = bytes.Clone(data)
	} else if len(c.rest) > 0 {
		delete(c.rest, socket)
	}
	return nil
}

// count counts a frame, and reports its event if it is the last one.
func (c *loadClients) count(content []byte) error {
	number, content := leadingNumber(content)
	sent, _ := leadingNumber(content[1:])
	event := c.events[int(number)]
	if event == nil {
		event = &loadEvent{sent: sent, took: make([]int64, 0, c.sockets)}
		c.events[int(number)] = event
	}
	if event.took = append(event.took, time.Now().UnixNano()-sent); len(event.took) < c.sockets {
		return nil
	}
	delete(c.events, int(number))
	slices.Sort(event.took)
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return err
	}
	_, err := fmt.Fprintln(c.out, sent, sent+event.took[c.sockets-1], event.took[c.sockets*99/100], usage.Utime.Nano()+usage.Stime.Nano())
	return err
}

// leadingNumber returns the number at the beginning of a text and what follows.
func leadingNumber(text []byte) (n int64, rest []byte) {
	for len(text) > 0 && text[0] >= '0' && text[0] <= '9' {
		n, text = 10*n+int64(text[0]-'0'), text[1:]
	}
	return n, text
}
