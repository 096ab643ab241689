// Package servertest runs Kontor on a real listener for tests over HTTP, and generates load for benchmarks. All tests
// use its functions:
//
//   - [Start] runs all of Kontor with its own database and clock, [StartSandbox] as a sandbox; [StartShared] and [Node] run several
//     nodes on one database; package demotest starts one with the demo data;
//     [Serve] runs a server with a table of the test;
//   - [Server.Admin], [Server.User], [Server.Keyed] and [Server.Anonymous] return clients; [NewClient] returns one for Serve;
//   - [Client.Do] makes a request, [Client.Create] creates a record, [Client.Erase] erases a person, [Client.With] adds headers; every
//     answer is compared with the API document; [Send] makes a request without that comparison;
//   - [Response.Expect] checks the status, [Response.ExpectError] status and code of an error, [Response.Into] decodes the body;
//   - [Run] runs [Scenario] values: one request each, with texts that the answer must and must not contain;
//   - [Exec] and [InTx] write to the database directly, [Texts] returns the locale files;
//   - [Load] and [Ratio] measure requests per second.
package servertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	"kontor/modules/app"
	"kontor/modules/identity/auth"
	"kontor/modules/identity/directory"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/openapi"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/audittrail"
	"kontor/store/clock"
	"kontor/store/inspect"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// Credentials of every test server.
const (
	AdminEmail    = "admin@kontor.localhost"
	AdminPassword = "correct horse battery staple"
	APIKey        = "test-api-key-0123456789"
	Password      = "a long enough password 42" // of every other user
)

// Server is a running Kontor with a database and a clock of its own.
type Server struct {
	*app.Modules
	Address string // host:port
	Clock   *storetest.Clock

	web   *server.Server
	t     testing.TB
	admin *Client
	users *atomic.Int64 // created by User, on all nodes

	skipCheck bool // set by SkipRecordCheck
}

// Option changes the settings of a test server.
type Option func(*settings.Settings)

// Start runs Kontor until the test ends. Rate limits are off unless an option enables them.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	clock := storetest.NewClock()
	return startOn(t, storetest.OpenWith(t, clock), clock, new(atomic.Int64), options)
}

// StartShared is Start on a database that several nodes may use, which is always on PostgreSQL. [Node] starts further ones.
func StartShared(t testing.TB, options ...Option) *Server {
	t.Helper()
	clock := storetest.NewClock()
	return startOn(t, storetest.OpenShared(t, clock), clock, new(atomic.Int64), options)
}

// Node starts another node on the database of s: with the same key, clock and people, and with modules and an address of its own.
func Node(t testing.TB, s *Server, options ...Option) *Server {
	t.Helper()
	return startOn(t, storetest.Second(t, s.DB), s.Clock, s.users, options)
}

// IsolatedNode is Node for one that receives no announcements, with or without a lease.
func IsolatedNode(t testing.TB, s *Server, lease bool, options ...Option) *Server {
	t.Helper()
	return startOn(t, storetest.Isolated(t, s.DB, lease), s.Clock, s.users, options)
}

func startOn(t testing.TB, db *store.DB, clock *storetest.Clock, users *atomic.Int64, options []Option, sandbox ...*app.Sandbox) *Server {
	t.Helper()
	loaded, err := settings.Load(settings.Input{})
	if err != nil {
		t.Fatal(err)
	}
	s := loaded.Settings
	s.RateLimits.Enabled = false
	s.Server.RequestTime, s.Invoices.Timeout = testenv.Limit(), testenv.Limit() // a busy machine does not fail requests
	s.Secrets = settings.Secrets{AdminEmail: AdminEmail, AdminPassword: AdminPassword, APIKey: APIKey}
	for _, change := range options {
		change(&s)
	}
	ctx := context.Background()
	o := app.Options{Settings: s, Log: testLog(t), CacheDir: testenv.EngineCache(), Hash: auth.HashCost{MemoryKiB: 8, Passes: 1, Threads: 1}}
	if len(sandbox) > 0 {
		o.Sandbox = sandbox[0]
	}
	m, err := app.New(db, o)
	if err != nil {
		t.Fatal(err)
	}
	m.Search.Patience = testenv.Limit() // a busy machine makes no search incomplete
	if err := m.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Boot(ctx); err != nil {
		t.Fatal(err)
	}
	running := &Server{Modules: m, Clock: clock, users: users, t: t}
	running.serve()
	return running
}

// testLog writes warnings and errors to the log of the test.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (s *Server) serve() {
	s.t.Helper()
	if err := s.Deliveries.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.Notifications.Start()
	if err := s.Webhooks.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	web, err := s.Modules.Server()
	if err != nil {
		s.t.Fatal(err)
	}
	address, stop := Listen(s.t, web)
	s.web, s.Address = web, address
	s.t.Cleanup(func() {
		stop()
		s.checkRecords()
		if err := s.Close(context.Background()); err != nil {
			s.t.Errorf("close the modules: %v", err)
		}
	})
}

// Table returns the endpoint table of the server.
func (s *Server) Table() []endpoint.Endpoint { return s.web.Table() }

// Document builds the API document of the server.
func (s *Server) Document() (*openapi.Document, error) { return s.web.Document() }

// Anonymous returns a client without credentials.
func (s *Server) Anonymous() *Client { return NewClient(s.t, s.web, s.Address) }

// Keyed returns a client with the API key.
func (s *Server) Keyed() *Client { return s.Anonymous().With("X-API-Key", APIKey) }

