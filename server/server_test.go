package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/locales"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/fault"
	"kontor/server/limit"
	"kontor/server/servertest"
)

// tokens is an authenticator for which every word that begins with "user-" is the token of that user.
type tokens struct{ cached bool }

func (a tokens) Known(token string) (*access.Caller, bool) {
	if a.cached && strings.HasPrefix(token, "user-") {
		return &access.Caller{UserID: token}, true
	}
	return nil, false
}

func (a tokens) Bearer(c *fiber.Ctx) (*access.Caller, error) {
	_, token, _ := strings.Cut(c.Get("Authorization"), " ")
	switch {
	case token == "outage":
		return nil, fault.AuthUnavailable.Because(errors.New("no table"))
	case strings.HasPrefix(token, "user-"):
		return &access.Caller{UserID: token}, nil
	case token == "root":
		return &access.Caller{UserID: token, Roles: []string{access.Administrator}}, nil
	}
	return nil, fault.Unauthorized
}

func (a tokens) APIKey(_ context.Context, key string) (*access.Caller, error) {
	if key == "good-key" {
		return &access.Caller{KeyID: key}, nil
	}
	return nil, fault.Unauthorized
}

// replays remembers one answer.
type replays struct {
	mu     sync.Mutex
	claims map[server.Claim]server.Stored
}

type storedError struct{ server.Stored }

func (storedError) Error() string { return "stored" }

func (r *replays) Begin(ctx context.Context, claim server.Claim) (context.Context, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for known, stored := range r.claims {
		if known.Key == claim.Key && known.Caller == claim.Caller && known.Endpoint == claim.Endpoint {
			stored.Mismatch = known.BodyHash != claim.BodyHash
			return nil, storedError{stored}
		}
	}
	r.claims[claim] = server.Stored{Status: http.StatusCreated, Body: []byte(`{"id":"first"}`)}
	return ctx, nil
}

type thing struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func (thing) ETag() string { return "v1" }

type thingInput struct {
	ID string `path:"id"`
}

type nameInput struct {
	Name string `json:"name"`
}

func (in *nameInput) Validate(v *fault.Fields) {
	if in.Name == "" {
		v.Add("name", "invalid.required")
	}
}

func rows() []endpoint.Endpoint {
	ok := func(context.Context, endpoint.None) (thing, error) { return thing{}, nil }
	table := []endpoint.Endpoint{
		{Name: "public", Method: "GET", Path: "/public", Access: access.Public, Limit: limit.Public,
			Handle: endpoint.JSON(200, func(ctx context.Context, _ endpoint.None) (map[string]string, error) {
				return map[string]string{"address": endpoint.Of(ctx).Address.String(), "network": endpoint.Of(ctx).Network()}, nil
			})},
		{Name: "things.get", Method: "GET", Path: "/v1/things/{id}", Access: access.On(access.Customers, access.Read), Limit: limit.Private,
			Handle: endpoint.JSON(200, func(_ context.Context, in thingInput) (thing, error) { return thing{ID: in.ID, Name: "<&>"}, nil })},
		{Name: "things.create", Method: "POST", Path: "/v1/things", Access: access.On(access.Customers, access.Create), Limit: limit.Private,
			Handle: endpoint.JSON(201, func(_ context.Context, in nameInput) (thing, error) { return thing{ID: "second", Name: in.Name}, nil })},
		{Name: "keyed", Method: "POST", Path: "/v1/keyed", Access: access.APIKey, Limit: limit.Private, Handle: endpoint.JSON(200, ok)},
		{Name: "panics", Method: "GET", Path: "/panics", Access: access.Public, Limit: limit.None,
			Handle: endpoint.JSON(200, func(context.Context, endpoint.None) (thing, error) { panic("secret detail") })},
		{Name: "fails", Method: "GET", Path: "/fails", Access: access.Public, Limit: limit.None,
			Handle: endpoint.JSON(200, func(context.Context, endpoint.None) (thing, error) { return thing{}, errors.New("secret cause") })},
		{Name: "stream", Method: "GET", Path: "/stream", Access: access.SignedIn, Limit: limit.Private, Draining: "server shutting down",
			Handle: endpoint.JSON(200, ok)},
		{Name: "big", Method: "POST", Path: "/v1/big", Access: access.Public, Limit: limit.None, MaxBody: 3 << 20,
			Handle: endpoint.JSON(200, func(_ context.Context, in nameInput) (int, error) { return len(in.Name), nil })},
	}
	for i := range table {
		table[i].Tag, table[i].Summary = "Test", "Test."
	}
	return table
}

