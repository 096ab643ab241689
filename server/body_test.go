package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/server/servertest"
)

// dial opens a connection and sends the beginning of a request.
func dial(t *testing.T, address, request string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	if _, err := io.WriteString(connection, request); err != nil {
		t.Fatal(err)
	}
	return connection
}

// read reads one answer.
func read(t *testing.T, from *bufio.Reader) (*http.Response, string) {
	t.Helper()
	response, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

// arrivals reports each request that reaches authentication.
type arrivals struct {
	tokens
	came chan struct{}
}

func (a arrivals) Bearer(c *fiber.Ctx) (*access.Caller, error) {
	a.came <- struct{}{}
	return a.tokens.Bearer(c)
}

func TestReadBody_AllocatesForBytesThatArrive(t *testing.T) {
	const connections, declared, most = 200, 1 << 20, 64 << 20
	came := make(chan struct{}, connections)
	address, _ := start(t, func(o *server.Options) { o.Auth, o.RateLimits = arrivals{came: came}, false })
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range connections {
		dial(t, address, fmt.Sprintf("POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"+
			"Authorization: Bearer user-creator\r\nContent-Length: %d\r\n\r\n", declared)+strings.Repeat(" ", 10<<10))
	}
	for range connections {
		<-came
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > most {
		t.Errorf("%d stalled uploads of %d bytes take %d bytes, want at most %d", connections, declared, grown, most)
	}
}

func TestReadBody_FollowsAuthentication(t *testing.T) {
	address, _ := start(t, nil)
	stalled := dial(t, address, "POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"+strings.Repeat(" ", 10<<10))
	if response, body := read(t, bufio.NewReader(stalled)); response.StatusCode != 401 || !response.Close {
		t.Errorf("got %d %s, close %t; want 401 and the end of the connection", response.StatusCode, body, response.Close)
	}
}

func TestServe_NeverParsesABodyAsARequest(t *testing.T) {
	inner := "GET /public HTTP/1.1\r\nHost: a\r\n\r\n"
	padding := strings.Repeat(" ", 20<<10)
	for name, request := range map[string]string{
		"refused, long":    fmt.Sprintf("POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s%s", len(padding)+len(inner), padding, inner),
		"refused, chunked": fmt.Sprintf("POST /v1/things HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(inner), inner),
		"no such row":      fmt.Sprintf("POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s%s", len(padding)+len(inner), padding, inner),
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := start(t, nil)
			answers, err := io.ReadAll(dial(t, address, request))
			if got := strings.Count(string(answers), "HTTP/1.1 "); got != 1 || err != nil {
				t.Errorf("got %d answers and %v, want one: %s", got, err, answers)
			}
		})
	}
}

func TestServe_AnswersClientsThatSendTooMuch(t *testing.T) {
	address, _ := start(t, nil)
	const much = 64 << 20
	connection := dial(t, address, fmt.Sprintf("POST /v1/big HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", much))
	if _, err := io.CopyN(connection, zeros{}, much); err != nil {
		t.Fatalf("the server did not take the rest in: %v", err)
	}
	if response, body := read(t, bufio.NewReader(connection)); response.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("got %d %s", response.StatusCode, body)
	}
}

// zeros is a stream without an end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestServe_KeepsTheConnectionAfterAReadBody(t *testing.T) {
	address, _ := start(t, nil)
	long := `{"name":"` + strings.Repeat("x", 2<<20) + `"}`
	short := `{"name":"x"}`
	var requests strings.Builder
	for _, body := range []string{short, long, short} {
		fmt.Fprintf(&requests, "POST /v1/big HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}
	fmt.Fprintf(&requests, "POST /v1/big HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n",
		len(long)/2, long[:len(long)/2], len(long)-len(long)/2, long[len(long)/2:])
	from := bufio.NewReader(dial(t, address, requests.String()))
	for i, want := range []string{"1", "2097152", "1", "2097152"} {
		if response, body := read(t, from); response.StatusCode != 200 || body != want {
			t.Errorf("request %d: got %d %.200s, want %s", i, response.StatusCode, body, want)
		}
	}
}

func TestReadBody_RejectsLongBodiesWithoutALength(t *testing.T) {
	address, _ := start(t, nil)
	chunk := strings.Repeat(" ", 1<<20)
	connection := dial(t, address, "POST /v1/big HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"+
		strings.Repeat(fmt.Sprintf("%x\r\n%s\r\n", len(chunk), chunk), 4)+"0\r\n\r\n")
	if response, body := read(t, bufio.NewReader(connection)); response.StatusCode != 413 {
		t.Errorf("got %d %s, want 413", response.StatusCode, body)
	}
}

func TestExpect_AnswersBeforeTheBody(t *testing.T) {
	address, _ := start(t, nil)
	head := "POST /v1/big HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
	if response, body := read(t, bufio.NewReader(dial(t, address, fmt.Sprintf(head, 4<<20)))); response.StatusCode != 413 || !response.Close {
		t.Errorf("too much: got %d %s, want 413 at once and the end of the connection", response.StatusCode, body)
	}
	connection := dial(t, address, fmt.Sprintf(head, 12))
	from := bufio.NewReader(connection)
	if response, _ := read(t, from); response.StatusCode != 100 {
		t.Fatalf("got %d, want 100", response.StatusCode)
	}
	fmt.Fprint(connection, `{"name":"x"}`)
	if response, body := read(t, from); response.StatusCode != 200 || body != "1" {
		t.Errorf("got %d %s, want 200", response.StatusCode, body)
	}
}

func TestExpect_ChecksAuthorizationBeforeTheLength(t *testing.T) {
	address, _ := start(t, func(o *server.Options) {
		o.RateLimits, o.AllowedOrigins = false, []string{"https://app.example"}
	})
	for name, c := range map[string]struct {
		line, header string
		status       int
	}{
		"nobody":             {"POST /v1/things", "", 401},
		"without the right":  {"POST /v1/things", "Authorization: Bearer user-reader\r\n", 403},
		"who may":            {"POST /v1/things", "Authorization: Bearer user-creator\r\n", 413},
		"no such address":    {"POST /v1/nothing", "", 404},
		"no such method":     {"PUT /v1/things", "", 405},
		"compressed as well": {"POST /v1/things", "Content-Encoding: gzip\r\n", 415},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := read(t, bufio.NewReader(dial(t, address, c.line+" HTTP/1.1\r\nHost: a\r\nOrigin: https://app.example\r\n"+
				"Content-Type: application/json\r\n"+c.header+"Content-Length: 99999999\r\n\r\n")))
			if response.StatusCode != c.status || !response.Close {
				t.Errorf("got %d %s, want %d and the end of the connection", response.StatusCode, body, c.status)
			}
			if c.status != 415 && response.Header.Get("Access-Control-Allow-Origin") != "https://app.example" {
				t.Error("a page of an allowed origin cannot read the answer")
			}
		})
	}
}

