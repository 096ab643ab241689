package server_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp/fasthttputil"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store/testenv"
)

// limited are the options of a server that runs one request of a caller at a time. /held sends to running and waits for release.
func limited(running chan<- struct{}, release <-chan struct{}) func(*server.Options) {
	return func(o *server.Options) {
		o.PerCaller = 1
		allowed := []string{"POST /v1/things"}
		for path, handle := range map[string]func(context.Context, endpoint.None) (thing, error){
			"/quick": func(context.Context, endpoint.None) (thing, error) { return thing{}, nil },
			"/long": func(context.Context, endpoint.None) (thing, error) {
				return thing{Name: strings.Repeat("x", 1<<20)}, nil
			},
			"/broken": func(context.Context, endpoint.None) (thing, error) { panic("broken") },
			"/busy":   func(context.Context, endpoint.None) (thing, error) { return thing{}, apierr.Unavailable },
			"/held": func(context.Context, endpoint.None) (thing, error) {
				running <- struct{}{}
				<-release
				return thing{}, nil
			},
		} {
			o.Endpoints = append(o.Endpoints, row(path, handle))
			allowed = append(allowed, "GET "+path)
		}
		taken := row("/taken", nil)
		taken.Handle = endpoint.Raw(nil, func(_ context.Context, r *endpoint.Request) error {
			r.Fiber.Context().HijackSetNoResponse(true)
			r.Fiber.Context().Hijack(func(c net.Conn) {
				defer c.Close()
				_, _ = io.Copy(c, c)
			})
			return nil
		})
		o.Endpoints = append(o.Endpoints, taken)
		may := map[string]access.Permission{"customers": access.Create}
		allowed = append(allowed, "GET /taken")
		o.Policy = &access.Current{}
		o.Policy.Store(access.NewPolicy(access.PolicyData{Types: map[string]map[string]access.Permission{"user-a": may, "user-b": may},
			Endpoints: map[string][]string{"user-a": allowed, "user-b": allowed}}))
	}
}

// get returns a request of a user.
func get(user, path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer user-" + user + "\r\n\r\n"
}

// post returns the head of a request that creates a thing, up to some lines.
func post(lines string) string {
	return "POST /v1/things HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer user-a\r\nContent-Type: application/json\r\n" + lines + "\r\n\r\n"
}

// wait returns when a number of requests count. That of an answered request ends a moment after the answer.
func (h *hurried) wait(t *testing.T, running int) {
	t.Helper()
	testenv.Wait(t, fmt.Sprint(running, " requests to count"), func() bool { return h.web.Running() == running })
}

// Pipelined requests run one after the other, also those of several users.
func TestConcurrency_CountsPipelinedRequestsOneByOne(t *testing.T) {
	both(t, "mixed", func(t *testing.T, secure bool) {
		h := startHurried(t, secure, never, limited(nil, nil))
		connection := h.dial(t)
		requests := []string{get("a", "/quick"), get("a", "/quick"), get("a", "/broken"), get("b", "/quick"), get("a", "/long"), get("a", "/nothing"),
			post("Content-Length: 12") + `{"name":"x"}`, get("nobody", "/quick"), get("a", "/busy"), get("a", "/quick")}
		go func() { _, _ = io.WriteString(connection, strings.Join(requests, "")) }()
		from := bufio.NewReader(connection)
		for i, want := range []int{200, 200, 500, 200, 200, 404, 201, 403, 503, 200} {
			if response, body := read(t, from); response.StatusCode != want {
				t.Fatalf("%.30q got %d %.200s, want %d", requests[i], response.StatusCode, body, want)
			}
		}
		h.wait(t, 0)
	})
}

