package directory_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/locales"
	"kontor/modules/app"
	"kontor/modules/identity/directory"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

const (
	apiKey   = "a-good-key"
	password = "correct horse battery"
)

// harness runs a server with the directory alone. Tests replace the modules of sign-in and notifications.
type harness struct {
	t       testing.TB
	db      *store.DB
	clock   *storetest.Clock
	auth    *signIn
	outbox  *outbox
	service *directory.Service
	policy  *access.Current
	server  *server.Server
	address string
}

func newHarness(t testing.TB) *harness { t.Helper(); return newHarnessWith(t, directory.Options{}) }

func newHarnessWith(t testing.TB, o directory.Options) *harness {
	t.Helper()
	clock := storetest.NewClock()
	db := storetest.OpenWith(t, clock)
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, db: db, clock: clock, auth: &signIn{db: db, sessions: map[string]string{}, passwords: map[string]string{}, stale: map[string]bool{}}, outbox: &outbox{}}
	h.policy = &access.Current{}
	o.Policy = h.policy
	h.service = directory.New(db, h.auth, h.outbox, texts, o)
	h.auth.owner = h.service
	h.seedRoles()
	h.serve(texts)
	return h
}

var roleNames = map[string]string{access.Administrator: "Administrator", access.Advisor: "Advisor", access.Customer: "Customer",
	access.Registrant: "Registrant"}

func (h *harness) seedRoles() {
	h.exec(func(ctx context.Context, tx *store.Tx) error {
		for id, name := range roleNames {
			if err := insertRole(ctx, tx, id, name); err != nil {
				return err
			}
		}
		return nil
	})
}

func insertRole(ctx context.Context, tx *store.Tx, id, name string) error {
	_, err := tx.Exec(ctx, `INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by)
		VALUES ($1, $2, $3, 0, '', 0, '')`, id, name, strings.ToLower(name))
	return err
}

func (h *harness) exec(f func(ctx context.Context, tx *store.Tx) error) {
	h.t.Helper()
	if err := h.db.InTx(h.t.Context(), func(tx *store.Tx) error { return f(h.t.Context(), tx) }); err != nil {
		h.t.Fatal(err)
	}
}

// serve starts a server in which every built-in role has the grants of the endpoint table.
func (h *harness) serve(texts *locales.Bundle) {
	h.t.Helper()
	table := h.service.Endpoints()
	endpoints := map[string][]string{}
	for _, row := range table {
		for _, role := range row.Roles {
			endpoints[role] = append(endpoints[role], row.Key())
		}
	}
	// A custom role that may update users and their roles.
	endpoints[personnel] = []string{"PUT /v1/users/{id}/roles", "PATCH /v1/users/{id}", "GET /v1/users/{id}", "PUT /v1/users/{id}/password",
		"GET /v1/users", "GET /v1/users/{id}/credentials"}
	// A custom role that may invite people, and see no users.
	endpoints[recruiter] = []string{"POST /v1/invitations", "GET /v1/invitations", "POST /v1/invitations/{id}/resend", "DELETE /v1/invitations/{id}"}
	h.policy.Store(access.NewPolicy(access.PolicyData{Endpoints: endpoints, Types: map[string]map[string]access.Permission{
		personnel:      {"users": access.ReadAll | access.Update},
		recruiter:      {"users": access.Create},
		access.Advisor: {"customers": access.ReadAll}}}))
	h.server, h.address = servertest.Serve(h.t, server.Options{Endpoints: table, Auth: h.auth, Rights: servertest.AllRights{}, Policy: h.policy, Texts: texts, Now: h.clock.Now,
		Log: slog.New(slog.NewTextHandler(h.t.Output(), nil)), Idempotency: app.Idempotency{DB: h.db}, Stored: app.Stored,
		ResponderKey: store.ResponderKey{}})
}

const (
	personnel = "0193b000-0000-7000-8000-0000000000ff"
	recruiter = "0193b000-0000-7000-8000-0000000000fe"
)

// reply is a response of the server.
type reply struct {
	Status int
	Header http.Header
	Body   map[string]any
	Text   string
}

func (r reply) text(name string) string { text, _ := r.Body[name].(string); return text }

func (r reply) member(name string) reply {
	body, _ := r.Body[name].(map[string]any)
	return reply{Body: body}
}

// want stops the test unless the answer has the status and, for an error, the code.
func (r reply) want(t testing.TB, status int, code string) reply {
	t.Helper()
	if r.Status != status || r.text("code") != code {
		t.Fatalf("got %d %s, want %d %s", r.Status, r.Text, status, code)
	}
	return r
}

// call sends a request with headers, in pairs. who is a bearer token, "key" for the API key, or empty.
func (h *harness) call(who, method, path string, body any, headers ...string) reply {
	h.t.Helper()
	client := servertest.NewClient(h.t, h.server, h.address).With(headers...)
	if who == "key" {
		client = client.With("X-API-Key", apiKey)
	} else {
		client.Token = who
	}
	answer := client.Do(method, path, body)
	r := reply{Status: answer.Status, Header: answer.Header, Text: answer.Body}
	if r.Text != "" {
		answer.Into(h.t, &r.Body)
	}
	return r
}

func registration(kind, value string) map[string]any {
	return map[string]any{"credential_type": kind, "credential_value": value, "password": password,
		"terms_accepted": true, "privacy_policy_accepted": true}
}

// testUser is a user with a session.
type testUser struct{ id, credential, token string }

// path returns a path below the user.
func (m testUser) path(rest string) string { return "/v1/users/" + m.id + rest }

// registrant registers a user with an e-mail address and does not validate it.
func (h *harness) registrant(email string) testUser {
	h.t.Helper()
	r := h.call("key", "POST", "/v1/users/initiate-registration", registration("email", email)).want(h.t, 201, "")
	return testUser{r.text("user_id"), r.member("credential").text("id"), r.text("access_token")}
}

// customer registers a user and validates the address.
func (h *harness) customer(email string) testUser {
	h.t.Helper()
	m := h.registrant(email)
	h.call(m.token, "PUT", m.path("/credentials/"+m.credential+"/validate"), map[string]string{"otp": h.outbox.last(email).Code}).want(h.t, 200, "")
	return m
}

// staff creates a user with roles, as an operator does.
func (h *harness) staff(name string, roles ...string) testUser {
	h.t.Helper()
	u, err := h.service.Create(h.t.Context(), directory.NewUser{Value: name, Password: password, Roles: roles})
	if err != nil {
		h.t.Fatal(err)
	}
	m := testUser{id: u.ID}
	h.exec(func(ctx context.Context, tx *store.Tx) error {
		m.token, _, err = h.auth.OpenSession(ctx, tx, u.ID)
		return err
	})
	return m
}

func (h *harness) admin() testUser {
	h.t.Helper()
	return h.staff("root@bank.example", "Administrator")
}

// audited returns the number of audit entries with the action for the record.
func (h *harness) audited(action, recID string) (n int) {
	h.t.Helper()
	err := h.db.QueryRow(h.t.Context(), `SELECT count(*) FROM audit_entries WHERE action = $1 AND rec_id = $2`, action, recID).Scan(&n)
	if err != nil {
		h.t.Fatal(err)
	}
	return n
}

const otpLife = 10 * time.Minute

func email(i int) string { return fmt.Sprintf("anna.%d@bank.example", i) }