// A row with a large limit does not raise that of the others: their declared lengths are rejected before any byte of the body.
func TestExpect_ComparesWithTheLimitOfTheRow(t *testing.T) {
	address, _ := start(t, func(o *server.Options) {
		o.RateLimits = false
		receives(o)
		o.Endpoints[len(o.Endpoints)-1].MaxBody = 512 << 20
	})
	for name, c := range map[string]struct {
		line, header string
		length       int
		status       int
	}{
		"a public row":                   {"POST /v1/big", "", 4 << 20, 413},
		"a row with credentials":         {"POST /v1/things", "Authorization: Bearer user-creator\r\n", 2 << 20, 413},
		"a row without credentials":      {"POST /v1/things", "", 2 << 20, 401},
		"the row with the largest limit": {"POST /receive", "", 600 << 20, 413},
		"an address without a row":       {"POST /v1/nothing", "", 2 << 20, 404},
		"another method":                 {"PUT /v1/things", "", 2 << 20, 405},
		"an unknown method":              {"BREW /v1/nothing", "", 2 << 20, 404},
		"a query":                        {"POST /v1/big?a=/b", "", 4 << 20, 413},
		"a client that waits":            {"POST /v1/big", "Expect: 100-continue\r\n", 4 << 20, 413},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := read(t, bufio.NewReader(dial(t, address, fmt.Sprintf(
				"%s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n", c.line, c.header, c.length))))
			if response.StatusCode != c.status || !response.Close {
				t.Errorf("got %d %s, want %d and the end of the connection", response.StatusCode, body, c.status)
			}
		})
	}
}

func TestCheckMediaType_RejectsOtherTypes(t *testing.T) {
	address, _ := start(t, func(o *server.Options) { o.RateLimits = false })
	creator := []string{"Authorization", "Bearer user-creator"}
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
	}{
		"another type":         {`name=a`, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415},
		"an alias type":        {`{"name":"a"}`, []string{"Content-Type", "text/json"}, 415},
		"compressed":           {`{"name":"a"}`, []string{"Content-Encoding", "gzip"}, 415},
		"with a charset":       {`{"name":"a"}`, []string{"Content-Type", "application/json; charset=utf-8"}, 201},
		"more than a mebibyte": {`{"name":"` + strings.Repeat("a", 1<<20) + `"}`, nil, 413},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := servertest.Send(t, address, "POST", "/v1/things", c.body, append(creator, c.headers...)...)
			if response.StatusCode != c.status {
				t.Errorf("got %d %.200s, want %d", response.StatusCode, body, c.status)
			}
			if c.status != 201 && !json.Valid([]byte(body)) {
				t.Errorf("the answer is no JSON: %.200q", body)
			}
		})
	}
}

func TestReadBody_LimitsTheBodyByRoute(t *testing.T) {
	address, _ := start(t, nil)
	if response, body := servertest.Send(t, address, "POST", "/v1/big", `{"name":"`+strings.Repeat("a", 2<<20)+`"}`); response.StatusCode != 200 {
		t.Errorf("2 MiB: got %d %.200s, want 200", response.StatusCode, body)
	}
	if response, _ := servertest.Send(t, address, "POST", "/v1/big", strings.Repeat("a", 4<<20)); response.StatusCode != 413 {
		t.Errorf("4 MiB: got %d, want 413", response.StatusCode)
	}
}

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
		_, from := startHurried(t, secure, between, nil).warm(t)
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
