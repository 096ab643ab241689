package app_test

import "kontor/server/access"

// services creates a service account with two tokens, uses one, and disables the account.
func (s *scenario) services() {
	account := "/v1/service-accounts/" + s.id(s.admin, "/v1/service-accounts", map[string]any{
		"name": "Back office", "description": "Reads customers.", "roles": []string{access.Advisor}})
	s.do(s.admin, "GET", account, nil)
	s.do(s.admin, "GET", "/v1/service-accounts", nil)
	s.do(s.admin, "PATCH", account, map[string]any{"name": "Night job", "description": "Reads customers every night."})
	var token struct{ ID, Token string }
	s.do(s.admin, "POST", account+"/tokens", map[string]any{"name": "Production", "scopes": []string{"customers.list"}, "networks": []string{"127.0.0.0/8", "::1"}}).Into(s, &token)
	s.id(s.admin, account+"/tokens", map[string]any{"name": "Next"})
	client := s.server.Anonymous().With("Authorization", "Bearer "+token.Token)
	s.do(client, "GET", "/v1/customers", nil)
	s.expect(client, "GET", "/v1/personas", nil, 403, "common.rbac_no_rec_access")
	s.do(s.admin, "GET", account+"/tokens", nil)
	s.do(s.admin, "DELETE", account+"/tokens/"+token.ID, nil)
	s.expect(client, "GET", "/v1/customers", nil, 401, "common.unauthorized")
	s.do(s.admin, "DELETE", account, nil)
}

// decisions asks for decisions by AuthZEN.
func (s *scenario) decisions(p people) {
	subject, action := map[string]string{"type": "user", "id": p.customer.UserID}, map[string]string{"name": "read"}
	resource := map[string]string{"type": "users", "id": p.customer.UserID}
	s.do(p.customer, "POST", "/access/v1/evaluation", map[string]any{"subject": subject, "action": action, "resource": resource})
	s.do(s.admin, "POST", "/access/v1/evaluations", map[string]any{"subject": subject, "action": action, "evaluations": []any{map[string]any{"resource": resource}}})
	s.do(s.admin, "POST", "/access/v1/search/subject", map[string]any{"subject": subject, "action": action, "resource": resource})
	s.do(s.admin, "POST", "/access/v1/search/resource", map[string]any{"subject": subject, "action": action, "resource": resource})
	s.do(s.server.Anonymous(), "GET", "/.well-known/authzen-configuration", nil)
	s.do(s.admin, "POST", "/access/v1/search/action", map[string]any{"subject": subject, "resource": resource})
}
