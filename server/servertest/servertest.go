// Package servertest runs all of Kontor on a real listener for tests that come in through the front door, or a server with
// a table of a test's own. For benchmarks it fills tables and makes loads. Every answer is held against the API document.
package servertest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"testing"

	"kontor/modules/app"
	"kontor/modules/auth"
	"kontor/modules/directory"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/openapi"
	"kontor/server/settings"
	"kontor/store"
	"kontor/store/storetest"
)

// What every test server knows.
const (
	AdminEmail    = "admin@kontor.localhost"
	AdminPassword = "correct horse battery staple"
	APIKey        = "test-api-key-0123456789"
)

// Server is a running Kontor with a database and a clock of its own.
type Server struct {
	*app.Modules
	Address string // host:port
	Clock   *storetest.Clock

	web   *server.Server
	t     testing.TB
	admin *Client
	users atomic.Int64

	behind bool // the test writes records past the modules
}

// Option changes the settings of a test server.
type Option func(*settings.Settings)

// Start runs Kontor until the test ends. Limits on rates are off unless the test turns them on.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	clock := storetest.NewClock()
	return startOn(t, storetest.OpenWith(t, clock), clock, options)
}

func startOn(t testing.TB, db *store.DB, clock *storetest.Clock, options []Option) *Server {
	t.Helper()
	loaded, err := settings.Load(settings.Input{})
	if err != nil {
		t.Fatal(err)
	}
	s := loaded.Settings
	s.RateLimits.Enabled = false
	s.Secrets = settings.Secrets{AdminEmail: AdminEmail, AdminPassword: AdminPassword, APIKey: APIKey}
	for _, change := range options {
		change(&s)
	}
	ctx := context.Background()
	m, err := app.New(db, app.Options{Settings: s, Log: testLog(t), Hash: auth.HashCost{MemoryKiB: 8, Passes: 1, Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Boot(ctx); err != nil {
		t.Fatal(err)
	}
	running := &Server{Modules: m, Clock: clock, t: t}
	running.serve()
	return running
}

// testLog writes to the log of the test what is worth a look in a test that fails.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func (s *Server) serve() {
	s.t.Helper()
	if err := s.Notifications.Start(s.t.Context()); err != nil {
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
		s.prove()
		if err := s.Close(context.Background()); err != nil {
			s.t.Errorf("close the modules: %v", err)
		}
	})
}

// Table lists all rows that are served.
func (s *Server) Table() []endpoint.Endpoint { return s.web.Table() }

// Document makes the API document of the running server.
func (s *Server) Document() (*openapi.Document, error) { return s.web.Document() }

// Anonymous gives a client that is nobody.
func (s *Server) Anonymous() *Client { return NewClient(s.t, s.web, s.Address) }

// Keyed gives a client that shows the API key.
func (s *Server) Keyed() *Client { return s.Anonymous().With("X-API-Key", APIKey) }

// Admin gives the first administrator, signed in.
func (s *Server) Admin() *Client {
	s.t.Helper()
	if s.admin == nil {
		s.admin = s.SignIn(AdminEmail, AdminPassword)
	}
	return s.admin
}

// User makes a new user with roles and signs him in.
func (s *Server) User(roles ...string) *Client {
	s.t.Helper()
	email := fmt.Sprintf("user%d@example.ch", s.users.Add(1))
	const password = "a long enough password 42"
	if _, err := s.Users.Create(access.With(context.Background(), &access.Caller{UserID: store.NilID}),
		directory.NewUser{Value: email, Password: password, Roles: roles}); err != nil {
		s.t.Fatalf("make a user: %v", err)
	}
	return s.SignIn(email, password)
}

// SignIn gives a client with a session.
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
