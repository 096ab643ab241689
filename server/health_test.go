package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/ratelimit"
	"kontor/server/servertest"
)

func TestShutdown_AnswersNewRequestsWithTheHealthMap(t *testing.T) {
	address, s := start(t, nil)
	drained, asked := make(chan struct{}), make(chan struct{})
	s.OnDrain = append(s.OnDrain, func() { close(drained); <-asked }) // the listener closes some time after it has returned
	defer close(asked)
	go func() { _ = s.Shutdown(context.Background()) }()
	<-drained
	response, body := servertest.Send(t, address, "GET", "/public", "")
	var health struct {
		OverallStatus string    `json:"overall_status"`
		Message       string    `json:"message"`
		Timestamp     time.Time `json:"timestamp"`
	}
	if err := json.Unmarshal([]byte(body), &health); err != nil || response.StatusCode != 503 || health.OverallStatus != "unhealthy" ||
		health.Message == "" || health.Timestamp.IsZero() {
		t.Errorf("got %d %s, want the health map", response.StatusCode, body)
	}
	if response, body := servertest.Send(t, address, "GET", "/stream", ""); response.StatusCode != 503 || body != "server shutting down" ||
		!strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") {
		t.Errorf("stream: got %d %q, want the plain text", response.StatusCode, body)
	}
	if response, _ := servertest.Send(t, address, "GET", "/healthz", ""); response.StatusCode != 200 {
		t.Errorf("healthz: got %d, want 200: the process runs", response.StatusCode)
	}
}

func TestReadyz_NamesFailedProbesWithoutTheCause(t *testing.T) {
	address, _ := start(t, func(o *server.Options) {
		o.Probes = []server.Probe{{Name: "database", Check: func(context.Context) error { return nil }},
			{Name: "queue", Check: func(context.Context) error { return errors.New("secret") }}}
	})
	response, body := servertest.Send(t, address, "GET", "/readyz", "")
	if response.StatusCode != 503 || !strings.Contains(body, `"queue":"failed"`) || !strings.Contains(body, `"database":"ok"`) || strings.Contains(body, "secret") {
		t.Errorf("got %d %s", response.StatusCode, body)
	}
}

// Whether a request came through a proxy makes no difference: a proxy on this machine may add no header.
func TestMetrics_AreForAdministrators(t *testing.T) {
	address, _ := start(t, nil)
	for token, want := range map[string]int{"": 401, "user-reader": 403, "root": 200} {
		for _, forwarded := range []string{"", "203.0.113.7", "127.0.0.1"} {
			response, body := servertest.Send(t, address, "GET", "/metrics", "", "X-Forwarded-For", forwarded, "Authorization", "Bearer "+token)
			if response.StatusCode != want || strings.Contains(body, "kontor_http_requests_total") != (want == 200) {
				t.Errorf("forwarded for %q, token %q: got %d, want %d", forwarded, token, response.StatusCode, want)
			}
		}
	}
}

// The names of nodes are public, and nothing else about them that an attacker could use.
func TestReadyz_ListsTheNodes(t *testing.T) {
	address, _ := start(t, func(o *server.Options) {
		o.Probes = []server.Probe{{Name: "cluster", Advisory: true, Check: func(context.Context) error { return errors.New("secret") }}}
		o.Nodes = func() []server.NodeHealth {
			return []server.NodeHealth{{Name: "first", Self: true, Leads: true, LagMS: 1, Started: "2027-01-31T08:00:00.000Z", LeaseUntil: "2027-01-31T08:00:02.000Z"}}
		}
	})
	response, body := servertest.Send(t, address, "GET", "/readyz", "")
	want := `"nodes":[{"name":"first","self":true,"leads":true,"lag_ms":1,"started":"2027-01-31T08:00:00.000Z","lease_until":"2027-01-31T08:00:02.000Z"}]`
	if response.StatusCode != 200 || !strings.Contains(body, want) || !strings.Contains(body, `"cluster":"warning"`) || strings.Contains(body, "secret") {
		t.Errorf("got %d %s, want %s", response.StatusCode, body, want)
	}
	alone, _ := start(t, nil)
	if _, body := servertest.Send(t, alone, "GET", "/readyz", ""); strings.Contains(body, "nodes") {
		t.Errorf("without other nodes: got %s", body)
	}
}