// start runs a server on a free port and gives its address.
func start(t testing.TB, change func(*server.Options)) (string, *server.Server) {
	t.Helper()
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	policy := &access.Current{}
	policy.Store(access.NewPolicy(access.PolicyData{
		Types: map[string]map[string]access.Permission{"user-creator": {"customers": access.Create}},
		Endpoints: map[string][]string{
			"user-reader":  {"GET /v1/things/{id}", "POST /v1/things"},
			"user-creator": {"GET /v1/things/{id}", "POST /v1/things"},
		},
		Limits: map[string]int{"POST /v1/things": 3},
	}))
	o := server.Options{
		Endpoints: rows(), Auth: tokens{}, Policy: policy, Texts: texts, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		RateLimits: true, PublicPerMinute: 5, PrivatePerMinute: 100,
		Replays: &replays{claims: map[server.Claim]server.Stored{}},
		Stored: func(err error) (server.Stored, bool) {
			stored, ok := errors.AsType[storedError](err)
			return stored.Stored, ok
		},
		AllowedOrigins: []string{"https://app.example"},
	}
	if change != nil {
		change(&o)
	}
	web, address := servertest.Serve(t, o)
	return address, web
}

// send makes one request and reads the whole answer. Headers are given in pairs.
func send(t testing.TB, address, method, path, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(method, "http://"+address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(answer)
}

const thingPath = "/v1/things/0193a000-0000-7000-8000-000000000001"

func TestServe_ChecksInTheSpecifiedOrder(t *testing.T) {
	address, _ := start(t, nil)
	for _, c := range []struct {
		name, method, path, body, token string
		status                          int
		code                            string
	}{
		{"no token", "GET", thingPath, "", "", 401, "common.unauthorized"},
		{"bad token before bad path id", "GET", "/v1/things/x", "", "nonsense", 401, "common.unauthorized"},
		{"no grant before bad path id", "GET", "/v1/things/x", "", "user-other", 403, "common.rbac_no_rec_access"},
		{"bad path id", "GET", "/v1/things/x", "", "user-reader", 400, "common.invalid_input"},
		{"success", "GET", thingPath, "", "user-reader", 200, ""},
		{"no right to create before a broken body", "POST", "/v1/things", "{", "user-reader", 403, "common.rbac_no_rec_access"},
		{"broken body", "POST", "/v1/things", "{", "user-creator", 400, "common.invalid_input"},
		{"neither cache nor table", "GET", thingPath, "", "outage", 503, "auth_m.internal_server_error"},
		{"unknown route", "GET", "/v1/nothing", "", "", 404, "common.not_found"},
		{"another letter case", "GET", strings.ToUpper(thingPath), "", "user-reader", 404, "common.not_found"},
		{"a trailing slash", "GET", thingPath + "/", "", "user-reader", 404, "common.not_found"},
		{"two slashes", "GET", "/v1//things/x", "", "user-reader", 404, "common.not_found"},
		{"a panic", "GET", "/panics", "", "", 500, "common.server_error"},
		{"an error without a code", "GET", "/fails", "", "", 500, "common.server_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			response, body := send(t, address, c.method, c.path, c.body, "Authorization", "Bearer "+c.token)
			if response.StatusCode != c.status || c.code != "" && !strings.Contains(body, `"code":"`+c.code+`"`) {
				t.Errorf("got %d %s, want %d %s", response.StatusCode, body, c.status, c.code)
			}
			if strings.Contains(body, "secret") {
				t.Errorf("the cause leaked: %s", body)
			}
		})
	}
}

func TestServe_CountsBeforeItAsksWhoIsCalling(t *testing.T) {
	address, _ := start(t, nil)
	for i, want := range []int{401, 401, 401, 429} {
		response, body := send(t, address, "POST", "/v1/things", `{"name":"a"}`, "Authorization", "Bearer nonsense")
		if response.StatusCode != want {
			t.Fatalf("request %d: got %d %s, want %d", i+1, response.StatusCode, body, want)
		}
		if want == 429 && (response.Header.Get("Retry-After") != "20" || !strings.Contains(body, `"retryable":true`)) {
			t.Errorf("got Retry-After %q and %s, want 20 and retryable", response.Header.Get("Retry-After"), body)
		}
	}
}

