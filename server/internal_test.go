package server

import (
	"bufio"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

func TestGrowth_FollowsTheBytesThatArrive(t *testing.T) {
	const limit = 30 << 20
	for _, declared := range []int{100_000, 1 << 20, 28 << 20, limit, -1} {
		taken, room := firstBody, firstBody
		for room <= max(declared, 0) || declared < 0 && room <= limit {
			more := growth(room, declared, limit)
			if more < 1 || room+more > limit+1 || room+more > 4*room+4 {
				t.Fatalf("declared %d: %d bytes more for %d that are there", declared, more, room)
			}
			room += more
			taken += room
		}
		if declared > 0 && taken > 2*declared+firstBody {
			t.Errorf("declared %d: %d bytes were allocated in total", declared, taken)
		}
	}
}

func TestBodyStream_SlowSendersHaveADeadline(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		after    time.Duration
		received int
		want     time.Duration // until the deadline, from the beginning
	}{
		"at first":                        {0, 0, streamIdle},
		"no byte in half a minute":        {29 * time.Second, 1, streamGrace},
		"a fast sender":                   {time.Second, 10 << 20, time.Second + streamIdle},
		"a slow one, ahead of its time":   {time.Minute, 1 << 20, time.Minute + streamIdle},
		"a slow one, at the end of it":    {90 * time.Second, 1 << 20, streamGrace + 64*time.Second},
		"ten megabytes have ten minutes":  {11 * time.Minute, 10 << 20, streamGrace + 640*time.Second},
		"the time cannot be used up late": {time.Hour, 1, streamGrace},
	} {
		b := &bodyStream{began: began, received: c.received}
		if got := b.deadline(began.Add(c.after)).Sub(began).Truncate(time.Second); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestForwardedAddress(t *testing.T) {
	for element, want := range map[string]string{
		"203.0.113.7": "203.0.113.7", " 203.0.113.7\t": "203.0.113.7", "203.0.113.7:51234": "203.0.113.7", `"203.0.113.7:80"`: "203.0.113.7",
		"2001:db8::1": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "[2001:db8::1]:443": "2001:db8::1", `"[2001:db8::1]:443"`: "2001:db8::1",
		"::ffff:203.0.113.7": "203.0.113.7", "[::ffff:203.0.113.7]:1": "203.0.113.7", "::ffff:127.0.0.1": "127.0.0.1",
		"": "", " ": "", "unknown": "", "_hidden": "", "localhost": "", "127.0.0.1:": "", ":80": "", "127.1": "", "0x7f000001": "", "2130706433": "",
		"[127.0.0.1]": "", "127.0.0.1:port": "", "127.0.0.1:99999": "", "fe80::1%eth0": "", "[::1": "", "::1]": "", `"127.0.0.1`: "", "0.0.0.0": "", "::": "",
		"for=203.0.113.7": "", "127.0.0.1 127.0.0.1": "", "127.0.0.1\x00": "", "010.0.0.1": "",
	} {
		got, ok := forwardedAddress(element)
		if want == "" && (ok || got.IsValid()) || want != "" && got.String() != want {
			t.Errorf("%q: got %v, %t, want %q", element, got, ok, want)
		}
	}
}

func FuzzForwardedAddress(f *testing.F) {
	for _, seed := range []string{"203.0.113.7:51234", "[2001:db8::1]:443", `"unknown"`, "::ffff:127.0.0.1", "fe80::1%lo"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, element string) {
		address, ok := forwardedAddress(element)
		if ok != address.IsValid() || address.Is4In6() || address.Zone() != "" || address.IsUnspecified() {
			t.Fatalf("%q: %v, %t", element, address, ok)
		}
		if !ok {
			return
		}
		if again, ok := forwardedAddress(address.String()); !ok || again != address {
			t.Fatalf("%q: %v reads as %v", element, address, again)
		}
		if !strings.ContainsAny(element, ".:") || address == (netip.Addr{}) {
			t.Fatalf("%q is no address and was read as %v", element, address)
		}
	})
}

// FuzzInitials checks that no header is missed that the engine has found.
func FuzzInitials(f *testing.F) {
	for _, lines := range []string{
		"", "if-match: \"1\"\r\n", "IF-NONE-MATCH: *\nHost: a\r\n", "Accept-Language:\r\naccept-language: de\r\n", "Connection: keep-alive,\r\n\tClose\r\n",
		"X-A: b\r\n content-encoding: gzip\r\n", "Host: a\r\n\r\nAccept: text/csv\r\n", "cookie: a=b\r\nContent-Encoding : gzip\r\n",
	} {
		f.Add(lines)
	}
	f.Fuzz(func(t *testing.T, lines string) {
		var header fasthttp.RequestHeader
		if header.Read(bufio.NewReaderSize(strings.NewReader("GET / HTTP/1.1\r\n"+lines+"\r\n"), headerBytes)) != nil {
			return
		}
		found := initialsOf(header.RawHeaders())
		for _, name := range []string{fiber.HeaderAccept, fiber.HeaderAcceptLanguage, fiber.HeaderConnection, fiber.HeaderContentEncoding, fiber.HeaderIfMatch, fiber.HeaderIfNoneMatch} {
			if value := listHeader(&header, name); value != "" && !found.may(name) {
				t.Errorf("%q: the initials %b miss %s: %s", lines, found, name, value)
			}
		}
	})
}

func TestLoopbackHost(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:8080": true, "LOCALHOST": true, "bank.localhost:1": true, "127.0.0.1": true, "127.8.9.1:80": true, "[::1]": true, "[::1]:8080": true,
		"::1": true, "[::ffff:127.0.0.1]:80": true,
		"": false, "bank.example": false, "localhost.example": false, "localhost.": false, "127.0.0.1.example": false, "0.0.0.0": false, "10.0.0.1:80": false, "[::]": false,
		"[::1%lo]": false, "127.1": false, "2130706433": false, "localhost@bank.example": false, "notlocalhost": false, ":80": false,
	} {
		if got := loopbackHost(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

func FuzzLoopbackHost(f *testing.F) {
	f.Add("localhost:80")
	f.Add("[::1]:80")
	f.Fuzz(func(_ *testing.T, host string) { loopbackHost(host) })
}

// Wrapper changes the connections of a test.
type Wrapper struct {
	Shorten func(time.Duration) time.Duration // the time for which a read may wait
	Reads   func()                            // called before each read
	Accept  func(net.Conn)                    // takes each connection
}

// ServeWrapped is [Server.Serve] with other connections.
func (s *Server) ServeWrapped(listener net.Listener, w Wrapper) error {
	limiter := newQuietLimiter(listener, s.MaxConnections)
	limiter.plain = s.TLS == nil
	listener = wrappingListener{limiter, w}
	if s.TLS != nil {
		listener = tlsListener{listener, s.TLS}
	}
	return s.app.Listener(listener)
}

type wrappingListener struct {
	net.Listener
	w Wrapper
}

func (l wrappingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.w.Accept(c)
	return &wrapped{c.(*countedTCP), l.w}, nil
}

// wrapped is a connection whose deadlines of reads come sooner.
type wrapped struct {
	*countedTCP
	w Wrapper
}

func (c *wrapped) SetReadDeadline(at time.Time) error {
	if !at.IsZero() {
		now := time.Now()
		at = now.Add(c.w.Shorten(at.Sub(now)))
	}
	return c.countedTCP.SetReadDeadline(at)
}

func (c *wrapped) Read(b []byte) (int, error) {
	c.w.Reads()
	return c.countedTCP.Read(b)
}

// Running returns the number of requests that count against the limits of their callers.
func (s *Server) Running() (n int) {
	s.concurrency.mutex.Lock()
	defer s.concurrency.mutex.Unlock()
	for _, of := range s.concurrency.running {
		n += max(of, 1) // an entry without requests would never be deleted
	}
	return n
}
