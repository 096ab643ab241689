package server_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

const creates = " HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: Bearer user-creator\r\n"

// receives is a row that reads its body as it arrives.
func receives(o *server.Options) {
	o.Endpoints = append(o.Endpoints, endpoint.Endpoint{Name: "receive", Method: "POST", Path: "/receive", Access: access.Public, Limit: ratelimit.None,
		OwnTime: true, Tag: "Test", Summary: "Test.", Handle: endpoint.Streamed(200, []string{"application/json"}, func(_ context.Context, r *endpoint.Request) (int64, error) {
			return io.Copy(io.Discard, r.Body)
		})})
}

func TestServe_EndsSlowRequests(t *testing.T) {
	for name, c := range map[string]struct{ begin, drip, want string }{
		"a part of a head":       {"GET /public HTTP/1.1\r\nHos", "", "408"},
		"a head by bytes":        {"GET /public HTTP/1.1\r\nHost: ", "x", "408"},
		"no body":                {"POST /v1/things" + creates + "Content-Length: 12\r\n\r\n", "", "408"},
		"a part of a body":       {"POST /v1/things" + creates + "Content-Length: 100000\r\n\r\n" + strings.Repeat(" ", 20<<10), "", "408"},
		"a short body by bytes":  {"POST /v1/things" + creates + "Content-Length: 8000\r\n\r\n", " ", "408"},
		"a long body by bytes":   {"POST /v1/things" + creates + "Content-Length: 1000000\r\n\r\n" + strings.Repeat(" ", 9<<10), " ", "408"},
		"a chunk by bytes":       {"POST /v1/things" + creates + "Transfer-Encoding: chunked\r\n\r\nffff\r\n", " ", "408"},
		"a body that may follow": {"POST /v1/things" + creates + "Expect: 100-continue\r\nContent-Length: 8000\r\n\r\n", "", "100 408"},
		"a stream that stalls":   {"POST /receive" + creates + "Content-Length: 100000\r\n\r\n" + strings.Repeat(" ", 20<<10), "", "408"},
	} {
		both(t, name, func(t *testing.T, secure bool) {
			h := startHurried(t, secure, never, receives)
			connection, from := h.warm(t)
			h.above.Store(int64(time.Second))
			began := time.Now()
			send(t, connection, c.begin)
			if c.drip != "" {
				go h.drip(t.Context(), connection, c.drip)
			}
			if got := statuses(rest(t, from)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if took := time.Since(began); took < 10*time.Second/hurry*15/16 {
				t.Errorf("the connection was ended after %s", took)
			}
		})
	}
}

func TestServe_EndsConnectionsWithoutRequests(t *testing.T) {
	for name, c := range map[string]struct {
		secure      bool
		begin, want string
	}{
		"nothing":               {false, "", "408"},
		"half a line":           {false, "GET /pub", "408"},
		"no handshake":          {true, "", ""},
		"a part of a handshake": {true, "\x16\x03\x01\x00\xff\x01", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := startHurried(t, c.secure, time.Second, nil)
			h.client = nil
			connection := h.dial(t)
			send(t, connection, c.begin)
			if got := statuses(rest(t, connection)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	both(t, "nothing after an answer", func(t *testing.T, secure bool) {
		began := time.Now()
		_, from := startHurried(t, secure, 30*time.Second, nil).warm(t)
		if got := rest(t, from); got != "" {
			t.Errorf("got %q", got)
		}
		if took := time.Since(began); took < time.Minute/hurry {
			t.Errorf("an idle connection was ended after %s", took)
		}
	})
}

// A rejected client that does not send the rest of its body gets the answer soon.
func TestServe_EndsRejectedBodies(t *testing.T) {
	for name, body := range map[string]string{
		"a length": "Content-Length: 100000\r\n\r\n" + strings.Repeat(" ", 20<<10),
		"chunks":   "Transfer-Encoding: chunked\r\n\r\n1\r\n \r\n",
		"too much": "Content-Length: 100000000\r\n\r\n",
	} {
		both(t, name, func(t *testing.T, secure bool) {
			connection, from := startHurried(t, secure, never, nil).warm(t)
			send(t, connection, "POST /v1/things"+strings.ReplaceAll(creates, "user-creator", "user-other")+body)
			if got := statuses(rest(t, from)); got != "403" {
				t.Errorf("got %s, want 403", got)
			}
		})
	}
}

// The engine sets the deadline of writes when a request has been handled. That of the former request may have passed when the
// engine answers something before.
func TestServe_AnswersAfterALongPause(t *testing.T) {
	for name, c := range map[string]struct{ request, want string }{
		"a request":          {"GET /v1/nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "404"},
		"broken HTTP":        {"GET\r\n\r\n", "400"},
		"a request for more": {"POST /v1/things" + creates + "Expect: 100-continue\r\nContent-Length: 12\r\nConnection: close\r\n\r\n{\"name\":\"a\"}", "100 201"},
	} {
		both(t, name, func(t *testing.T, secure bool) {
			h := startHurried(t, secure, never, nil)
			connection, from := h.warm(t)
			if err := (<-h.accepted).SetWriteDeadline(time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
			send(t, connection, c.request)
			if got := statuses(rest(t, from)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