func TestServe_LimitsUsersApartAndTellsTheRest(t *testing.T) {
	address, _ := start(t, func(o *server.Options) { o.Auth = tokens{cached: true} })
	for _, want := range []string{"2", "1", "0"} {
		response, _ := send(t, address, "POST", "/v1/things", `{"name":"a"}`, "Authorization", "Bearer user-creator")
		if got := response.Header.Get("RateLimit-Remaining"); response.StatusCode != 201 || got != want {
			t.Fatalf("got %d with %s remaining, want 201 with %s", response.StatusCode, got, want)
		}
	}
	if response, _ := send(t, address, "POST", "/v1/things", `{}`, "Authorization", "Bearer user-creator"); response.StatusCode != 429 {
		t.Errorf("the fourth request got %d, want 429", response.StatusCode)
	}
	if response, _ := send(t, address, "POST", "/v1/things", `{}`, "Authorization", "Bearer user-reader"); response.StatusCode != 403 {
		t.Errorf("another user got %d, want 403: the limit of one is not that of the other", response.StatusCode)
	}
}

func TestServe_AChangedRuleHoldsForTheNextRequest(t *testing.T) {
	var policy *access.Current
	address, _ := start(t, func(o *server.Options) { o.Auth, policy = tokens{cached: true}, o.Policy })
	things := func() int {
		response, _ := send(t, address, "GET", thingPath, "", "Authorization", "Bearer user-reader")
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
			t.Errorf("%d a minute: %d requests were let in", rule.perMinute, allowed)
		}
	}
}

func TestServe_AnswersInTheLanguageOfTheRequest(t *testing.T) {
	address, _ := start(t, nil)
	for lang, want := range map[string]string{"de-CH": "Unter dieser Adresse", "fr;q=0.9,xx": "Il n'y a rien", "it": "A questo indirizzo", "": "nothing at"} {
		response, body := send(t, address, "GET", "/nothing", "", "Accept-Language", lang)
		if !strings.Contains(body, want) {
			t.Errorf("%s: got %s, want it to say %q", lang, body, want)
		}
		if got := response.Header.Get("Content-Language"); !locales.Known(got) || lang != "" && !strings.HasPrefix(lang, got) {
			t.Errorf("%s: got Content-Language %q", lang, got)
		}
	}
}

func TestServe_AnswersPreflightsWithoutABody(t *testing.T) {
	address, _ := start(t, nil)
	for origin, want := range map[string]int{"https://app.example": 200, "https://evil.example": 403, "null": 403, "": 405} {
		headers := []string{"Access-Control-Request-Method", "GET"}
		if origin != "" {
			headers = append(headers, "Origin", origin)
		}
		response, body := send(t, address, "OPTIONS", thingPath, "", headers...)
		if response.StatusCode != want || want != 405 && body != "" {
			t.Errorf("origin %q: got %d %q, want %d", origin, response.StatusCode, body, want)
		}
		allowed := response.Header.Get("Access-Control-Allow-Origin")
		if (want == 200) != (allowed == origin && origin != "") {
			t.Errorf("origin %q: got Access-Control-Allow-Origin %q", origin, allowed)
		}
		if want == 405 && response.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("got Allow %q, want GET, HEAD", response.Header.Get("Allow"))
		}
	}
}

func TestServe_RefusesBodiesItDoesNotRead(t *testing.T) {
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
			response, body := send(t, address, "POST", "/v1/things", c.body, append(creator, c.headers...)...)
			if response.StatusCode != c.status {
				t.Errorf("got %d %.200s, want %d", response.StatusCode, body, c.status)
			}
			if c.status != 201 && !json.Valid([]byte(body)) {
				t.Errorf("the answer is no JSON: %.200q", body)
			}
		})
	}
}

func TestServe_BoundsTheBodyByRoute(t *testing.T) {
	address, _ := start(t, nil)
	if response, body := send(t, address, "POST", "/v1/big", `{"name":"`+strings.Repeat("a", 2<<20)+`"}`); response.StatusCode != 200 {
		t.Errorf("2 MiB: got %d %.200s, want 200", response.StatusCode, body)
	}
	if response, _ := send(t, address, "POST", "/v1/big", strings.Repeat("a", 4<<20)); response.StatusCode != 413 {
		t.Errorf("4 MiB: got %d, want 413", response.StatusCode)
	}
}

