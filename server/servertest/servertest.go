// Package servertest runs Kontor on a real listener for tests over HTTP, and generates load for benchmarks. All tests
// use its functions:
//
//   - [Start] runs all of Kontor with its own database and clock, [StartDemo] with the demo data, [StartSandbox] as a sandbox; [StartShared] and [Node] run several
//     nodes on one database;
//     [Serve] runs a server with a table of the test;
//   - [Server.Admin], [Server.User], [Server.Keyed] and [Server.Anonymous] return clients; [NewClient] returns one for Serve;
//   - [Client.Do] makes a request, [Client.Create] creates a record, [Client.With] adds headers; every answer is compared with
//     the API document; [Send] makes a request without that comparison;
//   - [Response.Expect] checks the status, [Response.ExpectError] status and code of an error, [Response.Into] decodes the body;
//   - [Run] runs [Scenario] values: one request each, with texts that the answer must and must not contain;
//   - [Exec] and [InTx] write to the database directly, [Texts] returns the locale files;
//   - [Load] and [Ratio] measure requests per second.
package servertest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	"kontor/modules/app"
	"kontor/modules/identity/auth"
	"kontor/modules/identity/directory"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/openapi"
	"kontor/server/settings"
	"kontor/store"
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
	if err := s.Notifications.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
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
