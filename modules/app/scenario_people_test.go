package app_test

import (
	"fmt"
	"regexp"
	"strings"

	"kontor/server/access"
	"kontor/server/servertest"
)

// people are the users of the scenario.
type people struct {
	advisor, customer *servertest.Client
	credential        string // id of the customer's credential, an e-mail address
}

const (
	beat         = "beat@example.ch"
	beatPassword = "eine lange ruhige Nacht"
)

// people creates an advisor, and registers a customer with two credentials.
func (s *scenario) people() people {
	var made struct {
		UserID      string `json:"user_id"`
		AccessToken string `json:"access_token"`
		Credential  struct{ ID string }
	}
	s.do(s.server.Keyed(), "POST", "/v1/users/initiate-registration", map[string]any{"credential_type": "email", "credential_value": beat,
		"password": beatPassword, "terms_accepted": true, "privacy_policy_accepted": true}).Into(s, &made)
	registrant := s.server.Anonymous().With("Authorization", "Bearer "+made.AccessToken)
	s.expect(registrant, "GET", "/v1/customers", nil, 403, "common.rbac_no_rec_access")
	credential := "/v1/users/" + made.UserID + "/credentials/" + made.Credential.ID
	s.do(registrant, "POST", credential+"/otp", nil)
	s.expect(registrant, "PUT", credential+"/validate", map[string]any{"otp": "not it"}, 400, "users.invalid_otp")
	s.do(registrant, "PUT", credential+"/validate", map[string]any{"otp": s.code(beat)})

	p := people{advisor: s.server.User(access.Advisor), customer: s.server.SignIn(beat, beatPassword), credential: made.Credential.ID}
	s.do(p.customer, "GET", "/v1/users/me", nil)
	s.do(p.customer, "GET", "/v1/users/"+p.customer.UserID, nil)
	s.do(p.customer, "PATCH", "/v1/users/"+p.customer.UserID, map[string]any{"language": "it"})
	s.do(p.advisor, "GET", "/v1/users?search.status=active", nil)

	own := "/v1/users/" + p.customer.UserID + "/credentials"
	named := map[string]any{"credential_type": "username", "credential_value": "beat.muster"}
	s.expect(p.customer, "POST", own, named, 403, "auth_m.proof_required")
	named["password"] = beatPassword
	s.id(p.customer, own, named)
	s.do(s.server.Anonymous(), "POST", "/authenticate/undo", map[string]any{"token": s.undoToken(beat)})
	s.expect(p.customer, "GET", own, nil, 401, "common.unauthorized")
	p.customer = s.server.SignIn(beat, beatPassword)
	second := s.id(p.customer, own, named)
	s.do(p.customer, "GET", own, nil)
	s.do(p.customer, "DELETE", "/v1/users/credentials/"+second, nil)
	s.expect(p.customer, "DELETE", "/v1/users/credentials/"+p.credential, nil, 409, "users.last_credential")
	return p
}

var (
	digits   = regexp.MustCompile(`\b[0-9]{6}\b`)
	undoLink = regexp.MustCompile(`/undo#([A-Za-z0-9_-]{22})`)
)

// code returns the one-time code in the newest message to an address.
func (s *scenario) code(to string) string { return digits.FindString(s.newest(to)) }

// undoToken returns the token of the link in the newest message to an address.
func (s *scenario) undoToken(to string) string {
	s.Helper()
	found := undoLink.FindStringSubmatch(s.newest(to))
	if found == nil {
		s.Fatalf("the message has no link: %s", s.newest(to))
	}
	return found[1]
}

// newest returns the text of the newest message to an address.
func (s *scenario) newest(to string) string {
	s.Helper()
	var page struct{ Data []struct{ Text string } }
	s.do(s.admin, "GET", "/v1/notifications/deliveries?limit=1&search.to="+to, nil).Into(s, &page)
	if len(page.Data) == 0 {
		s.Fatalf("nothing was sent to %s", to)
	}
	return page.Data[0].Text
}