func TestServe_KeepsEachAnswerToItsKey(t *testing.T) {
	address, _ := start(t, nil)
	headers := []string{"Authorization", "Bearer user-creator", "Idempotency-Key", "k1"}
	if response, body := send(t, address, "POST", "/v1/things", `{"name":"a"}`, headers...); response.StatusCode != 201 || !strings.Contains(body, "second") {
		t.Fatalf("first: got %d %s", response.StatusCode, body)
	}
	response, body := send(t, address, "POST", "/v1/things", `{"name":"a"}`, headers...)
	if response.StatusCode != 201 || body != `{"id":"first"}` || response.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("again: got %d %s, want the stored answer", response.StatusCode, body)
	}
	if response, body := send(t, address, "POST", "/v1/things", `{"name":"b"}`, headers...); response.StatusCode != 422 {
		t.Errorf("another body: got %d %s, want 422", response.StatusCode, body)
	}
}

func TestServe_AnswersConditionalRequests(t *testing.T) {
	address, _ := start(t, nil)
	reader := []string{"Authorization", "Bearer user-reader"}
	response, _ := send(t, address, "GET", thingPath, "", reader...)
	if response.Header.Get("ETag") != `"v1"` || response.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("got ETag %s, Cache-Control %s", response.Header.Get("ETag"), response.Header.Get("Cache-Control"))
	}
	for tag, want := range map[string]int{`"v1"`: 304, `W/"v1"`: 304, `"v0", "v1"`: 304, `*`: 304, `"v2"`: 200, `v1`: 200} {
		if response, body := send(t, address, "GET", thingPath, "", append(reader, "If-None-Match", tag)...); response.StatusCode != want || want == 304 && body != "" {
			t.Errorf("%s: got %d %q, want %d", tag, response.StatusCode, body, want)
		}
	}
	head, body := send(t, address, "HEAD", thingPath, "", reader...)
	if head.StatusCode != 200 || body != "" || head.Header.Get("ETag") != `"v1"` {
		t.Errorf("HEAD: got %d %q", head.StatusCode, body)
	}
}

func TestServe_TakesAnAPIKeyOnItsRoutesOnly(t *testing.T) {
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
			response, body := send(t, address, c.method, c.path, "", c.headers...)
			if response.StatusCode != c.status {
				t.Errorf("got %d %s, want %d", response.StatusCode, body, c.status)
			}
			if c.status == 401 && response.Header.Get("WWW-Authenticate") == "" {
				t.Error("401 without WWW-Authenticate")
			}
		})
	}
}

func TestServe_KeepsSaneRequestIDs(t *testing.T) {
	address, _ := start(t, nil)
	for id, kept := range map[string]bool{"abc-1.2_3:4": true, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false, "a b": false, "<x>": false} {
		response, _ := send(t, address, "GET", "/healthz", "", "X-Request-ID", id)
		if got := response.Header.Get("X-Request-ID"); (got == id) != kept || got == "" {
			t.Errorf("%.20q: got %q, kept should be %t", id, got, kept)
		}
	}
}

