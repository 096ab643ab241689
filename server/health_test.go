package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"kontor/server"
	"kontor/server/servertest"
)

func TestShutdown_AnswersNewRequestsWithTheHealthMap(t *testing.T) {
	address, s := start(t, nil)
	drained := make(chan struct{})
	s.OnDrain = append(s.OnDrain, func() { close(drained) })
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
	began := time.Date(2027, 1, 31, 8, 0, 0, 0, time.UTC)
	address, _ := start(t, func(o *server.Options) {
		o.Probes = []server.Probe{{Name: "cluster", Advisory: true, Check: func(context.Context) error { return errors.New("secret") }}}
		o.Nodes = func() []server.Node {
			return []server.Node{{Name: "first", Self: true, Leads: true, Lag: 1500 * time.Microsecond, Started: began, LeaseEnd: began.Add(2 * time.Second)}}
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
