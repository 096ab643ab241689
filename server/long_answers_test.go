package server_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/server/servertest"
)

// array is a public row whose answer is an array in parts.
func array(path string, rest func(n int) ([]string, error)) endpoint.Endpoint {
	handle := func(context.Context, endpoint.None) (endpoint.Result, error) {
		n := 0
		return endpoint.Result{Body: []string{}, Rest: func(context.Context) (any, error) {
			n++
			part, err := rest(n)
			if part == nil {
				return nil, err
			}
			return part, err
		}}, nil
	}
	return endpoint.Endpoint{
		Name: path, Method: "GET", Path: path, Access: access.Public, Limit: ratelimit.None, Tag: "Test", Summary: "Test.",
		Handle: endpoint.JSON(200, handle),
	}
}

func TestArray_IsReadWhileItIsWritten(t *testing.T) {
	long, broken := strings.Repeat("x", 300_000), errors.New("broken")
	parts := func(most int, part []string, end error) func(n int) ([]string, error) {
		return func(n int) ([]string, error) {
			if n > most {
				return nil, end
			}
			return part, nil
		}
	}
	address, _ := start(t, func(o *server.Options) {
		o.RateLimits = false
		o.Endpoints = append(o.Endpoints,
			array("/none", parts(0, nil, nil)), array("/empty", parts(3, []string{}, nil)),
			array("/short", parts(3, []string{"a", "b"}, nil)), array("/long", parts(20, []string{long, long}, nil)),
			array("/wrong", parts(0, nil, broken)), array("/late", parts(9, []string{long}, broken)))
	})
	for path, entries := range map[string]int{"/none": 0, "/empty": 0, "/short": 6, "/long": 40} {
		response, body := servertest.Send(t, address, "GET", path, "")
		var got []string
		err := json.Unmarshal([]byte(body), &got)
		if err != nil || len(got) != entries || response.StatusCode != 200 || response.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: got %d with %d entries, %v; want %d", path, response.StatusCode, len(got), err, entries)
		}
	}
	if response, body := servertest.Send(t, address, "GET", "/wrong", ""); response.StatusCode != http.StatusInternalServerError {
		t.Errorf("an error at the beginning: got %d %s", response.StatusCode, body)
	}
	response, err := http.Get("http://" + address + "/late")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("an answer that was not completed looks complete")
	}
	from := bufio.NewReader(dial(t, address, "HEAD /long HTTP/1.1\r\nHost: a\r\n\r\nGET /short HTTP/1.1\r\nHost: a\r\n\r\n"))
	head, err := http.ReadResponse(from, &http.Request{Method: "HEAD"})
	if err != nil || head.StatusCode != 200 {
		t.Fatal(err)
	}
	head.Body.Close()
	if response, body := read(t, from); response.StatusCode != 200 || body != `["a","b","a","b","a","b"]` {
		t.Errorf("after HEAD: got %d %s", response.StatusCode, body)
	}
}

// A request that may have a long answer waits for its turn; others do not.
func TestTakeTurn_BoundsRequestsWithLongAnswers(t *testing.T) {
	most := max(8, 2*runtime.GOMAXPROCS(0))
	running, release := make(chan struct{}), make(chan struct{})
	address, _ := start(t, func(o *server.Options) {
		allowAll(o, "/long", "/quick")
		o.Endpoints = append(o.Endpoints,
			row("/long", func(ctx context.Context, _ endpoint.None) (thing, error) {
				for range 2 { // the second call has no effect
					if err := endpoint.TakeTurn(ctx); err != nil {
						return thing{}, err
					}
				}
				running <- struct{}{}
				<-release
				return thing{}, nil
			}),
			row("/quick", func(context.Context, endpoint.None) (thing, error) { return thing{}, nil }))
	})
	done := make(chan int)
	for range most + 1 {
		go func() {
			status, _ := ask(t, address, "user-a", "/long")
			done <- status
		}()
	}
	for range most {
		<-running
	}
	if status, _ := ask(t, address, "user-b", "/quick"); status != 200 {
		t.Errorf("got %d", status)
	}
	select {
	case <-running:
		t.Errorf("more than %d requests have a turn", most)
	default:
	}
	release <- struct{}{}
	<-running // the waiting one
	for range most {
		release <- struct{}{}
	}
	for range most + 1 {
		if status := <-done; status != 200 {
			t.Errorf("got %d", status)
		}
	}
}

// Answers that clients do not read may take a bounded memory. The answers of the test share theirs.
func TestAnswers_ThatWaitToBeSentAreBounded(t *testing.T) {
	const size, most = 31 << 20, 8
	shared := &endpoint.Encoded{JSON: []byte(`"` + strings.Repeat("x", size) + `"`)}
	address, _ := start(t, func(o *server.Options) {
		o.RateLimits = false
		o.Endpoints = append(o.Endpoints, endpoint.Endpoint{Name: "long", Method: "GET", Path: "/long", Access: access.Public, Limit: ratelimit.None, Tag: "Test", Summary: "Test.",
			Handle: endpoint.JSON(200, func(context.Context, endpoint.None) (endpoint.Result, error) {
				return endpoint.Result{Encoded: shared}, nil
			})})
	})
	request := func() (*http.Response, io.Closer) {
		connection := dial(t, address, "GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
		response, err := http.ReadResponse(bufio.NewReader(connection), nil)
		if err != nil {
			t.Fatal(err)
		}
		return response, connection
	}
	var waiting []io.Closer
	for range most {
		response, connection := request()
		if response.StatusCode != 200 {
			t.Fatalf("got %d", response.StatusCode)
		}
		waiting = append(waiting, connection)
	}
	if response, _ := request(); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("got %d, want 503", response.StatusCode)
	}
	for _, connection := range waiting {
		connection.Close()
	}
	for status := 0; status != 200; {
		response, connection := request()
		status = response.StatusCode
		connection.Close()
	}
}