func TestServe_BelievesOnlyTrustedProxies(t *testing.T) {
	for name, c := range map[string]struct {
		trusted   []netip.Prefix
		forwarded string
		want      string
	}{
		"nobody is trusted": {nil, "203.0.113.7", "127.0.0.1"},
		"the right-most":    {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "6.6.6.6, 203.0.113.7", "203.0.113.7"},
		"past a proxy":      {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8")}, "203.0.113.7, 10.1.1.1", "203.0.113.7"},
		"nonsense":          {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "unknown", "127.0.0.1"},
		"IPv6":              {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
	} {
		t.Run(name, func(t *testing.T) {
			address, _ := start(t, func(o *server.Options) { o.TrustedProxies = c.trusted })
			if _, body := send(t, address, "GET", "/public", "", "X-Forwarded-For", c.forwarded); !strings.Contains(body, `"network":"`+c.want+`"`) {
				t.Errorf("got %s, want network %s", body, c.want)
			}
		})
	}
}

func TestServe_AnswersBrokenHTTPWithoutQuotingIt(t *testing.T) {
	address, _ := start(t, nil)
	for name, c := range map[string]struct{ request, status string }{
		"two lengths":       {"POST /v1/things HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "400"},
		"no version":        {"GET /secret-token\r\n\r\n", "400"},
		"huge header":       {"GET / HTTP/1.1\r\nHost: a\r\nX-Secret: " + strings.Repeat("s", 40_000) + "\r\n\r\n", "431"},
		"declared too much": {"POST /v1/big HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 999999999\r\n\r\n", "413"},
		"unknown version":   {"GET /public HTTP/9.9\r\nHost: a\r\n\r\n", "400"},
		"unknown method":    {"BREW /v1/things HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "405"},
		"method elsewhere":  {"BREW /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "404"},
	} {
		t.Run(name, func(t *testing.T) {
			connection, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			fmt.Fprint(connection, c.request)
			response, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			body, _ := io.ReadAll(response.Body)
			if got := response.Status[:3]; got != c.status {
				t.Errorf("got %s %s, want %s", response.Status, body, c.status)
			}
			if !json.Valid(body) || strings.Contains(strings.ToLower(string(body)), "secret") {
				t.Errorf("got %s, want our envelope without the request", body)
			}
			if response.Header.Get("Server") != "" {
				t.Error("there is a server banner")
			}
		})
	}
}

func TestShutdown_AnswersNewRequestsWithTheHealthMap(t *testing.T) {
	address, s := start(t, nil)
	drained := make(chan struct{})
	s.OnDrain = append(s.OnDrain, func() { close(drained) })
	go func() { _ = s.Shutdown(context.Background()) }()
	<-drained
	response, body := send(t, address, "GET", "/public", "")
	var health struct {
		OverallStatus string    `json:"overall_status"`
		Message       string    `json:"message"`
		Timestamp     time.Time `json:"timestamp"`
	}
	if err := json.Unmarshal([]byte(body), &health); err != nil || response.StatusCode != 503 || health.OverallStatus != "unhealthy" ||
		health.Message == "" || health.Timestamp.IsZero() {
		t.Errorf("got %d %s, want the health map", response.StatusCode, body)
	}
	if response, body := send(t, address, "GET", "/stream", ""); response.StatusCode != 503 || body != "server shutting down" ||
		!strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("stream: got %d %q, want the plain text", response.StatusCode, body)
	}
	if response, _ := send(t, address, "GET", "/healthz", ""); response.StatusCode != 200 {
		t.Errorf("healthz: got %d, want 200: the process runs", response.StatusCode)
	}
}

func TestReadyz_TellsWhichProbeFailsButNotWhy(t *testing.T) {
	address, _ := start(t, func(o *server.Options) {
		o.Probes = []server.Probe{{Name: "database", Check: func(context.Context) error { return nil }},
			{Name: "queue", Check: func(context.Context) error { return errors.New("secret") }}}
	})
	response, body := send(t, address, "GET", "/readyz", "")
	if response.StatusCode != 503 || !strings.Contains(body, `"queue":"failed"`) || !strings.Contains(body, `"database":"ok"`) || strings.Contains(body, "secret") {
		t.Errorf("got %d %s", response.StatusCode, body)
	}
}

func TestMetrics_AreForLoopbackAndAdministrators(t *testing.T) {
	address, _ := start(t, nil)
	if response, body := send(t, address, "GET", "/metrics", ""); response.StatusCode != 200 || !strings.Contains(body, "kontor_http_requests_total") {
		t.Errorf("loopback: got %d", response.StatusCode)
	}
	for token, want := range map[string]int{"": 401, "user-reader": 403, "root": 200} {
		response, _ := send(t, address, "GET", "/metrics", "", "X-Forwarded-For", "203.0.113.7", "Authorization", "Bearer "+token)
		if response.StatusCode != want {
			t.Errorf("proxied with token %q: got %d, want %d", token, response.StatusCode, want)
		}
	}
}

func TestNew_RefusesAnIncompleteTable(t *testing.T) {
	texts, _ := locales.Load()
	_, err := server.New(server.Options{Endpoints: []endpoint.Endpoint{{Name: "x"}}, Texts: texts, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "access is not decided") {
		t.Errorf("got %v, want it to name what is missing", err)
	}
}
