package app_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"kontor/locales"
	"kontor/server/endpoint"
	"kontor/server/servertest"
)

// day is a day at the bank: one long scenario that uses every endpoint once with success. It keeps count of the rows
// that were answered.
type day struct {
	*testing.T
	s        *servertest.Server
	admin    *servertest.Client
	answered map[string]bool
	requests int
	listed   func(c *servertest.Client, e endpoint.Endpoint, path string) // hears of each list that was read
}

// TestDay_UsesEveryEndpointWithSuccess fails when a row of the table was never answered with its success: a new endpoint
// needs its place in the day.
func TestDay_UsesEveryEndpointWithSuccess(t *testing.T) {
	d := newDay(t)
	d.passes()
	for _, e := range d.s.Table() {
		if !d.answered[e.Key()] {
			t.Errorf("%s was never answered with success: give it a place in the day", e.Key())
		}
	}
}

func newDay(t *testing.T) *day {
	t.Helper()
	s := servertest.Start(t)
	return &day{T: t, s: s, admin: s.Admin(), answered: map[string]bool{"POST /authenticate": true},
		listed: func(*servertest.Client, endpoint.Endpoint, string) {}}
}

// passes is the whole day, from the opening to a look at what it has left.
func (d *day) passes() {
	d.opens()
	people := d.people()
	d.access(people)
	customer := d.customers(people)
	d.identities(people)
	d.payers(customer)
	d.talk(people)
	d.work(people, customer)
	d.profiles(people)
	d.invoices()
	d.notified(people, customer)
	d.recovery()
	d.sessions(people)
	d.audited()
}

// has tells whether the table has a row, so that the day goes on while a module is still to come.
func (d *day) has(key string) bool {
	for _, e := range d.s.Table() {
		if e.Key() == key {
			return true
		}
	}
	return false
}

// row finds the row of a request as the router does: fixed segments win over names.
func (d *day) row(method, path string) endpoint.Endpoint {
	d.Helper()
	path, _, _ = strings.Cut(path, "?")
	segments := splitPath(path)
	var found endpoint.Endpoint
	best := -1
	for _, e := range d.s.Table() {
		if fixed := matches(splitPath(e.Path), segments); e.Method == method && fixed > best {
			found, best = e, fixed
		}
	}
	if best < 0 {
		d.Fatalf("no row for %s %s", method, path)
	}
	return found
}

func splitPath(path string) []string { return strings.Split(path, "/") }

// matches counts the fixed segments of a pattern that a path fits, or gives -1.
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

// do makes a request that must succeed, in one language after the other. A request that creates is sent twice with the
// same key: the second answer must be the first, and nothing may happen.
func (d *day) do(c *servertest.Client, method, path string, body any) servertest.Response {
	d.Helper()
	e := d.row(method, path)
	status := e.Handle.Status
	d.requests++
	c = c.With("Accept-Language", locales.Languages()[d.requests%len(locales.Languages())])
	creates := method == "POST" && status == http.StatusCreated
	if creates {
		c = c.With("Idempotency-Key", fmt.Sprintf("request-%d", d.requests))
	}
	answer := c.Do(method, path, body).Expect(d, status)
	d.answered[e.Key()] = true
	if e.Doc.Search != nil {
		d.listed(c, e, path)
	}
	if !creates {
		return answer
	}
	again := c.Do(method, path, body).Expect(d, status)
	if again.Body != answer.Body || again.Header.Get("Idempotency-Replayed") != "true" || again.Header.Get("ETag") != answer.Header.Get("ETag") {
		d.Errorf("%s answered %s, and to the same request again %s", e.Key(), answer.Body, again.Body)
	}
	return answer
}

// id makes a record and gives its id.
func (d *day) id(c *servertest.Client, path string, body any) string {
	d.Helper()
	var made struct{ ID string }
	d.do(c, "POST", path, body).Into(d, &made)
	if made.ID == "" {
		d.Fatalf("POST %s gave no id", path)
	}
	return made.ID
}

// expect makes a request that must end otherwise than with success.
func (d *day) expect(c *servertest.Client, method, path string, body any, status int, code string) {
	d.Helper()
	if answer := c.Do(method, path, body).Expect(d, status); !strings.Contains(answer.Body, `"`+code+`"`) {
		d.Errorf("%s %s: got %s, want %s", method, path, answer.Body, code)
	}
}

// opens looks at the bank from outside.
func (d *day) opens() {
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json"} {
		if d.has("GET " + path) {
			d.do(d.s.Anonymous(), "GET", path, nil)
		}
	}
	d.do(d.s.Keyed(), "GET", "/v1/public-endpoint", nil)
}

// continuous are the record types of which nothing changes without an entry. (A message changes a chat.)
var continuous = map[string]bool{"customers": true, "personas": true, "payers": true, "tasks": true, "roles": true, "rate_limits": true,
	"credentials": true, "users": true}

// audited looks at the trail that the day has left: unbroken, and every change begins where the one before it ended.
func (d *day) audited() {
	var status struct {
		Complete bool
		Entries  int
		FirstBad any `json:"first_bad"`
	}
	if d.do(d.admin, "GET", "/v1/audit/status?restart=true", nil).Into(d, &status); !status.Complete || status.FirstBad != nil {
		d.Errorf("the audit trail is %+v", status)
	}
	last := map[string]entry{}
	for offset := 0; offset < status.Entries; offset += 100 {
		var page struct{ Data []entry }
		d.do(d.admin, "GET", fmt.Sprintf("/v1/audit?limit=100&sort=seq&offset=%d", offset), nil).Into(d, &page)
		for _, e := range page.Data {
			record := e.RecType + " " + e.RecID
			if before := last[record]; continuous[e.RecType] && before.After != "" && e.Before != "" && e.Before != before.After {
				d.Errorf("%s of %s begins with another state than %s left", e.Action, record, before.Action)
			}
			if e.Before != "" || e.After != "" { // others tell of what no record shows, such as a password
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

// stream opens an event stream and reads up to the event of a kind.
func (d *day) stream(c *servertest.Client, method, event string) {
	d.Helper()
	request, err := http.NewRequestWithContext(d.Context(), method, "http://"+d.s.Address+"/v1/notifications/sse", nil)
	if err != nil {
		d.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		d.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != 200 {
		d.Fatalf("%s stream: %d", method, response.StatusCode)
	}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if lines.Text() == "event: "+event {
			d.answered[method+" /v1/notifications/sse"] = true
			return
		}
	}
	d.Errorf("%s stream ended without %s", method, event)
}
