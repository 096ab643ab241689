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
	"kontor/store/testenv"
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
	address, web := start(t, func(o *server.Options) {
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
	testenv.Wait(t, "the answered requests to count no more", func() bool { return web.Running() == 0 })
	for i := range 20 * most { // every one of them was counted off again
		if status, _ := ask(t, address, "user-a", "/quick"); status != http.StatusOK {
			t.Fatalf("request %d after the others got %d, want 200", i, status)
		}
	}
}

// deaf sends a request for a large answer to a server with a write timeout, and reads only the beginning of the answer.
func deaf(t *testing.T, timeout time.Duration) (address string) {
	t.Helper()
	large := strings.Repeat("x", 7<<20) // more than a socket takes
	address, _ = start(t, func(o *server.Options) {
		o.PerCaller, o.WriteTimeout = 1, timeout
		allowAll(o, "/large", "/quick")
		o.Endpoints = append(o.Endpoints,
			row("/large", func(context.Context, endpoint.None) (thing, error) { return thing{Name: large}, nil }),
			row("/quick", func(context.Context, endpoint.None) (thing, error) { return thing{}, nil }))
	})
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /large HTTP/1.1\r\nHost: kontor\r\nAuthorization: Bearer user-a\r\n\r\n")
	if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Fatalf("got %q, %v", line, err)
	}
	return address
}

// A client that does not read its answer keeps its place until the write deadline.
func TestConcurrency_CountsClientsThatDoNotRead(t *testing.T) {
	if status, _ := ask(t, deaf(t, time.Hour), "user-a", "/quick"); status != http.StatusTooManyRequests {
		t.Errorf("while an answer is being written, another request got %d, want 429", status)
	}
}

func TestConcurrency_ReleasesClientsThatDoNotRead(t *testing.T) {
	address := deaf(t, 300*time.Millisecond)
	testenv.Wait(t, "the place of a client that does not read", func() bool {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/quick", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer user-a")
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			return false // on a busy machine, the deadline of this answer may pass, too
		}
		defer response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
}

func TestAnswer_HasAMaximumSize(t *testing.T) {
	address, _ := start(t, func(o *server.Options) {
		allowAll(o, "/fits", "/too-large")
		o.Endpoints = append(o.Endpoints,
			row("/fits", func(context.Context, endpoint.None) (thing, error) {
				return thing{Name: strings.Repeat("x", 31<<20)}, nil
			}),
			row("/too-large", func(context.Context, endpoint.None) (thing, error) {
				return thing{Name: strings.Repeat("x", 32<<20)}, nil
			}))
	})
	if status, _ := ask(t, address, "user-a", "/fits"); status != http.StatusOK {
		t.Errorf("31 MiB got %d, want 200", status)
	}
	if status, _ := ask(t, address, "user-a", "/too-large"); status != http.StatusInternalServerError {
		t.Errorf("32 MiB got %d, want 500", status)
	}
}

func TestLimitNetwork_CountsBeforeAuthentication(t *testing.T) {
	address, _ := start(t, nil)
	for i, want := range []int{401, 401, 401, 429} {
		response, body := servertest.Send(t, address, "POST", "/v1/things", `{"name":"a"}`, "Authorization", "Bearer nonsense")
		if response.StatusCode != want {
			t.Fatalf("request %d: got %d %s, want %d", i+1, response.StatusCode, body, want)
		}
		if want == 429 && (response.Header.Get("Retry-After") != "20" || !strings.Contains(body, `"retryable":true`)) {
			t.Errorf("got Retry-After %q and %s, want 20 and retryable", response.Header.Get("Retry-After"), body)
		}
	}
}

