package rbac_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"

	"kontor/locales"
	"kontor/modules/app"
	"kontor/modules/rbac"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

// bank is a running server with rbac and records of the type customers.
type bank struct {
	t        testing.TB
	db       *store.DB
	rbac     *rbac.Service
	policy   *access.Current
	users    *users
	sessions *sessions
	server   *server.Server
	address  string
	root     string // an administrator
}

// users knows which users exist.
type users struct{ ids sync.Map }

func (u *users) Relations(_ context.Context, userID string, ids []string) (map[string]access.Permission, error) {
	found := map[string]access.Permission{}
	for _, id := range ids {
		if _, known := u.ids.Load(id); known {
			found[id] = access.None
			if id == userID {
				found[id] = access.Read | access.Update
			}
		}
	}
	return found, nil
}

// sessions remembers the roles of users, as a cache of sessions does, until it hears of a change. The token of a user
// is his id.
type sessions struct {
	db     *store.DB
	users  *users
	mu     sync.Mutex
	caches map[string]*access.Caller
}

func (s *sessions) RolesOf(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	rows, err := q.Query(ctx, "SELECT role_id FROM held_roles WHERE user_id = $1 ORDER BY role_id", userID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var roles []string
	for rows.Next() {
		var role string
		if err := rows.Scan(&role); err != nil {
			return nil, err
		}
		roles = append(roles, role)
	}
	return roles, rows.Err()
}

func (s *sessions) RemoveRole(ctx context.Context, tx *store.Tx, roleID string) error {
	tx.AfterCommit(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		clear(s.caches)
	})
	_, err := tx.Exec(ctx, "DELETE FROM user_roles WHERE role_id = $1", roleID)
	return err
}

func (s *sessions) Known(string) (*access.Caller, bool) { return nil, false }

func (s *sessions) Bearer(c *fiber.Ctx) (*access.Caller, error) {
	userID := string(bytes.TrimPrefix([]byte(c.Get("Authorization")), []byte("Bearer ")))
	if _, known := s.users.ids.Load(userID); !known {
		return nil, apierr.Unauthorized
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if caller := s.caches[userID]; caller != nil {
		return caller, nil
	}
	roles, err := s.RolesOf(context.Background(), s.db, userID)
	caller := &access.Caller{UserID: userID, Roles: roles}
	s.caches[userID] = caller
	return caller, err
}

func (s *sessions) APIKey(context.Context, string) (*access.Caller, error) {
	return nil, apierr.Unauthorized
}

func (b *bank) table() []endpoint.Endpoint {
	return append(b.rbac.Endpoints(), thingEndpoints(b.db)...)
}

func newService(t testing.TB, db *store.DB, b *bank) *rbac.Service {
	t.Helper()
	texts, err := locales.Load()
	if err != nil {
		t.Fatal(err)
	}
	return rbac.New(db, rbac.Options{
		Policy: b.policy, Users: b.sessions, Texts: texts, Log: slog.New(slog.DiscardHandler),
		Records: map[access.RecordType]access.Records{access.Users: b.users, access.Customers: thingRecords{db}},
	})
}

func newBank(t testing.TB) *bank {
	t.Helper()
	db := storetest.Open(t)
	b := &bank{t: t, db: db, policy: &access.Current{}, users: &users{}}
	b.sessions = &sessions{db: db, users: b.users, caches: map[string]*access.Caller{}}
	b.rbac = newService(t, db, b)
	b.exec("CREATE TABLE things (id TEXT NOT NULL PRIMARY KEY, created_by TEXT NOT NULL)")
	if err := b.rbac.Start(t.Context(), b.table()); err != nil {
		t.Fatal(err)
	}
	b.root = b.user(access.Administrator)
	b.listen()
	return b
}

func (b *bank) listen() {
	b.t.Helper()
	texts, err := locales.Load()
	if err != nil {
		b.t.Fatal(err)
	}
	b.server, b.address = servertest.Serve(b.t, server.Options{
		Endpoints: b.table(), Auth: b.sessions, Policy: b.policy, Texts: texts, Now: b.db.Clock().Now, Log: slog.New(slog.DiscardHandler),
		Idempotency: app.Idempotency{DB: b.db}, Stored: app.Stored, RateLimits: true, PublicPerMinute: 1_000_000, PrivatePerMinute: 1_000_000,
	})
}

func (b *bank) exec(statement string, args ...any) {
	b.t.Helper()
	err := b.db.InTx(context.Background(), func(tx *store.Tx) error {
		_, err := tx.Exec(context.Background(), statement, args...)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

// user makes a user with roles.
func (b *bank) user(roles ...string) string {
	b.t.Helper()
	id := store.NewID()
	b.users.ids.Store(id, true)
	for _, role := range roles {
		b.exec("INSERT INTO user_roles (user_id, role_id, created_at, created_by) VALUES ($1, $2, 0, $1)", id, role)
	}
	return id
}

// thing makes a record of the type customers.
func (b *bank) thing(owner string) string {
	b.t.Helper()
	id := store.NewID()
	b.exec("INSERT INTO things (id, created_by) VALUES ($1, $2)", id, owner)
	return id
}

// answer is what a request got.
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

// do sends a request as the user. The body is anything that becomes JSON; headers come in pairs.
func (b *bank) do(user, method, path string, body any, headers ...string) answer {
	b.t.Helper()
	a, err := b.try(user, method, path, body, headers...)
	if err != nil {
		b.t.Fatal(err)
	}
	return a
}

// try is do for other goroutines than the test's.
func (b *bank) try(user, method, path string, body any, headers ...string) (answer, error) {
	client := servertest.NewClient(b.t, b.server, b.address).With("Authorization", "Bearer "+user).With(headers...)
	r, err := client.Try(method, path, body)
	a := answer{status: r.Status, header: r.Header, text: r.Body}
	if err == nil && a.text != "" {
		err = json.Unmarshal([]byte(a.text), &a.body)
	}
	return a, err
}

// want sends a request and expects a status and, for a refusal, a code.
func (b *bank) want(status int, code, user, method, path string, body any, headers ...string) answer {
	b.t.Helper()
	a := b.do(user, method, path, body, headers...)
	if a.status != status || a.code() != code {
		b.t.Fatalf("%s %s: got %d %s, want %d %s\n%s", method, path, a.status, a.code(), status, code, a.text)
	}
	return a
}

type object = map[string]any

// grant makes a grant as the administrator and gives its id.
func (b *bank) grant(body object) string {
	b.t.Helper()
	return b.want(201, "", b.root, "POST", "/v1/rbac/grants", body).id()
}

// role makes a role and gives its id.
func (b *bank) role(name string) string {
	b.t.Helper()
	return b.want(201, "", b.root, "POST", "/v1/rbac/roles", object{"name": name}).id()
}