func TestConcurrency_RejectedRequestsReleaseNothing(t *testing.T) {
	both(t, "pipelined", func(t *testing.T, secure bool) {
		running, release := make(chan struct{}), make(chan struct{})
		h := startHurried(t, secure, never, limited(running, release))
		held, other := h.dial(t), h.dial(t)
		send(t, held, get("a", "/held"))
		<-running
		from := bufio.NewReader(other)
		for range 2 {
			send(t, other, strings.Repeat(get("a", "/quick"), 3)+get("b", "/quick"))
			for _, want := range []int{429, 429, 429, 200} {
				if response, body := read(t, from); response.StatusCode != want {
					t.Errorf("got %d %s, want %d", response.StatusCode, body, want)
				}
			}
		}
		_ = other.Close()
		h.wait(t, 1)
		close(release)
		from = bufio.NewReader(held)
		read(t, from)
		send(t, held, get("a", "/quick"))
		if response, body := read(t, from); response.StatusCode != http.StatusOK {
			t.Errorf("the next request got %d %s", response.StatusCode, body)
		}
		h.wait(t, 0)
	})
}

// However a request ends, it does not count any more.
func TestConcurrency_ReleasesEveryRequest(t *testing.T) {
	for name, c := range map[string]struct{ request, want string }{
		"closed after the answer": {strings.Replace(get("a", "/quick"), "Host", "Connection: close\r\nHost", 1), "200"},
		"HTTP/1.0":                {strings.Replace(get("a", "/quick"), "1.1", "1.0", 1), "200"},
		"HEAD":                    {strings.Replace(get("a", "/quick"), "GET", "HEAD", 1), "200"},
		"too long":                {post("Content-Length: 99999999"), "413"},
		"too long, asked":         {post("Expect: 100-continue\r\nContent-Length: 2000000"), "413"},
		"broken chunks":           {post("Transfer-Encoding: chunked") + "1\r\n \r\nnonsense\r\n", "400"},
		"a second that is broken": {get("a", "/quick") + "GET\r\n\r\n", "200"},
	} {
		both(t, name, func(t *testing.T, secure bool) {
			h := startHurried(t, secure, never, limited(nil, nil))
			connection := h.dial(t)
			send(t, connection, c.request)
			response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: c.request[:strings.IndexByte(c.request, ' ')]})
			if err != nil || fmt.Sprint(response.StatusCode) != c.want {
				t.Errorf("got %v, %v, want %s", response, err, c.want)
			}
			h.wait(t, 0)
		})
	}
	both(t, "an answer that nobody awaits", func(t *testing.T, secure bool) {
		running, release := make(chan struct{}), make(chan struct{})
		h := startHurried(t, secure, never, limited(running, release))
		connection := h.dial(t)
		send(t, connection, get("a", "/held"))
		<-running
		_ = connection.Close()
		close(release)
		h.wait(t, 0)
	})
	both(t, "a body that ends early", func(t *testing.T, secure bool) {
		h := startHurried(t, secure, never, limited(nil, nil))
		connection := h.dial(t)
		send(t, connection, post("Content-Length: 100000")+strings.Repeat(" ", 9000))
		_ = connection.(interface{ CloseWrite() error }).CloseWrite()
		rest(t, connection)
		h.wait(t, 0)
	})
	both(t, "a stream", func(t *testing.T, secure bool) {
		h := startHurried(t, secure, never, limited(nil, nil))
		connection := h.dial(t)
		send(t, connection, get("a", "/taken"))
		send(t, connection, "echo")
		echo := make([]byte, 4)
		if _, err := io.ReadFull(connection, echo); err != nil || string(echo) != "echo" {
			t.Fatalf("got %q, %v", echo, err)
		}
		h.wait(t, 0) // while the stream is open
	})
}

// Connections that are no sockets have the same limits.
func TestConcurrency_NeedsNoSockets(t *testing.T) {
	o := options(t, limited(nil, nil))
	o.RateLimits = false
	web, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	listener := fasthttputil.NewInmemoryListener()
	ended := make(chan error)
	go func() { ended <- web.Serve(listener) }()
	connection, err := listener.Dial()
	if err != nil {
		t.Fatal(err)
	}
	send(t, connection, strings.Repeat(get("a", "/quick"), 3))
	from := bufio.NewReader(connection)
	for range 3 {
		if response, body := read(t, from); response.StatusCode != http.StatusOK {
			t.Errorf("got %d %s", response.StatusCode, body)
		}
	}
	(&hurried{web: web}).wait(t, 0)
	_ = connection.Close()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = web.Shutdown(now)
	<-ended
}
