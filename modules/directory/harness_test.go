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
	"kontor/modules/directory"
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

// bank is a running server with the directory alone. The test stands in for sign-in and the outbox.
type bank struct {
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

func newBank(t testing.TB) *bank { t.Helper(); return newBankWith(t, directory.Options{}) }

func newBankWith(t testing.TB, o directory.Options) *bank {
	t.Helper()
	clock := storetest.NewClock()
	db := storetest.OpenWith(t, clock)
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	b := &bank{t: t, db: db, clock: clock, auth: &signIn{db: db, sessions: map[string]string{}, passwords: map[string]string{}, stale: map[string]bool{}}, outbox: &outbox{}}
	b.policy = &access.Current{}
	o.Policy = b.policy
	b.service = directory.New(db, b.auth, b.outbox, texts, o)
	b.seedRoles()
	b.serve(texts)
	return b
}

var roleNames = map[string]string{access.Administrator: "Administrator", access.Advisor: "Advisor", access.Customer: "Customer",
	access.Registrant: "Registrant"}

func (b *bank) seedRoles() {
	b.exec(func(ctx context.Context, tx *store.Tx) error {
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

func (b *bank) exec(f func(ctx context.Context, tx *store.Tx) error) {
	b.t.Helper()
	if err := b.db.InTx(b.t.Context(), func(tx *store.Tx) error { return f(b.t.Context(), tx) }); err != nil {
		b.t.Fatal(err)
	}
}

// serve starts a server in which every built-in role has the grants of the endpoint table.
func (b *bank) serve(texts *locales.Bundle) {
	b.t.Helper()
	table := b.service.Endpoints()
	endpoints := map[string][]string{}
	for _, row := range table {
		for _, role := range row.Roles {
			endpoints[role] = append(endpoints[role], row.Key())
		}
	}
	// A custom role that may update users and their roles.
	endpoints[personnel] = []string{"PUT /v1/users/{id}/roles", "PATCH /v1/users/{id}", "GET /v1/users/{id}", "PUT /v1/users/{id}/password",
		"GET /v1/users", "GET /v1/users/{id}/credentials"}
	b.policy.Store(access.NewPolicy(access.PolicyData{Endpoints: endpoints, Types: map[string]map[string]access.Permission{
		personnel:      {"users": access.ReadAll | access.Update},
		access.Advisor: {"customers": access.ReadAll}}}))
	b.server, b.address = servertest.Serve(b.t, server.Options{Endpoints: table, Auth: b.auth, Policy: b.policy, Texts: texts, Now: b.clock.Now,
		Log: slog.New(slog.NewTextHandler(b.t.Output(), nil)), Idempotency: app.Idempotency{DB: b.db}, Stored: app.Stored,
		ResponderKey: store.ResponderKey{}})
}

const personnel = "0193b000-0000-7000-8000-0000000000ff"

// reply is what the server answered.
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

// call sends a request. who is a bearer token, "key" for the API key, or nobody. Headers are given in pairs.
func (b *bank) call(who, method, path string, body any, headers ...string) reply {
	b.t.Helper()
	client := servertest.NewClient(b.t, b.server, b.address).With(headers...)
	if who == "key" {
		client = client.With("X-API-Key", apiKey)
	} else {
		client.Token = who
	}
	answer := client.Do(method, path, body)
	r := reply{Status: answer.Status, Header: answer.Header, Text: answer.Body}
	if r.Text != "" {
		answer.Into(b.t, &r.Body)
	}
	return r
}

func registration(kind, value string) map[string]any {
	return map[string]any{"credential_type": kind, "credential_value": value, "password": password,
		"terms_accepted": true, "privacy_policy_accepted": true}
}

// member is a user who can sign requests.
type member struct{ id, credential, token string }

// path is an address below the user.
func (m member) path(rest string) string { return "/v1/users/" + m.id + rest }

// registrant registers a user with an e-mail address.
func (b *bank) registrant(email string) member {
	b.t.Helper()
	r := b.call("key", "POST", "/v1/users/initiate-registration", registration("email", email)).want(b.t, 201, "")
	return member{r.text("user_id"), r.member("credential").text("id"), r.text("access_token")}
}

// customer registers a user and validates the address.
func (b *bank) customer(email string) member {
	b.t.Helper()
	m := b.registrant(email)
	b.call(m.token, "PUT", m.path("/credentials/"+m.credential+"/validate"), map[string]string{"otp": b.outbox.last(email).Code}).want(b.t, 200, "")
	return m
}

// staff makes a user with roles, as an operator does.
func (b *bank) staff(name string, roles ...string) member {
	b.t.Helper()
	u, err := b.service.Create(b.t.Context(), directory.NewUser{Value: name, Password: password, Roles: roles})
	if err != nil {
		b.t.Fatal(err)
	}
	m := member{id: u.ID}
	b.exec(func(ctx context.Context, tx *store.Tx) error {
		m.token, _, err = b.auth.OpenSession(ctx, tx, u.ID)
		return err
	})
	return m
}

func (b *bank) admin() member { b.t.Helper(); return b.staff("root@bank.example", "Administrator") }

// audited tells how many entries of the action the audit trail has for the record.
func (b *bank) audited(action, recID string) (n int) {
	b.t.Helper()
	err := b.db.QueryRow(b.t.Context(), `SELECT count(*) FROM audit_entries WHERE action = $1 AND rec_id = $2`, action, recID).Scan(&n)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

const otpLife = 10 * time.Minute

func email(i int) string { return fmt.Sprintf("anna.%d@bank.example", i) }