// access creates a role for an auditor, its grants, a rate limit and an API key, and deletes them again.
func (s *scenario) access(p people) {
	role := s.id(s.admin, "/v1/rbac/roles", map[string]any{"name": "Auditor <&>"})
	s.do(s.admin, "PUT", "/v1/rbac/roles/"+role, map[string]any{"name": "Auditor", "description": "Reads the audit trail."})
	s.do(s.admin, "GET", "/v1/rbac/roles/"+role, nil)
	s.do(s.admin, "GET", "/v1/rbac/roles?search.name=auditor", nil)
	auditor := s.server.User()
	s.expect(auditor, "GET", "/v1/audit", nil, 403, "common.rbac_no_rec_access")
	s.do(s.admin, "PUT", "/v1/users/"+auditor.UserID+"/roles", map[string]any{"roles": []string{"Auditor"}})
	s.id(s.admin, "/v1/rbac/grants", map[string]any{"role_id": role, "endpoint": "GET /v1/audit"})
	s.expect(auditor, "GET", "/v1/audit", nil, 403, "common.rbac_no_rec_access")
	grant := s.id(s.admin, "/v1/rbac/grants", map[string]any{"role_id": role, "rec_type": "audit", "permissions": []string{"read"}})
	s.do(auditor, "GET", "/v1/audit", nil)
	s.do(s.admin, "GET", "/v1/audit/export?from=1&to=2", nil)
	s.do(s.admin, "GET", "/v1/rbac/grants?search.role_id="+role, nil)
	s.do(s.admin, "DELETE", "/v1/rbac/grants/"+grant, nil)
	s.expect(auditor, "GET", "/v1/audit", nil, 403, "common.rbac_no_rec_access")
	s.do(s.admin, "PUT", "/v1/rbac/roles/"+role+"/permissions", map[string]any{"types": []map[string]any{{"rec_type": "audit", "permissions": []string{"read"}}}})
	s.do(s.admin, "GET", "/v1/rbac/roles/"+role+"/permissions", nil)
	s.changedFields(auditor, role)
	s.id(s.admin, "/v1/rbac/reviews", map[string]any{"role_id": role, "decision": "keep"})
	s.do(s.admin, "GET", "/v1/rbac/reviews?search.role_id="+role, nil)
	s.do(s.admin, "GET", "/v1/rbac/review?search.role_id="+role, nil)
	s.do(s.admin, "DELETE", "/v1/rbac/roles/"+role, nil)
	s.do(s.admin, "GET", "/v1/rbac/explain?type=users&id="+p.customer.UserID, nil)
	s.invitations()

	s.do(s.admin, "GET", "/v1/rbac/endpoints", nil)
	s.do(s.admin, "GET", "/v1/rbac/record-types", nil)
	s.do(s.admin, "DELETE", "/v1/rbac/record-types/"+s.id(s.admin, "/v1/rbac/record-types", map[string]any{"name": "invoice", "permissions": []string{"approve"}}), nil)
	s.id(s.admin, "/v1/rbac/record-types", map[string]any{"name": "order", "permissions": []string{"approve"}})
	s.decisions(p)
	s.do(s.admin, "PUT", "/v1/rate-limits", map[string]any{"endpoint": "GET /v1/customers", "per_minute": 600})
	s.do(s.admin, "GET", "/v1/rate-limits", nil)
	s.do(s.admin, "PUT", "/v1/rate-limits", map[string]any{"endpoint": "GET /v1/customers", "per_minute": nil})
	s.do(p.customer, "POST", "/v1/rbac/check", map[string]any{"checks": []map[string]string{{"rec_type": "customers", "permission": "create"},
		{"rec_type": "users", "rec_id": p.customer.UserID, "permission": "read"}}})

	var key struct{ ID, Key string }
	s.do(s.admin, "POST", "/v1/api-keys", map[string]any{"name": "the <web> site"}).Into(s, &key)
	application := s.server.Anonymous().With("X-API-Key", key.Key)
	s.do(application, "GET", "/v1/public-endpoint", nil)
	s.do(s.admin, "GET", "/v1/api-keys", nil)
	s.do(s.admin, "DELETE", "/v1/api-keys/"+key.ID, nil)
	s.expect(application, "GET", "/v1/public-endpoint", nil, 401, "common.unauthorized")
}

// changedFields reads as an auditor what the change of a role's permissions has changed.
func (s *scenario) changedFields(auditor *servertest.Client, role string) {
	var page struct{ Data []struct{ Seq int64 } }
	s.do(s.admin, "GET", "/v1/audit?search.action=rbac.roles.permissions&search.rec_id="+role, nil).Into(s, &page)
	entry := fmt.Sprintf("/v1/audit/%d", page.Data[0].Seq)
	s.do(s.admin, "GET", entry, nil)
	s.expect(auditor, "GET", entry, nil, 403, "common.rbac_no_rec_access")
	s.expect(s.admin, "GET", "/v1/audit/999999999", nil, 404, "audit.entry_not_found")
}

