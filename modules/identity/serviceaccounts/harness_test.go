package serviceaccounts_test

import (
	"net/http"
	"net/netip"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
)

// account creates a service account with roles, which may also read its own user, and returns its id.
func account(t *testing.T, s *servertest.Server, roles ...string) string {
	t.Helper()
	id := s.Admin().Create("/v1/service-accounts", map[string]any{"name": "Back office", "description": "Reads customers.", "roles": append([]string{}, roles...)})
	s.Admin().Create("/v1/rbac/grants", map[string]any{"user_id": id, "endpoint": "GET /v1/users/me"})
	return id
}

// token is a new token.
type token struct {
	ID, Text string
}

// issue creates a token of an account. limits are further members of the request.
func issue(t *testing.T, s *servertest.Server, accountID string, limits map[string]any) token {
	t.Helper()
	body := map[string]any{"name": "Production"}
	for name, value := range limits {
		body[name] = value
	}
	var made struct{ ID, Token string }
	s.Admin().Do("POST", "/v1/service-accounts/"+accountID+"/tokens", body).Expect(t, http.StatusCreated).Into(t, &made)
	return token{made.ID, made.Token}
}

// with returns a client with a token.
func (k token) with(s *servertest.Server) *servertest.Client {
	return s.Anonymous().With("Authorization", "Bearer "+k.Text)
}

// backOffice returns an account with the role Advisor, and a client with a token of it.
func backOffice(t *testing.T, s *servertest.Server) (accountID string, k token, client *servertest.Client) {
	t.Helper()
	accountID = account(t, s, access.Advisor)
	k = issue(t, s, accountID, nil)
	return accountID, k, k.with(s)
}

// prefixes parses networks.
func prefixes(t *testing.T, texts []string) (parsed []netip.Prefix) {
	t.Helper()
	for _, text := range texts {
		parsed = append(parsed, netip.MustParsePrefix(text))
	}
	return parsed
}
