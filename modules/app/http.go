package app

import (
	"context"
	"errors"
	"net/http"
	"os"

	"kontor/server"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/settings"
	"kontor/store"
	"kontor/web"
)

// Server builds an HTTP server that serves the modules. They must be started.
func (m *Modules) Server() (*server.Server, error) {
	s := m.Settings
	console, err := newConsole(s.Server.ConsoleDir)
	if err != nil {
		return nil, err
	}
	return server.New(server.Options{
		Endpoints: m.Endpoints(), Auth: m.Auth, Policy: m.Policy, People: m.Users, Texts: m.Texts, Log: m.Log,
		Now:         m.DB.Clock().Now,
		Idempotency: Idempotency{m.DB}, Stored: Stored, Translate: translate, Fallback: console.Serve,
		Probes: []server.Probe{{Name: "database", Check: m.DB.Ready}, {Name: "queue", Check: m.Notifications.Ready},
			{Name: "log_size", Check: m.DB.CheckLog, Advisory: true}},
		Observe:        m.Audit.Observe,
		OnDrain:        []func(){m.Notifications.Drain},
		BaseURL:        s.Server.BaseURL,
		TrustedProxies: s.Server.TrustedProxies, AllowedOrigins: s.CORS.AllowedOrigins,
		RequestTime: s.Server.RequestTime, CallerKey: store.CallerKey{},
		RateLimits: s.RateLimits.Enabled, PublicPerMinute: s.RateLimits.PublicPerMinute, PrivatePerMinute: s.RateLimits.PrivatePerMinute,
		PerCaller: perCaller(s.RateLimits),
	})
}

// perCaller is how many requests of one caller may run at once; zero, without a bound, when limits are off.
func perCaller(limits settings.RateLimits) int {
	if !limits.Enabled {
		return 0
	}
	return limits.PerCaller
}

// newConsole takes the console out of the executable, or, for whoever works on it, from a directory.
func newConsole(dir string) (*web.Site, error) {
	if dir == "" {
		return web.New()
	}
	return web.NewDev(os.DirFS(dir))
}

// origin says where a request comes from, for the audit entries of its changes.
func origin(ctx context.Context) store.Origin {
	request := endpoint.Of(ctx)
	return store.Origin{Session: access.From(ctx).SessionID, Network: endpoint.AuditNetwork(request.Address), RequestID: request.RequestID}
}

// Idempotency keeps answers to requests with an Idempotency-Key in the store.
type Idempotency struct{ DB *store.DB }

// Begin looks for an answer and binds the transactions of the request to the claim.
func (i Idempotency) Begin(ctx context.Context, claim server.Claim, to server.Responder) (context.Context, error) {
	if claim.Key == "" {
		return store.WithResponder(ctx, store.Idempotency{}, responder{to}), nil
	}
	claimed := store.Idempotency{Key: claim.Key, Caller: claim.Caller, Path: claim.Endpoint, BodyHash: claim.BodyHash[:]}
	replay, err := i.DB.Replay(ctx, claimed)
	if err != nil {
		return nil, err
	}
	if replay != nil {
		return nil, replay
	}
	return store.WithResponder(ctx, claimed, responder{to}), nil
}

// responder is the request of the server as the store needs it.
type responder struct{ server.Responder }

// Encode encodes what the request answers with.
func (r responder) Encode(ctx context.Context, body any) (store.Encoded, error) {
	encoded, err := r.Responder.Encode(ctx, body)
	return store.Encoded(encoded), err
}

// Answered hands the answer of a stored transaction to the client.
func (r responder) Answered(e store.Encoded) { r.Responder.Answered(server.Encoded(e)) }

// Stored recognises the answer of an earlier request.
func Stored(err error) (server.Stored, bool) {
	replay, ok := errors.AsType[*store.Replay](err)
	if !ok {
		return server.Stored{}, false
	}
	return server.Stored{Status: replay.Status, Body: replay.Body, ETag: replay.ETag, Mismatch: replay.BodyDiffers}, true
}

// translate makes a fault of what the store could not do for the time being.
func translate(err error) error {
	switch {
	case apierr.Of(err).Status != http.StatusInternalServerError:
		return err
	case errors.Is(err, store.ErrOutcomeUnknown):
		return apierr.OutcomeUnknown.Wrap(err)
	case errors.Is(err, store.ErrBusy):
		return apierr.Unavailable // without a cause, since a flood must not fill the log
	case store.Temporary(err):
		return apierr.Unavailable.Wrap(err)
	}
	return err
}
