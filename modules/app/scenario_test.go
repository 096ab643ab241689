package app_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/locales"
	"kontor/modules/identity/oidc/oidctest"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store/testenv"
)

// scenario calls every endpoint with success at least once. It records which endpoints succeeded.
type scenario struct {
	*testing.T
	server    *servertest.Server
	provider  *oidctest.Provider
	admin     *servertest.Client
	succeeded map[string]bool // by method and path of the endpoint
	requests  int
	listed    func(c *servertest.Client, e endpoint.Endpoint, path string)  // called after each list
	asked     func()                                                        // called before each request that must succeed
	answered  func(e endpoint.Endpoint, path string, a servertest.Response) // called after each success
}

// TestScenario_CallsEveryEndpoint fails for an endpoint that never succeeded. Add new endpoints to the scenario.
func TestScenario_CallsEveryEndpoint(t *testing.T) {
	s := newScenario(t)
	s.run()
	for _, e := range s.server.Table() {
		if !s.succeeded[e.Key()] {
			t.Errorf("%s never succeeded: add it to the scenario", e.Key())
		}
	}
}

func newScenario(t *testing.T) *scenario {
	t.Helper()
	clock := time.Now
	provider, withIt := withProvider(t, &clock)
	server := servertest.Start(t, withIt, func(s *settings.Settings) {
		s.Server.BaseURL = "https://kontor.localhost" // passkeys need a name, and links of kontor open this machine
		s.Notifications.Trigger.Enabled = settings.TriggerOn
		s.Requests.Keep = 100
		allowLocal(s)
	})
	clock = server.Clock.Now
	return &scenario{T: t, server: server, provider: provider, admin: server.Admin(), succeeded: map[string]bool{"POST /authenticate": true},
		listed: func(*servertest.Client, endpoint.Endpoint, string) {}, asked: func() {}, answered: func(endpoint.Endpoint, string, servertest.Response) {}}
}

// run calls all endpoints, and checks the audit trail at the end.
func (s *scenario) run() {
	s.public()
	s.oidc()
	people := s.people()
	s.access(people)
	s.services()
	s.webhooks()
	s.screening()
	s.requestLog()
	customer := s.customers(people)
	s.personas(people)
	s.payers(customer)
	s.privacy(people)
	s.chats(people)
	s.inbox(people)
	s.tasks(people, customer)
	s.profile(people)
	s.invoices()
	s.notifications(people, customer)
	s.recovery()
	s.lostRegistration()
	s.sessions(people)
	s.factors()
	s.checkAuditTrail()
}

// row finds the endpoint of a request as the router does: fixed segments take precedence over parameters.
func (s *scenario) row(method, path string) endpoint.Endpoint {
	s.Helper()
	path, _, _ = strings.Cut(path, "?")
	segments := splitPath(path)
	var found endpoint.Endpoint
	best := -1
	for _, e := range s.server.Table() {
		if fixed := matches(splitPath(e.Path), segments); e.Method == method && fixed > best {
			found, best = e, fixed
		}
	}
	if best < 0 {
		s.Fatalf("no row for %s %s", method, path)
	}
	return found
}

func splitPath(path string) []string { return strings.Split(path, "/") }

// matches returns how many fixed segments of a pattern a path matches, or -1 when it does not match the pattern.
func matches(pattern, path []string) int {
	if len(pattern) != len(path) {
		return -1
	}
	fixed := 0
	for i, segment := range pattern {
		switch {
		case segment == path[i]:
			fixed++
		case !strings.HasPrefix(segment, "{"):
			return -1
		}
	}
	return fixed
}