// invitations invites two people: one accepts, and the invitation of the other is withdrawn.
func (s *scenario) invitations() {
	invite := func(to string) (id string) {
		return s.id(s.admin, "/v1/invitations", map[string]any{"email": to, "display_name": "Ines <Meier>", "roles": []string{"Advisor"}})
	}
	first, second := invite("ines@example.ch"), invite("ueli@example.ch")
	s.do(s.admin, "GET", "/v1/invitations", nil)
	s.do(s.admin, "POST", "/v1/invitations/"+first+"/resend", nil)
	s.do(s.admin, "DELETE", "/v1/invitations/"+second, nil)
	var page struct{ Data []struct{ Text string } }
	s.do(s.admin, "GET", "/v1/notifications/deliveries?limit=1&search.to=ines@example.ch", nil).Into(s, &page)
	_, link, _ := strings.Cut(page.Data[0].Text, "/invitation#")
	token, _, _ := strings.Cut(link, "\n")
	s.do(s.server.Anonymous(), "POST", "/v1/invitations/view", map[string]any{"token": token})
	s.do(s.server.Anonymous(), "POST", "/v1/invitations/accept", map[string]any{"token": token, "password": beatPassword})
	s.expect(s.server.Anonymous(), "POST", "/v1/invitations/view", map[string]any{"token": token}, 404, "users.invitation_invalid")
	s.do(s.server.SignIn("ines@example.ch", beatPassword), "GET", "/v1/users/me", nil)
}

// recovery replaces a forgotten password.
func (s *scenario) recovery() {
	s.do(s.server.Anonymous(), "POST", "/v1/users/initiate-recovery", map[string]any{"credential_value": beat})
	s.do(s.server.Keyed(), "POST", "/v1/users/complete-recovery", map[string]any{"credential_value": beat, "otp": s.code(beat), "password": "ein anderer ruhiger Tag"})
}

// lostRegistration completes a registration whose page was closed.
func (s *scenario) lostRegistration() {
	const address, password = "ueli@example.ch", "eine lange ruhige Nacht"
	s.do(s.server.Keyed(), "POST", "/v1/users/initiate-registration", map[string]any{"credential_type": "email", "credential_value": address,
		"password": password, "terms_accepted": true, "privacy_policy_accepted": true})
	anonymous := s.server.Anonymous()
	s.do(anonymous, "POST", "/v1/users/resend-registration-code", map[string]any{"credential_value": address})
	s.do(anonymous, "POST", "/v1/users/complete-registration", map[string]any{"credential_value": address, "otp": s.code(address), "password": password})
	s.server.SignIn(address, password)
}

// sessions refreshes a token, ends one session from another, and signs out.
func (s *scenario) sessions(p people) {
	s.expect(p.customer, "GET", "/v1/users/me", nil, 401, "common.unauthorized") // the recovery ended all sessions
	p.customer = s.server.SignIn(beat, "ein anderer ruhiger Tag")
	user := "/v1/users/" + p.customer.UserID
	s.do(p.customer, "PUT", user+"/password", map[string]any{"old_password": "ein anderer ruhiger Tag", "password": beatPassword})
	s.do(p.customer, "POST", user+"/reauthenticate", map[string]any{"password": beatPassword})
	var tokens struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}
	s.do(s.server.Anonymous(), "POST", "/v1/token/refresh", map[string]any{"refresh_token": p.customer.Refresh}).Into(s, &tokens)
	fresh := s.server.Anonymous().With("Authorization", "Bearer "+tokens.AccessToken)
	elsewhere := s.server.SignIn(beat, beatPassword)
	var page struct{ Data []struct{ ID string } }
	s.do(fresh, "GET", user+"/sessions", nil).Into(s, &page)
	s.do(fresh, "DELETE", user+"/sessions/"+page.Data[0].ID, nil) // the newest
	s.expect(elsewhere, "GET", "/v1/users/me", nil, 401, "common.unauthorized")
	s.do(fresh, "POST", "/v1/logout", nil)
	s.expect(fresh, "GET", "/v1/users/me", nil, 401, "common.unauthorized")
	s.expect(s.server.Anonymous(), "POST", "/v1/token/refresh", map[string]any{"refresh_token": tokens.RefreshToken}, 401, "auth_m.invalid_refresh_token")
}