func TestLimitCaller_CountsUsersSeparately(t *testing.T) {
	address, _ := start(t, func(o *server.Options) { o.Auth = tokens{cached: true} })
	for _, want := range []string{"2", "1", "0"} {
		response, _ := servertest.Send(t, address, "POST", "/v1/things", `{"name":"a"}`, "Authorization", "Bearer user-creator")
		if got := response.Header.Get("RateLimit-Remaining"); response.StatusCode != 201 || got != want {
			t.Fatalf("got %d with %s remaining, want 201 with %s", response.StatusCode, got, want)
		}
	}
	if response, _ := servertest.Send(t, address, "POST", "/v1/things", `{}`, "Authorization", "Bearer user-creator"); response.StatusCode != 429 {
		t.Errorf("the fourth request got %d, want 429", response.StatusCode)
	}
	if response, _ := servertest.Send(t, address, "POST", "/v1/things", `{}`, "Authorization", "Bearer user-reader"); response.StatusCode != 403 {
		t.Errorf("another user got %d, want 403: the limit of one is not that of the other", response.StatusCode)
	}
}

func TestLimitCaller_AppliesChangedRulesToTheNextRequest(t *testing.T) {
	var policy *access.Current
	address, _ := start(t, func(o *server.Options) { o.Auth, policy = tokens{cached: true}, o.Policy })
	things := func() int {
		response, _ := servertest.Send(t, address, "GET", thingPath, "", "Authorization", "Bearer user-reader")
		return response.StatusCode
	}
	for _, rule := range []struct{ perMinute, allowed int }{{2, 2}, {4, 4}, {1, 1}} {
		policy.Store(access.NewPolicy(access.PolicyData{
			Endpoints: map[string][]string{"user-reader": {"GET /v1/things/{id}"}},
			Limits:    map[string]int{"GET /v1/things/{id}": rule.perMinute},
		}))
		allowed := 0
		for things() == 200 {
			allowed++
		}
		if allowed != rule.allowed {
			t.Errorf("%d a minute: %d requests were accepted", rule.perMinute, allowed)
		}
	}
}

func TestAuthenticate_AcceptsAPIKeysOnTheirRoutesOnly(t *testing.T) {
	address, _ := start(t, nil)
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		status       int
	}{
		"good":                 {"POST", "/v1/keyed", []string{"X-API-Key", "good-key"}, 200},
		"none":                 {"POST", "/v1/keyed", nil, 401},
		"bad":                  {"POST", "/v1/keyed", []string{"X-API-Key", "bad"}, 401},
		"key and bearer":       {"POST", "/v1/keyed", []string{"X-API-Key", "good-key", "Authorization", "Bearer user-reader"}, 400},
		"on a bearer route":    {"GET", thingPath, []string{"X-API-Key", "good-key"}, 401},
		"beside a good bearer": {"GET", thingPath, []string{"X-API-Key", "good-key", "Authorization", "Bearer user-reader"}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			response, body := servertest.Send(t, address, c.method, c.path, "", c.headers...)
			if response.StatusCode != c.status {
				t.Errorf("got %d %s, want %d", response.StatusCode, body, c.status)
			}
			if c.status == 401 && response.Header.Get("WWW-Authenticate") == "" {
				t.Error("401 without WWW-Authenticate")
			}
		})
	}
}

// A network with too many guesses is rejected before its key is checked, so that the responses reveal nothing. Valid
// keys do not count for the network, and guesses do not count for valid keys.
func TestLimitNetwork_CountsBeforeAKeyIsVerified(t *testing.T) {
	address, _ := start(t, func(o *server.Options) { o.PrivatePerMinute = 3 })
	use := func(key string) int {
		t.Helper()
		response, _ := servertest.Send(t, address, "POST", "/v1/keyed", "", "X-API-Key", key)
		return response.StatusCode
	}
	for i, want := range []int{200, 200, 200, 429} {
		if got := use("good-key"); got != want {
			t.Fatalf("good key, request %d: got %d, want %d", i+1, got, want)
		}
	}
	for i, want := range []int{401, 401, 401, 429} {
		if got := use("bad"); got != want {
			t.Fatalf("bad key, request %d: got %d, want %d: good ones must have left the count as it was", i+1, got, want)
		}
	}
	if got := use("another-good-key"); got != 429 {
		t.Errorf("a good key from a network that has guessed too often got %d, want 429", got)
	}
}
