package app

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"

	"github.com/gofiber/fiber/v2"

	"kontor/licences"
	"kontor/server"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/sdk"
	"kontor/server/settings"
	"kontor/store"
	"kontor/web"
)

// Server builds an HTTP server for the modules. Call [Modules.Start] before.
func (m *Modules) Server() (*server.Server, error) { return m.server(m.Settings) }

func (m *Modules) server(s settings.Settings) (*server.Server, error) {
	bank, err := bankOf(s.Bank)
	if err != nil {
		return nil, err
	}
	console, err := newConsole(s.Server.ConsoleDir, web.Options{Sandbox: m.InSandbox(), Bank: bank})
	if err != nil {
		return nil, err
	}
	clients, err := m.clients()
	if err != nil {
		return nil, err
	}
	var counts server.Counts
	var nodes func() []server.NodeHealth
	if m.DB.Shared() {
		counts, nodes = m.RBAC, m.nodes
	}
	return server.New(server.Options{
		Endpoints: m.Endpoints(), Auth: m.Auth, Policy: m.Policy, Rights: m.RBAC, Uses: m.RBAC, Memory: &memory{Modules: m}, People: m.Users, Texts: m.Texts, Log: m.Log,
		Now:         m.DB.Clock().Now,
		Idempotency: Idempotency{m.DB}, Stored: Stored, Translate: translate, Fallback: func(c *fiber.Ctx, path string) bool {
			return clients.Serve(c, path) || serveLicences(c, path) || console.Serve(c, path)
		},
		Probes:         m.probes(),
		Nodes:          nodes,
		Metrics:        m.addMetrics,
		Observe:        m.Audit.Observe,
		Requests:       m.requests(),
		OnDrain:        []func(){m.Notifications.Drain, m.Changes.Drain, m.Requests.Drain},
		SandboxPublic:  m.InSandbox() && m.Sandbox.Public,
		BaseURL:        s.Server.BaseURL,
		TrustedProxies: s.Server.TrustedProxies, AllowedOrigins: s.CORS.AllowedOrigins,
		RequestTime: s.Server.RequestTime, CallerKey: store.CallerKey{}, ResponderKey: store.ResponderKey{},
		RateLimits: s.RateLimits.Enabled, PublicPerMinute: s.RateLimits.PublicPerMinute, PrivatePerMinute: s.RateLimits.PrivatePerMinute,
		Counts: counts, LiveNodes: m.DB.LiveNodes,
		PerCaller: perCaller(s.RateLimits), DecisionFor: s.Auth.Decision,
	})
}

// clients returns what serves the clients of the API for installation.
func (m *Modules) clients() (*sdk.SDK, error) {
	goClient, err := fs.Sub(server.GoClient, "client")
	if err != nil {
		return nil, err
	}
	script, err := fs.Sub(web.ScriptClient, "client")
	if err != nil {
		return nil, err
	}
	return sdk.New(sdk.Options{Release: m.Release, Go: goClient, Script: script, License: licences.Kontor}), nil
}

// probes returns the conditions of readiness. Without the sign-in provider the service is ready: people can still use passwords.
func (m *Modules) probes() []server.Probe {
	all := []server.Probe{{Name: "database", Check: m.DB.Ready}, {Name: "queue", Check: m.Deliveries.Ready}}
	if m.OIDC.Name() != "" {
		all = append(all, server.Probe{Name: "sign_in_provider", Check: m.OIDC.Ready, Advisory: true})
	}
	if m.Settings.Backup.URL != "" {
		all = append(all, server.Probe{Name: "backup", Check: m.checkBackup, Advisory: true})
	}
	if m.DB.Shared() {
		all = append(all, server.Probe{Name: "primary", Check: m.DB.CheckPrimary},
			server.Probe{Name: "durability", Check: m.DB.CheckDurability, Advisory: true},
			server.Probe{Name: "cluster", Check: m.checkCluster, Advisory: true},
			server.Probe{Name: "settings", Check: m.checkSettings, Advisory: true})
	} else { // the log of PostgreSQL is that of its server
		all = append(all, server.Probe{Name: "log_size", Check: m.DB.CheckLog, Advisory: true})
	}
	return all
}

// perCaller returns how many requests of one caller may run concurrently. 0 means no limit.
func perCaller(limits settings.RateLimits) int {
	if !limits.Enabled {
		return 0
	}
	return limits.PerCaller
}

// newConsole returns the console that is embedded in the executable or, during its development, the one in dir.
func newConsole(dir string, o web.Options) (*web.Site, error) {
	if dir == "" {
		return web.New(o), nil
	}
	return web.NewDev(os.DirFS(dir), o)
}

// CheckConsole reports whether the console can be served from dir. An empty dir stands for the embedded one.
func CheckConsole(dir string) error {
	_, err := newConsole(dir, web.Options{})
	return err
}

// origin returns the source of a request, for the audit entries of its changes.
func origin(ctx context.Context) store.Origin {
	request := endpoint.Of(ctx)
	return store.Origin{Session: access.From(ctx).SessionID, Network: endpoint.AuditNetwork(request.Address), RequestID: request.AuditID}
}

// Idempotency stores the answers to requests with an Idempotency-Key in the database.
type Idempotency struct{ DB *store.DB }

// Begin returns a *store.Replay as error where the request was answered before. Otherwise it returns a context whose
// transactions store the answer under the claim.
func (i Idempotency) Begin(ctx context.Context, claim server.Claim) (context.Context, error) {
	claimed := store.Idempotency{Key: claim.Key, Caller: claim.Caller, Path: claim.Endpoint, BodyHash: claim.BodyHash[:]}
	replay, err := i.DB.Replay(ctx, claimed)
	if err != nil {
		return nil, err
	}
	if replay != nil {
		return nil, replay
	}
	return store.WithIdempotency(ctx, claimed), nil
}

// Stored returns the answer in a *store.Replay.
func Stored(err error) (server.Stored, bool) {
	replay, ok := errors.AsType[*store.Replay](err)
	if !ok {
		return server.Stored{}, false
	}
	return server.Stored{Status: replay.Status, Body: replay.Body, ETag: replay.ETag, Mismatch: replay.BodyDiffers}, true
}

// translate maps temporary errors of the store to API errors.
func translate(err error) error {
	switch {
	case apierr.Of(err).Status != http.StatusInternalServerError:
		return err
	case errors.Is(err, store.ErrOutcomeUnknown):
		return apierr.OutcomeUnknown.Wrap(err)
	case errors.Is(err, store.ErrBusy):
		return apierr.Unavailable // without a cause, so that an overload does not fill the log
	case store.Temporary(err), errors.Is(err, store.ErrNewerSchema): // other nodes serve on
		return apierr.Unavailable.Wrap(err)
	}
	return err
}
