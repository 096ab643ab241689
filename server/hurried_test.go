package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kontor/server"
	"kontor/store/testenv"
)

// hurried is a server that waits for clients a fraction of the usual time when a test asks for it.
type hurried struct {
	web      *server.Server
	address  string
	client   *tls.Config   // nil: plain HTTP
	above    atomic.Int64  // longer times are divided by hurry; a duration
	reads    chan struct{} // a read begins; the server does not wait for the receiver
	accepted chan net.Conn // the server's ends of connections, below TLS
	rejected chan struct{} // closed when the server discards the rest of a body
}

const (
	hurry = 500
	never = time.Hour
	// between is less than the time between two requests, and more than the others. The time between two requests is divided if that of a
	// test is not shorter: otherwise a connection could end before the next request of a test.
	between = 30 * time.Second
)

// startHurried starts a server that divides the times for reads that are longer than some.
func startHurried(t *testing.T, secure bool, above time.Duration, change func(*server.Options)) *hurried {
	t.Helper()
	h := &hurried{reads: make(chan struct{}, 1), accepted: make(chan net.Conn, 10), rejected: make(chan struct{})}
	h.above.Store(int64(above))
	o := options(t, change)
	o.RateLimits = false
	if secure {
		o.TLS, h.client = certificates()
	}
	web, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.web, h.address = web, listener.Addr().String()
	reject := sync.OnceFunc(func() { close(h.rejected) })
	ended := make(chan error, 1)
	go func() {
		ended <- web.ServeWrapped(listener, server.Wrapper{
			Shorten: func(d time.Duration) time.Duration {
				above := time.Duration(h.above.Load())
				if d <= time.Second {
					reject()
				} else if d > above && (d < between || above >= between) {
					return d / hurry
				}
				return d
			},
			Reads: func() {
				select {
				case h.reads <- struct{}{}:
				default:
				}
			},
			Accept: func(c net.Conn) { h.accepted <- c },
		})
	}()
	t.Cleanup(func() {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		_ = web.Shutdown(now)
		<-ended
	})
	return h
}

// certificates returns configurations of TLS for a server and its client.
func certificates() (web, client *tls.Config) {
	example := httptest.NewTLSServer(http.NotFoundHandler())
	defer example.Close()
	client = example.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	client.ServerName = "example.com"
	return &tls.Config{Certificates: example.TLS.Certificates}, client
}

// dial opens a connection. Its reads fail in the end if the server does not answer.
func (h *hurried) dial(t *testing.T) net.Conn {
	t.Helper()
	connection := dial(t, h.address, "")
	if h.client != nil {
		connection = tls.Client(connection, h.client)
	}
	if err := connection.SetReadDeadline(time.Now().Add(testenv.Limit())); err != nil {
		t.Fatal(err)
	}
	return connection
}

// warm returns a connection that has carried a request.
func (h *hurried) warm(t *testing.T) (net.Conn, *bufio.Reader) {
	t.Helper()
	connection := h.dial(t)
	from := bufio.NewReader(connection)
	send(t, connection, "GET /public HTTP/1.1\r\nHost: a\r\n\r\n")
	if response, body := read(t, from); response.StatusCode != http.StatusOK {
		t.Fatalf("got %d %s", response.StatusCode, body)
	}
	return connection, from
}

func send(t *testing.T, connection io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
}

// drip sends a byte whenever the server waits for one.
func (h *hurried) drip(ctx context.Context, connection io.Writer, text string) {
	for i := 0; ; i++ {
		select {
		case <-h.rejected:
			return
		case <-ctx.Done():
			return
		case <-h.reads:
			if _, err := connection.Write([]byte{text[i%len(text)]}); err != nil {
				return
			}
		}
	}
}

// rest returns what the server sends until it ends the connection.
func rest(t *testing.T, connection io.Reader) string {
	t.Helper()
	answer, err := io.ReadAll(connection)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection stays open after %q", answer)
	}
	return string(answer)
}

// statuses returns the statuses of the answers in a text.
func statuses(answers string) string {
	var found []string
	for _, answer := range strings.Split(answers, "HTTP/1.1 ")[1:] {
		found = append(found, answer[:3])
	}
	return strings.Join(found, " ")
}

// both runs a test over HTTP and HTTPS.
func both(t *testing.T, name string, test func(t *testing.T, secure bool)) {
	t.Run(name, func(t *testing.T) { test(t, false) })
	t.Run(name+", TLS", func(t *testing.T) { test(t, true) })
}
