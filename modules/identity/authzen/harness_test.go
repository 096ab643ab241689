package authzen_test

import (
	"context"
	"net/http"
	"testing"

	"kontor/modules/identity/directory"
	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/server/settings"
	"kontor/store"
)

const bankURL = "https://bank.example"

func atBank(s *settings.Settings) { s.Server.BaseURL = bankURL + "/" }

type json = map[string]any

// named creates a user with a user name and returns their id.
func named(t *testing.T, s *servertest.Server, name string, roles ...string) string {
	t.Helper()
	u, err := s.Users.Create(access.With(context.Background(), &access.Caller{UserID: store.NilID}),
		directory.NewUser{Value: name, Password: servertest.Password, Roles: roles})
	if err != nil {
		t.Fatal(err)
	}
	return u.ID
}

// grant creates a grant.
func grant(t *testing.T, s *servertest.Server, body json) string {
	t.Helper()
	return s.Admin().Create("/v1/rbac/grants", body)
}

// loadFixture loads the subjects, resources and decisions of the certification scenario (sections 1.1 to 1.5).
func loadFixture(t *testing.T, s *servertest.Server) (alice, bob string) {
	t.Helper()
	s.Admin().Create("/v1/rbac/record-types", json{"name": "record", "description": "Records of the certification", "permissions": []string{"read", "write", "delete"}})
	alice, bob = named(t, s, "alice", access.Customer), named(t, s, "bob", access.Customer)
	grant(t, s, json{"user_id": alice, "rec_type": "record", "rec_id": "record-1", "permissions": []string{"read", "write"}})
	grant(t, s, json{"user_id": alice, "rec_type": "record", "rec_id": "record-2", "permissions": []string{"read"}})
	grant(t, s, json{"user_id": bob, "rec_type": "record", "rec_id": "record-1", "permissions": []string{"read"}})
	return alice, bob
}

// decisionClient returns a service account that may ask about others, with a token that is for questions alone.
func decisionClient(t *testing.T, s *servertest.Server) *servertest.Client {
	t.Helper()
	account := serviceAccount(t, s, "authzen.evaluation", "authzen.evaluations", "authzen.search.subject", "authzen.search.resource", "authzen.search.action")
	grant(t, s, json{"user_id": account.UserID, "rec_type": "grants", "permissions": []string{"read_all"}})
	grant(t, s, json{"user_id": account.UserID, "rec_type": "users", "permissions": []string{"read_all"}})
	return account
}

var questions = []string{"evaluation", "evaluations", "search/subject", "search/resource", "search/action"}

// serviceAccount returns a service account that may call the operations, with a token for some scopes.
func serviceAccount(t *testing.T, s *servertest.Server, scopes ...string) *servertest.Client {
	t.Helper()
	id := s.Admin().Create("/v1/service-accounts", json{"name": "Gateway"})
	for _, path := range questions {
		grant(t, s, json{"user_id": id, "endpoint": "POST /access/v1/" + path})
	}
	var made struct{ Token string }
	s.Admin().Do("POST", "/v1/service-accounts/"+id+"/tokens", json{"name": "Production", "scopes": scopes}).Expect(t, http.StatusCreated).Into(t, &made)
	c := s.Anonymous()
	c.UserID, c.Token = id, made.Token
	return c
}
