package specification_test

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

// statement is one statement of the specification and the proof that Kontor keeps it. The quote is a part of one line of the document.
type statement struct {
	quote string
	check func(t *testing.T, b *bank)
}

// bank is a running server with a user of each kind, and records whose ids replace names such as {customer} in requests and texts.
type bank struct {
	*servertest.Server
	callers map[string]*servertest.Client
	names   map[string]string
}

// origin is a website that the server allows to call it.
const origin = "https://app.example"

func open(t *testing.T) *bank {
	t.Helper()
	s := servertest.Start(t, func(o *settings.Settings) {
		o.Notifications.Trigger.Enabled = settings.TriggerOn
		o.CORS.AllowedOrigins = []string{origin}
	})
	b := &bank{Server: s, names: map[string]string{"nil": store.NilID, "unknown": store.NewID()}, callers: map[string]*servertest.Client{
		"admin": s.Admin(), "advisor": s.User(access.Advisor), "anna": s.User(access.Customer), "beat": s.User(access.Customer),
		"registrant": s.User(access.Registrant), "nobody": s.Anonymous(), "key": s.Keyed()}}
	for name, c := range b.callers {
		b.names[name] = c.UserID
	}
	for _, made := range []struct{ name, as, path, body string }{
		{"customer", "anna", "/v1/customers", `{"first_name":"Anna","last_name":"Keller","email":"anna@example.ch","phone":"+41446681800",
			"date_of_birth":"1984-05-17","nationality":"CHE","address":{"street":"Seeweg 1","city":"Zug","postal_code":"6300","country":"CH"},"metadata":{"a":1}}`},
		{"persona", "advisor", "/v1/personas", `{"first_name":"Anna","last_name":"Keller","date_of_birth":"1984-05-17","nationality":"CHE","hash_id":"h1"}`},
		{"payer", "advisor", "/v1/payers", `{"customer_id":"{customer}","email":"p@example.ch","name":"Beat Brunner","company":"Keller Holzbau AG",
			"country":"CHE","metadata":{}}`},
		{"chat", "advisor", "/v1/chats", `{"participants":["{anna}"]}`},
		{"message", "advisor", "/v1/chats/{chat}/messages", `{"content":"Good morning"}`},
		{"task", "advisor", "/v1/customers/{customer}/tasks", `{"title":"Sign","category":"sign","description":"The contract","assignees":[{"user_id":"{anna}","weight":2}]}`},
	} {
		b.names[made.name] = b.callers[made.as].Create(b.fill(made.path), b.fill(made.body))
	}
	return b
}

// fill replaces {name} by the value of the name. Other text in braces, such as JSON, stays.
func (b *bank) fill(text string) string {
	for name, value := range b.names {
		text = strings.ReplaceAll(text, "{"+name+"}", value)
	}
	return text
}

// step is one request, and what its answer must have. A text that begins with "!" must not be in the answer.
type step struct {
	as, request, body string
	status            int
	texts             []string
	name, member      string
	headers           []string
}

// do is a request such as "GET /v1/customers" of a caller. An empty body sends none.
func do(as, request, body string, status int, texts ...string) step {
	return step{as: as, request: request, body: body, status: status, texts: texts}
}

// keep gives a member of the answer a name for later steps.
func (s step) keep(name, member string) step {
	s.name, s.member = name, member
	return s
}

// with adds headers in pairs.
func (s step) with(headers ...string) step {
	s.headers = headers
	return s
}

// steps sends requests one after another.
func steps(all ...step) func(*testing.T, *bank) {
	return func(t *testing.T, b *bank) {
		t.Helper()
		for _, s := range all {
			b.send(t, s)
		}
	}
}

// send sends the request of a step, compares the answer, and returns it.
func (b *bank) send(t *testing.T, s step) servertest.Response {
	t.Helper()
	method, path, _ := strings.Cut(b.fill(s.request), " ")
	var body any
	if s.body != "" {
		body = b.fill(s.body)
	}
	answer, err := b.callers[s.as].With(s.headers...).Try(method, path, body)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Status != s.status {
		t.Fatalf("%s as %s: got %d %s, want %d", s.request, s.as, answer.Status, answer.Body, s.status)
	}
	for _, text := range s.texts {
		unwanted, isUnwanted := strings.CutPrefix(text, "!")
		switch {
		case isUnwanted && strings.Contains(answer.Body, b.fill(unwanted)):
			t.Errorf("%s as %s: %s has %s", s.request, s.as, answer.Body, unwanted)
		case !isUnwanted && !strings.Contains(answer.Body, b.fill(text)):
			t.Errorf("%s as %s: %s lacks %s", s.request, s.as, answer.Body, text)
		}
	}
	if s.name != "" {
		b.names[s.name] = fmt.Sprint(answer.JSON(t)[s.member])
	}
	return answer
}

// apart returns a copy of the bank with names of its own, so that statements do not see each other's.
func (b *bank) apart() *bank {
	return &bank{Server: b.Server, callers: b.callers, names: maps.Clone(b.names)}
}

// TestStatements checks every statement. The name of a subtest is the quote.
func TestStatements(t *testing.T) {
	b := open(t)
	for _, part := range parts {
		for _, s := range part {
			t.Run(s.quote, func(t *testing.T) { s.check(t, b.apart()) })
		}
	}
}

// parts are the statements by subject.
var parts = [][]statement{records, people, work, access_, notifications, stream, conventions}

// document returns the lines of the specification.
func document(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/specification.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// all runs several checks.
func all(checks ...func(*testing.T, *bank)) func(*testing.T, *bank) {
	return func(t *testing.T, b *bank) {
		t.Helper()
		for _, check := range checks {
			check(t, b)
		}
	}
}