// Admin returns the first administrator, signed in.
func (s *Server) Admin() *Client {
	s.t.Helper()
	if s.admin == nil {
		s.admin = s.SignIn(AdminEmail, AdminPassword)
	}
	return s.admin
}

// User creates a user with roles and signs them in.
func (s *Server) User(roles ...string) *Client {
	s.t.Helper()
	email := fmt.Sprintf("user%d@example.ch", s.users.Add(1))
	if _, err := s.Users.Create(access.With(context.Background(), &access.Caller{UserID: store.NilID}),
		directory.NewUser{Value: email, Password: Password, Roles: roles}); err != nil {
		s.t.Fatalf("create a user: %v", err)
	}
	return s.SignIn(email, Password)
}

// SignIn returns a client with a new session.
func (s *Server) SignIn(user, password string) *Client {
	s.t.Helper()
	answer := s.Anonymous().Do("POST", "/authenticate", map[string]any{"user_id": user, "password": password})
	var tokens struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
		UserID       string `json:"user_id"`
	}
	answer.Expect(s.t, http.StatusOK).Into(s.t, &tokens)
	c := s.Anonymous()
	c.Token, c.Refresh, c.UserID = tokens.AccessToken, tokens.RefreshToken, tokens.UserID
	return c
}

// Serve runs a server with an endpoint table of the test until the test ends. The address is host:port. Requests have the patience of the
// tests, unless the options say otherwise.
func Serve(t testing.TB, o server.Options) (web *server.Server, address string) {
	t.Helper()
	o.RequestTime = cmp.Or(o.RequestTime, testenv.Limit())
	web, err := server.New(o)
	if err != nil {
		t.Fatal(err)
	}
	address, stop := Listen(t, web)
	t.Cleanup(stop)
	return web, address
}

// AllRights lets every caller hold the rights of all users, for the tests of modules without the module rbac.
type AllRights struct{}

// CheckSubject returns nil.
func (AllRights) CheckSubject(context.Context, *endpoint.Endpoint, string) error { return nil }

// Listen runs a server on a free port until stop is called.
func Listen(t testing.TB, web *server.Server) (address string, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	return listener.Addr().String(), func() {
		now, cancel := context.WithCancel(context.Background())
		cancel() // no grace period: all clients have ended
		_ = web.Shutdown(now)
		_ = listener.Close()
		<-ended
	}
}

// StartSandbox is Start for a sandbox, whose clock is ahead of Clock. It is always on SQLite.
func StartSandbox(t testing.TB, public bool, options ...Option) *Server {
	t.Helper()
	below := storetest.NewClock()
	sandbox := &app.Sandbox{Clock: &store.ShiftedClock{Below: below}, Public: public}
	db := storetest.OpenAgain(t, store.Options{Dir: storetest.Dir(t), Clock: sandbox.Clock})
	return startOn(t, db, below, new(atomic.Int64), options, sandbox)
}

// StartShifted is Start with the clock of the system, moved by a shift: Clock is nil. Demo data need it.
func StartShifted(t testing.TB, shifted *clock.Shifted) *Server {
	t.Helper()
	o := storetest.Options(t)
	o.Clock = shifted
	return startOn(t, storetest.OpenAgain(t, o), nil, new(atomic.Int64), []Option{func(s *settings.Settings) { s.Data.Dir = t.TempDir() }})
}

// SkipRecordCheck disables the check of records at the end of the test. Tests need it if they write records by SQL, without audit
// entries.
func (s *Server) SkipRecordCheck() { s.skipCheck = true }

// checkRecords fails the test if a record differs from its newest audit entry. Then a write added no entry, or a different one.
func (s *Server) checkRecords() {
	if _, benchmark := s.t.(*testing.B); benchmark || s.skipCheck {
		return
	}
	_, err := inspect.Check(context.Background(), storetest.Source(storetest.OptionsOf(s.t, s.DB)), func(ctx context.Context, e *audittrail.Evidence) error {
		_, err := app.CheckRecords(ctx, e)
		return err
	})
	if broken := (*records.Break)(nil); errors.As(err, &broken) {
		s.t.Errorf("a record differs from the audit trail: %v", err)
	}
}

// Messages returns the texts of the e-mails and SMS in the local outbox to an address of a user, the oldest first, as an administrator
// reads them who has just signed in. There must be no more than 100.
func (s *Server) Messages(userID, to string) []string {
	s.t.Helper()
	query, err := list.Parse(url.Values{"search.user_id": {userID}, "search.to": {to}, "sort": {"created_at"}, "limit": {"100"}})
	if err != nil {
		s.t.Fatal(err)
	}
	now := s.DB.Clock().Now()
	caller := access.Caller{UserID: store.NilID, Roles: []string{access.Administrator}, SignedIn: access.Authentication{At: now}}.WithPolicy(
		access.NewPolicy(access.PolicyData{Types: map[string]map[string]access.Permission{access.Administrator: {access.Deliveries.Name: access.ReadAll}}}))
	ctx := endpoint.With(access.With(context.Background(), caller), &endpoint.Info{Caller: caller, Now: now})
	page, err := s.Deliveries.List(ctx, list.Input{Query: query})
	if err != nil {
		s.t.Fatal(err)
	}
	texts := make([]string, len(page.Data.Rows))
	for i, d := range page.Data.Rows {
		texts[i] = d.Text
	}
	return texts
}