func TestStarting_AnswersUntilTheServerDoes(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := server.NewStarting(listener, nil, slog.New(slog.DiscardHandler))
	get := func(path, language string) (*http.Response, map[string]any) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+listener.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept-Language", language)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		var decoded map[string]any
		if err := json.Unmarshal(body, &decoded); err != nil {
			t.Fatalf("%s: %s", path, body)
		}
		return answer, decoded
	}
	s.Begin()
	if _, body := get("/readyz", "en"); body["progress"] != nil {
		t.Errorf("a progress that is not known: %v", body)
	}
	s.Report(250, 1000)
	if answer, body := get("/healthz", "en"); answer.StatusCode != 200 || body["overall_status"] != "healthy" {
		t.Errorf("/healthz: %d %v", answer.StatusCode, body)
	}
	answer, body := get("/readyz", "de")
	progress, _ := body["progress"].(map[string]any)
	if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" || body["overall_status"] != "unhealthy" ||
		progress["done"] != 250.0 || progress["total"] != 1000.0 || progress["percent"] != 25.0 || !strings.Contains(body["message"].(string), "Dienst") {
		t.Errorf("/readyz: %d %v %v", answer.StatusCode, answer.Header, body)
	}
	for language, word := range map[string]string{"en": "starting", "de": "startet", "fr": "démarre", "it": "avviando"} {
		answer, body := get("/v1/customers", language)
		if answer.StatusCode != 503 || answer.Header.Get("Retry-After") == "" || answer.Header.Get("Content-Language") != language ||
			body["code"] != "common.starting" || body["retryable"] != true || !strings.Contains(body["message"].(string), word) {
			t.Errorf("%s: %d %v %v", language, answer.StatusCode, answer.Header, body)
		}
	}
	s.Report(2000, 1000) // more than there were
	if _, body := get("/readyz", "en"); body["progress"].(map[string]any)["percent"] != 100.0 {
		t.Errorf("more than all: %v", body)
	}
	waiting, err := net.Dial("tcp", listener.Addr().String()) // a client that sends nothing does not hold the start up
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	s.Stop()
	s.Stop()
	next := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"next":true}`) })}
	go next.Serve(listener)
	defer next.Close()
	if _, body := get("/readyz", "en"); body["next"] != true {
		t.Errorf("after the start: %v", body)
	}
	s.Report(1000, 1000)
	if _, body := get("/readyz", "en"); body["next"] != true {
		t.Errorf("after a late report: %v", body)
	}
}

func TestStarting_NeedNotAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	s := server.NewStarting(listener, nil, slog.New(slog.DiscardHandler))
	s.Stop()
	s.Begin()
	s.Stop()
}

// lease is the memory of a node whose lease may end.
type lease struct {
	valid  atomic.Bool
	err    error
	renew  func()
	renews atomic.Int64
}

func (l *lease) Remembers() bool { return l.valid.Load() }

func (l *lease) Renew(context.Context) error {
	l.renews.Add(1)
	if l.renew != nil {
		l.renew()
	}
	return l.err
}

// A node without a lease reads the policy before it decides; a node with one does not read.
func TestMemory_IsRenewedWithoutALease(t *testing.T) {
	memory := &lease{}
	memory.valid.Store(true)
	address, _ := start(t, func(o *server.Options) {
		o.Auth, o.Memory = tokens{cached: true}, memory
		policy := o.Policy
		memory.renew = func() { policy.Store(access.NewPolicy(access.PolicyData{})) } // what another node has changed
	})
	status := func() int {
		response, _ := servertest.Send(t, address, "GET", thingPath, "", "Authorization", "Bearer user-reader")
		return response.StatusCode
	}
	if status() != http.StatusOK || memory.renews.Load() != 0 {
		t.Error("a node with a lease has read the policy")
	}
	memory.valid.Store(false)
	if got := status(); got != http.StatusForbidden || memory.renews.Load() == 0 {
		t.Errorf("a node without a lease answers %d", got)
	}
}

// A node that can neither hear of changes nor read them refuses callers, and still answers probes and public requests.
func TestMemory_CannotBeRenewed(t *testing.T) {
	address, _ := start(t, func(o *server.Options) {
		o.Auth, o.Memory = tokens{cached: true}, &lease{err: errors.New("no database")}
	})
	for path, want := range map[string]int{thingPath: 503, "/healthz": 200, "/public": 200, "/openapi.json": 200} {
		response, body := servertest.Send(t, address, "GET", path, "", "Authorization", "Bearer user-reader")
		if response.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", path, response.StatusCode, body, want)
		}
	}
}

// counts is a table of counts that can fail.
type counts struct{ err error }

func (c counts) Count(_ context.Context, _ []byte, perMinute int) (ratelimit.Verdict, error) {
	return ratelimit.Verdict{Limit: perMinute}, c.err
}

func (c counts) Refund(context.Context, []byte, int) error { return c.err }

// Stored rules are counted in the table. Without it, each node allows its share of the rule.
func TestRateLimit_StoredRulesAreCountedForAllNodes(t *testing.T) {
	for _, c := range []struct {
		counts  server.Counts
		allowed int
	}{{counts{}, 0}, {counts{errors.New("no writes")}, 1}, {nil, 1}} {
		address, _ := start(t, func(o *server.Options) {
			o.Auth, o.Counts, o.LiveNodes = tokens{cached: true}, c.counts, func() int { return 2 }
		})
		allowed := 0
		for range 5 { // the rule allows 3 requests
			response, _ := servertest.Send(t, address, "POST", "/v1/things", `{"name":"x"}`, "Authorization", "Bearer user-creator")
			if response.StatusCode == http.StatusCreated {
				allowed++
			}
		}
		if allowed != c.allowed {
			t.Errorf("%+v: %d requests were allowed, want %d", c.counts, allowed, c.allowed)
		}
	}
}
