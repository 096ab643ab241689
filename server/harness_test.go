package server_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/server/servertest"
	"kontor/store/testenv"
)

// tokens is an authenticator: every text that begins with "user-" is the token of that user.
type tokens struct{ cached bool }

func (a tokens) Known(token string, _ netip.Addr) (*access.Caller, bool) {
	if a.cached && strings.HasPrefix(token, "user-") {
		return &access.Caller{UserID: token}, true
	}
	return nil, false
}

func (a tokens) Bearer(c *fiber.Ctx) (*access.Caller, error) {
	_, token, _ := strings.Cut(c.Get("Authorization"), " ")
	switch {
	case token == "outage":
		return nil, apierr.AuthUnavailable.Wrap(errors.New("no table"))
	case strings.HasPrefix(token, "user-"):
		return &access.Caller{UserID: token}, nil
	case token == "root":
		return &access.Caller{UserID: token, Roles: []string{access.Administrator}}, nil
	}
	return nil, apierr.Unauthorized
}

func (a tokens) APIKey(_ context.Context, key string) (*access.Caller, error) {
	if strings.HasSuffix(key, "good-key") {
		return &access.Caller{KeyID: key}, nil
	}
	return nil, apierr.Unauthorized
}

func (a tokens) Session(_ context.Context, caller *access.Caller) (*access.Caller, error) {
	return caller, nil
}

// replays stores the answer of each claim.
type replays struct {
	mu     sync.Mutex
	claims map[server.Claim]server.Stored
}

type storedError struct{ server.Stored }

func (r *replays) Begin(ctx context.Context, claim server.Claim) (context.Context, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for known, stored := range r.claims {
		if known.Key == claim.Key && known.Caller == claim.Caller && known.Endpoint == claim.Endpoint {
			stored.Mismatch = known.BodyHash != claim.BodyHash
			return nil, storedError{stored}
		}
	}
	r.claims[claim] = server.Stored{Status: http.StatusCreated, Body: []byte(`{"id":"first"}`), ETag: "v1"}
	return ctx, nil
}

type thing struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

type thingInput struct {
	ID string `path:"id"`
}

type nameInput struct {
	Name string `json:"name"`
}

func (in *nameInput) Validate(v *apierr.Fields) {
	if in.Name == "" {
		v.Add("name", "invalid.required")
	}
}

func rows() []endpoint.Endpoint {
	ok := func(context.Context, endpoint.None) (thing, error) { return thing{}, nil }
	table := []endpoint.Endpoint{
		{Name: "public", Method: "GET", Path: "/public", Access: access.Public, Limit: ratelimit.Public,
			Handle: endpoint.JSON(200, func(ctx context.Context, _ endpoint.None) (map[string]string, error) {
				return map[string]string{"address": endpoint.Of(ctx).Address.String(), "network": endpoint.Of(ctx).Network()}, nil
			})},
		{Name: "things.get", Method: "GET", Path: "/v1/things/{id}", Access: access.On(access.Customers, access.Read), Limit: ratelimit.Private,
			Handle: endpoint.JSON(200, func(_ context.Context, in thingInput) (thing, error) { return thing{ID: in.ID, Name: "<&>"}, nil })},
		{Name: "things.create", Method: "POST", Path: "/v1/things", Access: access.On(access.Customers, access.Create), Limit: ratelimit.Private,
			Handle: endpoint.JSON(201, func(_ context.Context, in nameInput) (thing, error) { return thing{ID: "second", Name: in.Name}, nil })},
		{Name: "keyed", Method: "POST", Path: "/v1/keyed", Access: access.APIKey, Limit: ratelimit.Private, Handle: endpoint.JSON(200, ok)},
		{Name: "panics", Method: "GET", Path: "/panics", Access: access.Public, Limit: ratelimit.None,
			Handle: endpoint.JSON(200, func(context.Context, endpoint.None) (thing, error) { panic("secret detail") })},
		{Name: "fails", Method: "GET", Path: "/fails", Access: access.Public, Limit: ratelimit.None,
			Handle: endpoint.JSON(200, func(context.Context, endpoint.None) (thing, error) { return thing{}, errors.New("secret cause") })},
		{Name: "stream", Method: "GET", Path: "/stream", Access: access.SignedIn, Limit: ratelimit.Private, Draining: "server shutting down",
			Handle: endpoint.JSON(200, ok)},
		{Name: "big", Method: "POST", Path: "/v1/big", Access: access.Public, Limit: ratelimit.None, MaxBody: 3 << 20,
			Handle: endpoint.JSON(200, func(_ context.Context, in nameInput) (int, error) { return len(in.Name), nil })},
	}
	for i := range table {
		table[i].Tag, table[i].Summary = "Test", "Test."
	}
	return table
}

// start runs a server with the rows of [rows] on a free port and returns its address. Its clock stands still, so that limits of requests
// a minute do not depend on the time that a test takes.
func start(t testing.TB, change func(*server.Options)) (string, *server.Server) {
	t.Helper()
	web, address := servertest.Serve(t, options(t, change))
	return address, web
}

func options(t testing.TB, change func(*server.Options)) server.Options {
	t.Helper()
	policy := &access.Current{}
	policy.Store(access.NewPolicy(access.PolicyData{
		Types: map[string]map[string]access.Permission{"user-creator": {"customers": access.Create}},
		Endpoints: map[string][]string{
			"user-reader":  {"GET /v1/things/{id}", "POST /v1/things"},
			"user-creator": {"GET /v1/things/{id}", "POST /v1/things"},
		},
		Limits: map[string]int{"POST /v1/things": 3},
	}))
	now := time.Now()
	o := server.Options{
		Endpoints: rows(), Auth: tokens{}, Policy: policy, Texts: servertest.Texts(t), Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		RequestTime: testenv.Limit(), RateLimits: true, PublicPerMinute: 5, PrivatePerMinute: 100,
		Idempotency: &replays{claims: map[server.Claim]server.Stored{}},
		Stored: func(err error) (server.Stored, bool) {
			stored, ok := errors.AsType[storedError](err)
			return stored.Stored, ok
		},
		AllowedOrigins: []string{"https://app.example"},
	}
	if change != nil {
		change(&o)
	}
	return o
}

const thingPath = "/v1/things/0193a000-0000-7000-8000-000000000001"
