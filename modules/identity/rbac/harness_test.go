package rbac_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/modules/bank/personas"
	"kontor/modules/identity/rbac"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

// bank is a running server whose users are named by their ids. Personas serve as records.
type harness struct {
	*servertest.Server
	t       testing.TB
	root    string   // an administrator
	clients sync.Map // user id → *servertest.Client
}

// generalLimit is the general rate limit of a bank, in requests a minute.
const generalLimit = 1_000_000

func newHarness(t testing.TB) *harness {
	t.Helper()
	s := servertest.Start(t, func(o *settings.Settings) {
		o.RateLimits.Enabled = true
		o.RateLimits.PublicPerMinute, o.RateLimits.PrivatePerMinute = generalLimit, generalLimit
	})
	h := &harness{Server: s, t: t}
	admin := s.Admin()
	h.root = admin.UserID
	h.clients.Store(h.root, admin)
	return h
}

// newService returns a further service on the database of the bank. It shares the policy with the running one.
func (h *harness) newService() *rbac.Service {
	return rbac.New(h.DB, rbac.Options{Policy: h.Policy, Users: h.Users, Texts: h.Texts})
}

func (h *harness) exec(statement string, args ...any) {
	h.t.Helper()
	err := h.DB.InTx(context.Background(), func(tx *store.Tx) error {
		_, err := tx.Exec(context.Background(), statement, args...)
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
}

// user creates a user with roles and returns its id.
func (h *harness) user(roles ...string) string {
	h.t.Helper()
	client := h.User(roles...)
	h.clients.Store(client.UserID, client)
	return client.UserID
}

// as returns the context of a user who also is an administrator.
func (h *harness) as(userID string) context.Context {
	caller := access.Caller{UserID: userID, Roles: []string{access.Administrator}}
	return access.With(context.Background(), caller.WithPolicy(h.Policy.Load()))
}

// persona creates a persona of a user and returns its id.
func (h *harness) persona(owner string) string {
	h.t.Helper()
	in := personas.CreateInput{FirstName: "Ada", LastName: "Muster", DateOfBirth: "1990-01-31"}
	in.Validate(context.Background(), &apierr.Fields{})                      // outside a request the date is in the future, which does not matter here
	caller := access.Caller{UserID: owner, Roles: []string{access.Customer}} // who does not act for the bank
	p, err := h.Personas.Create(access.With(context.Background(), caller.WithPolicy(h.Policy.Load())), in)
	if err != nil {
		h.t.Fatal(err)
	}
	return p.ID
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

func (a answer) code() string { code, _ := a.body["code"].(string); return code }

func (a answer) id() string { id, _ := a.body["id"].(string); return id }

func (a answer) data() []map[string]any {
	var found []map[string]any
	rows, _ := a.body["data"].([]any)
	for _, row := range rows {
		found = append(found, row.(map[string]any))
	}
	return found
}

// do sends a request of a user. An unknown user has an invalid token. Headers come in pairs.
func (h *harness) do(user, method, path string, body any, headers ...string) answer {
	h.t.Helper()
	a, err := h.try(user, method, path, body, headers...)
	if err != nil {
		h.t.Fatal(err)
	}
	return a
}

// try is do for goroutines other than that of the test. A persona is updated and created with valid data unless there is a body.
func (h *harness) try(user, method, path string, body any, headers ...string) (answer, error) {
	if body == nil && (method == http.MethodPut || method == http.MethodPost) && strings.HasPrefix(path, "/v1/personas") {
		body = object{"first_name": "Ada", "last_name": "Muster", "date_of_birth": "1990-01-31"}
	}
	client := h.Anonymous().With("Authorization", "Bearer "+user)
	if known, ok := h.clients.Load(user); ok {
		client = known.(*servertest.Client)
	}
	r, err := client.With(headers...).Try(method, path, body)
	a := answer{status: r.Status, header: r.Header, text: r.Body}
	if err == nil && a.text != "" {
		err = json.Unmarshal([]byte(a.text), &a.body)
	}
	return a, err
}

// want sends a request and checks the status and, for an error, the code.
func (h *harness) want(status int, code, user, method, path string, body any, headers ...string) answer {
	h.t.Helper()
	a := h.do(user, method, path, body, headers...)
	if a.status != status || a.code() != code {
		h.t.Fatalf("%s %s: got %d %s, want %d %s\n%s", method, path, a.status, a.code(), status, code, a.text)
	}
	return a
}

type object = map[string]any

// grant creates a grant as the administrator and returns its id.
func (h *harness) grant(body object) string {
	h.t.Helper()
	return h.want(201, "", h.root, "POST", "/v1/rbac/grants", body).id()
}

// role creates a role and returns its id.
func (h *harness) role(name string) string {
	h.t.Helper()
	return h.want(201, "", h.root, "POST", "/v1/rbac/roles", object{"name": name}).id()
}

// endpoints returns a copy of the endpoint table of the modules without the endpoints with the names.
func (h *harness) endpoints(without ...string) []endpoint.Endpoint {
	var table []endpoint.Endpoint
	for _, e := range h.Endpoints() {
		if !strings.Contains(" "+strings.Join(without, " ")+" ", " "+e.Name+" ") {
			table = append(table, e)
		}
	}
	return table
}
