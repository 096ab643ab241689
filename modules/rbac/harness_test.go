package rbac_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"kontor/modules/personas"
	"kontor/modules/rbac"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

// bank is a running server whose users are named by their ids. Personas serve as records.
type bank struct {
	*servertest.Server
	t       testing.TB
	root    string   // an administrator
	clients sync.Map // user id → *servertest.Client
}

// generalLimit is the general rate limit of a bank, in requests a minute.
const generalLimit = 1_000_000

func newBank(t testing.TB) *bank {
	t.Helper()
	s := servertest.Start(t, func(o *settings.Settings) {
		o.RateLimits.Enabled = true
		o.RateLimits.PublicPerMinute, o.RateLimits.PrivatePerMinute = generalLimit, generalLimit
	})
	b := &bank{Server: s, t: t}
	admin := s.Admin()
	b.root = admin.UserID
	b.clients.Store(b.root, admin)
	return b
}

// newService returns a further service on the database of the bank. It shares the policy with the running one.
func (b *bank) newService() *rbac.Service {
	return rbac.New(b.DB, rbac.Options{Policy: b.Policy, Users: b.Users, Texts: b.Texts})
}

func (b *bank) exec(statement string, args ...any) {
	b.t.Helper()
	err := b.DB.InTx(context.Background(), func(tx *store.Tx) error {
		_, err := tx.Exec(context.Background(), statement, args...)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// user creates a user with roles and returns its id.
func (b *bank) user(roles ...string) string {
	b.t.Helper()
	client := b.User(roles...)
	b.clients.Store(client.UserID, client)
	return client.UserID
}

// as returns the context of a user who also is an administrator.
func (b *bank) as(userID string) context.Context {
	caller := access.Caller{UserID: userID, Roles: []string{access.Administrator}}
	return access.With(context.Background(), caller.WithPolicy(b.Policy.Load()))
}

// persona creates a persona of a user and returns its id.
func (b *bank) persona(owner string) string {
	b.t.Helper()
	in := personas.CreateInput{FirstName: "Ada", LastName: "Muster", DateOfBirth: "1990-01-31"}
	in.Validate(context.Background(), &apierr.Fields{}) // outside a request the date is in the future, which does not matter here
	p, err := b.Personas.Create(b.as(owner), in)
	if err != nil {
		b.t.Fatal(err)
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
func (b *bank) do(user, method, path string, body any, headers ...string) answer {
	b.t.Helper()
	a, err := b.try(user, method, path, body, headers...)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// try is do for goroutines other than that of the test. A persona is updated and created with valid data unless there is a body.
func (b *bank) try(user, method, path string, body any, headers ...string) (answer, error) {
	if body == nil && (method == http.MethodPut || method == http.MethodPost) && strings.HasPrefix(path, "/v1/personas") {
		body = object{"first_name": "Ada", "last_name": "Muster", "date_of_birth": "1990-01-31"}
	}
	client := b.Anonymous().With("Authorization", "Bearer "+user)
	if known, ok := b.clients.Load(user); ok {
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
func (b *bank) want(status int, code, user, method, path string, body any, headers ...string) answer {
	b.t.Helper()
	a := b.do(user, method, path, body, headers...)
	if a.status != status || a.code() != code {
		b.t.Fatalf("%s %s: got %d %s, want %d %s\n%s", method, path, a.status, a.code(), status, code, a.text)
	}
	return a
}

type object = map[string]any

// grant creates a grant as the administrator and returns its id.
func (b *bank) grant(body object) string {
	b.t.Helper()
	return b.want(201, "", b.root, "POST", "/v1/rbac/grants", body).id()
}

// role creates a role and returns its id.
func (b *bank) role(name string) string {
	b.t.Helper()
	return b.want(201, "", b.root, "POST", "/v1/rbac/roles", object{"name": name}).id()
}

// endpoints returns a copy of the endpoint table of the modules without the endpoints with the names.
func (b *bank) endpoints(without ...string) []endpoint.Endpoint {
	var table []endpoint.Endpoint
	for _, e := range b.Endpoints() {
		if !strings.Contains(" "+strings.Join(without, " ")+" ", " "+e.Name+" ") {
			table = append(table, e)
		}
	}
	return table
}
