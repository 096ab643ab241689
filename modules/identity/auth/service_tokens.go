package auth

import (
	"context"
	"net/netip"
	"strings"

	"kontor/server/access"
	"kontor/store"
)

// ServiceTokens verifies the tokens of service accounts.
type ServiceTokens interface {
	// Prefix begins every token. No access token begins so.
	Prefix() string
	// Known returns the caller of a token from memory alone. from is the client's address.
	Known(token string, from netip.Addr) (*access.Caller, bool)
	// Verify returns the caller of a token. It returns apierr.Unauthorized and apierr.AuthUnavailable.
	Verify(ctx context.Context, token string, from netip.Addr) (*access.Caller, error)
	// Active returns the caller of an open stream as of now, with the same errors.
	Active(ctx context.Context, caller *access.Caller) (*access.Caller, error)
	// Expiry returns when a verified token expires.
	Expiry(ctx context.Context, token string) (store.Time, bool)
}

// isServiceToken reports whether a bearer token claims to be that of a service account.
func (s *Service) isServiceToken(token string) bool {
	return s.Peers.ServiceTokens != nil && strings.HasPrefix(token, s.Peers.ServiceTokens.Prefix())
}