// do sends a request that must succeed, in alternating languages. It sends a request that creates a record twice with the
// same idempotency key: both answers must be equal.
func (s *scenario) do(c *servertest.Client, method, path string, body any) servertest.Response {
	s.Helper()
	e := s.row(method, path)
	status := e.Handle.Status
	s.requests++
	c = c.With("Accept-Language", locales.Languages()[s.requests%len(locales.Languages())])
	creates := method == "POST" && status == http.StatusCreated
	if creates {
		c = c.With("Idempotency-Key", fmt.Sprintf("request-%d", s.requests))
	}
	s.asked()
	answer := c.Do(method, path, body).Expect(s, status)
	s.succeeded[e.Key()] = true
	s.answered(e, path, answer)
	if e.Doc.Search != nil {
		s.listed(c, e, path)
	}
	if !creates {
		return answer
	}
	again := c.Do(method, path, body).Expect(s, status)
	if again.Body != answer.Body || again.Header.Get("Idempotency-Replayed") != "true" || again.Header.Get("ETag") != answer.Header.Get("ETag") {
		s.Errorf("%s answered %s, and the repeated request %s", e.Key(), answer.Body, again.Body)
	}
	return answer
}

// id creates a record and returns its id.
func (s *scenario) id(c *servertest.Client, path string, body any) string {
	s.Helper()
	var record struct{ ID string }
	s.do(c, "POST", path, body).Into(s, &record)
	if record.ID == "" {
		s.Fatalf("POST %s returned no id", path)
	}
	return record.ID
}

// expect sends a request that must fail with an error code.
func (s *scenario) expect(c *servertest.Client, method, path string, body any, status int, code string) {
	s.Helper()
	if answer := c.Do(method, path, body).Expect(s, status); !strings.Contains(answer.Body, `"`+code+`"`) {
		s.Errorf("%s %s: got %s, want %s", method, path, answer.Body, code)
	}
}

// public calls the endpoints that need no session.
func (s *scenario) public() {
	for _, path := range []string{"/healthz", "/readyz", "/openapi.json", "/.well-known/jwks.json"} {
		s.do(s.server.Anonymous(), "GET", path, nil)
	}
	s.do(s.server.Admin(), "GET", "/metrics", nil)
	s.do(s.server.Keyed(), "GET", "/v1/public-endpoint", nil)
}

// continuous are the record types that never change without an audit entry. Chats are not: a message changes them.
var continuous = map[string]bool{"customers": true, "personas": true, "payers": true, "tasks": true, "roles": true, "rate_limits": true,
	"credentials": true, "users": true}

// checkAuditTrail checks the hash chain, and that each entry's digest before the change is the digest after the previous one.
func (s *scenario) checkAuditTrail() {
	var status struct {
		Complete bool
		Entries  int
		FirstBad any `json:"first_bad"`
	}
	if s.do(s.admin, "GET", "/v1/audit/status?restart=true", nil).Into(s, &status); !status.Complete || status.FirstBad != nil {
		s.Errorf("the audit trail is %+v", status)
	}
	last := map[string]entry{}
	for offset := 0; offset < status.Entries; offset += 100 {
		var page struct{ Data []entry }
		s.do(s.admin, "GET", fmt.Sprintf("/v1/audit?limit=100&sort=seq&offset=%d", offset), nil).Into(s, &page)
		for _, e := range page.Data {
			record := e.RecType + " " + e.RecID
			if before := last[record]; continuous[e.RecType] && before.After != "" && e.Before != "" && e.Before != before.After {
				s.Errorf("the digest before %s of %s differs from the one after %s", e.Action, record, before.Action)
			}
			if e.Before != "" || e.After != "" { // other entries are about values outside the record, such as a password
				last[record] = e
			}
		}
	}
}

// entry is an entry of the audit trail.
type entry struct {
	Action  string
	RecType string `json:"rec_type"`
	RecID   string `json:"rec_id"`
	Before  string `json:"before_hash"`
	After   string `json:"after_hash"`
}

// stream opens an event stream and reads it until an event of the kind.
func (s *scenario) stream(c *servertest.Client, method, event string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), testenv.Limit())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.server.Address+"/v1/notifications/sse", nil)
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		s.Fatalf("%s stream: %d", method, response.StatusCode)
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if lines.Text() == "event: "+event {
			s.succeeded[method+" /v1/notifications/sse"] = true
			return
		}
	}
	s.Errorf("%s stream ended without %s", method, event)
}
