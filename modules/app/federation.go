package app

import (
	"context"
	"net/http"
	"time"

	"kontor/modules/identity/auth"
	"kontor/modules/identity/directory"
	"kontor/modules/identity/oidc"
	"kontor/server/endpoint"
	"kontor/store"
)

// newOIDC builds the sign-in with the operator's provider.
func newOIDC(m *Modules) *oidc.Service {
	s := m.Settings.Auth.OIDC
	o := oidc.Options{
		Issuer: s.Issuer, ClientID: s.ClientID, ClientSecret: string(s.ClientSecret), Name: s.Name, Scopes: s.Scopes,
		RolesClaim: s.RolesClaim, CreateUsers: s.CreateUsers,
		BaseURL: m.Settings.BaseURLFor(m.Settings.Server.Listen), Timeout: providerTime(m.Settings.Server.RequestTime),
		Policy: m.Policy, Texts: m.Texts, Log: m.Log,
		SignedIn: []endpoint.Answer{
			{Status: http.StatusOK, Body: auth.Tokens{}, Says: "The sign-in is complete."},
			{Status: http.StatusAccepted, Body: auth.NextStep{}, Says: "The sign-in needs a second factor."},
		},
	}
	for _, r := range s.RoleMap {
		o.RoleMap = append(o.RoleMap, oidc.MappedRole(r))
	}
	return oidc.New(m.DB, federatedSessions{m.Auth}, federatedUsers{m.Users}, m.Notifications, o)
}

// providerTime returns the time for the provider within a request, so that the rest of it is enough for an answer.
func providerTime(request time.Duration) time.Duration { return request * 4 / 5 }

// federatedSessions adapts sign-in for the module oidc.
type federatedSessions struct{ *auth.Service }

// NextStep returns a further step of the sign-in, or nil.
func (f federatedSessions) NextStep(ctx context.Context, userID string, methods []string, at store.Time) (any, error) {
	step, err := f.Service.NextStep(ctx, userID, methods, at)
	if step == nil {
		return nil, err
	}
	return step, err
}

// OpenFederatedSession opens a session.
func (f federatedSessions) OpenFederatedSession(ctx context.Context, tx *store.Tx, userID string, methods []string, at store.Time) (any, error) {
	return f.Service.OpenFederatedSession(ctx, tx, userID, methods, at)
}

// federatedUsers adapts the directory for the module oidc.
type federatedUsers struct{ *directory.Service }

// CreateFederated creates a user.
func (f federatedUsers) CreateFederated(ctx context.Context, tx *store.Tx, n oidc.NewUser) (string, error) {
	return f.Service.CreateFederated(ctx, tx, directory.FederatedUser(n))
}
