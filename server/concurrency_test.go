package server_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/server/servertest"
)

// row is an endpoint of a test, for callers with a token.
func row(path string, handle func(ctx context.Context, in endpoint.None) (thing, error)) endpoint.Endpoint {
	return endpoint.Endpoint{Name: path, Method: "GET", Path: path, Access: access.SignedIn, Limit: ratelimit.Private, Tag: "Test", Summary: "Test.",
		Handle: endpoint.JSON(200, handle)}
}

// allowAll lets two users call rows by their paths.
func allowAll(o *server.Options, paths ...string) {
	keys := make([]string, len(paths))
	for i, path := range paths {
		keys[i] = "GET " + path
	}
	o.Policy = &access.Current{}
	o.Policy.Store(access.NewPolicy(access.PolicyData{Endpoints: map[string][]string{"user-a": keys, "user-b": keys}}))
	o.RateLimits = false
}

// ask sends a request as a user and returns the status and the header Retry-After.
func ask(t *testing.T, address, user, path string) (status int, retry string) {
	t.Helper()
	response, _ := servertest.Send(t, address, "GET", path, "", "Authorization", "Bearer "+user)
	return response.StatusCode, response.Header.Get("Retry-After")
}

func TestConcurrency_IsLimitedForEachCaller(t *testing.T) {
	const most = 3
	running, release := make(chan struct{}), make(chan struct{})
	address, _ := start(t, func(o *server.Options) {
		o.PerCaller = most
		allowAll(o, "/held", "/quick")
		o.Endpoints = append(o.Endpoints,
			row("/held", func(context.Context, endpoint.None) (thing, error) {
				running <- struct{}{}
				<-release
				return thing{}, nil
			}),
			row("/quick", func(context.Context, endpoint.None) (thing, error) { return thing{}, nil }))
	})
	done := make(chan int)
	for range most {
		go func() { status, _ := ask(t, address, "user-a", "/held"); done <- status }()
		<-running
	}
	if status, retry := ask(t, address, "user-a", "/quick"); status != http.StatusTooManyRequests || retry == "" {
		t.Errorf("one request too many got %d with Retry-After %q, want 429", status, retry)
	}
	if status, _ := ask(t, address, "user-b", "/quick"); status != http.StatusOK {
		t.Errorf("another user got %d, want 200", status)
	}
	close(release)
	for range most {
		if status := <-done; status != http.StatusOK {
			t.Errorf("a request within the bound got %d, want 200", status)
		}
	}
	for i := range 20 * most { // every one of them was counted off again
		if status, _ := ask(t, address, "user-a", "/quick"); status != http.StatusOK {
			t.Fatalf("request %d after the others got %d, want 200", i, status)
		}
	}
}

// A client that does not read its answer keeps its place until the write deadline, and then neither the place nor the
// connection.
func TestConcurrency_ReleasesClientsThatDoNotRead(t *testing.T) {
	large := strings.Repeat("x", 7<<20) // more than a socket takes
	address, _ := start(t, func(o *server.Options) {
		o.PerCaller, o.WriteTimeout = 1, 300*time.Millisecond
		allowAll(o, "/large", "/quick")
		o.Endpoints = append(o.Endpoints,
			row("/large", func(context.Context, endpoint.None) (thing, error) { return thing{Name: large}, nil }),
			row("/quick", func(context.Context, endpoint.None) (thing, error) { return thing{}, nil }))
	})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /large HTTP/1.1\r\nHost: kontor\r\nAuthorization: Bearer user-a\r\n\r\n")
	if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("got %q, %v", line, err)
	}
	if status, _ := ask(t, address, "user-a", "/quick"); status != http.StatusTooManyRequests {
		t.Errorf("while an answer is being written, another request got %d, want 429", status)
	}
	for deadline := time.Now().Add(20 * time.Second); ; {
		status, _ := ask(t, address, "user-a", "/quick")
		if status == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a client that does not read keeps its place")
		}
	}
}

func TestAnswer_HasAMaximumSize(t *testing.T) {
	address, _ := start(t, func(o *server.Options) {
		allowAll(o, "/fits", "/too-large")
		o.Endpoints = append(o.Endpoints,
			row("/fits", func(context.Context, endpoint.None) (thing, error) {
				return thing{Name: strings.Repeat("x", 7<<20)}, nil
			}),
			row("/too-large", func(context.Context, endpoint.None) (thing, error) {
				return thing{Name: strings.Repeat("x", 8<<20)}, nil
			}))
	})
	if status, _ := ask(t, address, "user-a", "/fits"); status != http.StatusOK {
		t.Errorf("7 MiB got %d, want 200", status)
	}
	if status, _ := ask(t, address, "user-a", "/too-large"); status != http.StatusInternalServerError {
		t.Errorf("8 MiB got %d, want 500", status)
	}
}
