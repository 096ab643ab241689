package app_test

import (
	"regexp"

	"kontor/server/access"
	"kontor/server/servertest"
)

// people are who works and banks here.
type people struct {
	advisor, customer *servertest.Client
	credential        string // of the customer, an e-mail address that he registered with
}

const (
	beat         = "beat@example.ch"
	beatPassword = "eine lange ruhige Nacht"
)

// people registers a customer as an application does, and gives him a second credential.
func (d *day) people() people {
	var made struct {
		UserID      string `json:"user_id"`
		AccessToken string `json:"access_token"`
		Credential  struct{ ID string }
	}
	d.do(d.s.Keyed(), "POST", "/v1/users/initiate-registration", map[string]any{"credential_type": "email", "credential_value": beat,
		"password": beatPassword, "terms_accepted": true, "privacy_policy_accepted": true}).Into(d, &made)
	registrant := d.s.Anonymous().With("Authorization", "Bearer "+made.AccessToken)
	d.expect(registrant, "GET", "/v1/customers", nil, 403, "common.rbac_no_rec_access")
	credential := "/v1/users/" + made.UserID + "/credentials/" + made.Credential.ID
	d.do(registrant, "POST", credential+"/otp", nil)
	d.expect(registrant, "PUT", credential+"/validate", map[string]any{"otp": "not it"}, 400, "users.invalid_otp")
	d.do(registrant, "PUT", credential+"/validate", map[string]any{"otp": d.code(beat)})

	p := people{advisor: d.s.User(access.Advisor), customer: d.s.SignIn(beat, beatPassword), credential: made.Credential.ID}
	d.do(p.customer, "GET", "/v1/users/me", nil)
	d.do(p.customer, "GET", "/v1/users/"+p.customer.UserID, nil)
	d.do(p.customer, "PATCH", "/v1/users/"+p.customer.UserID, map[string]any{"language": "fr"})
	d.do(p.advisor, "GET", "/v1/users?search.status=active", nil)

	own := "/v1/users/" + p.customer.UserID + "/credentials"
	second := d.id(p.customer, own, map[string]any{"credential_type": "username", "credential_value": "beat.muster"})
	d.do(p.customer, "GET", own, nil)
	d.do(p.customer, "DELETE", "/v1/users/credentials/"+second, nil)
	d.expect(p.customer, "DELETE", "/v1/users/credentials/"+p.credential, nil, 409, "users.last_credential")
	return p
}

var digits = regexp.MustCompile(`\b[0-9]{6}\b`)

// code reads the newest one-time code that was sent to somebody.
func (d *day) code(to string) string {
	d.Helper()
	var page struct{ Data []struct{ Text string } }
	d.do(d.admin, "GET", "/v1/notifications/deliveries?limit=1&search.to="+to, nil).Into(d, &page)
	if len(page.Data) == 0 {
		d.Fatalf("nothing was sent to %s", to)
	}
	return digits.FindString(page.Data[0].Text)
}

// access gives a role that lets an auditor read the trail, and takes it away again.
func (d *day) access(p people) {
	role := d.id(d.admin, "/v1/rbac/roles", map[string]any{"name": "Auditor <&>"})
	d.do(d.admin, "PUT", "/v1/rbac/roles/"+role, map[string]any{"name": "Auditor", "description": "Reads the audit trail."})
	d.do(d.admin, "GET", "/v1/rbac/roles/"+role, nil)
	d.do(d.admin, "GET", "/v1/rbac/roles?search.name=auditor", nil)
	auditor := d.s.User()
	d.expect(auditor, "GET", "/v1/audit", nil, 403, "common.rbac_no_rec_access")
	d.do(d.admin, "PUT", "/v1/users/"+auditor.UserID+"/roles", map[string]any{"roles": []string{"Auditor"}})
	d.id(d.admin, "/v1/rbac/grants", map[string]any{"role_id": role, "endpoint": "GET /v1/audit"})
	d.expect(auditor, "GET", "/v1/audit", nil, 403, "common.rbac_no_rec_access")
	grant := d.id(d.admin, "/v1/rbac/grants", map[string]any{"role_id": role, "rec_type": "audit", "permissions": []string{"read"}})
	d.do(auditor, "GET", "/v1/audit", nil)
	d.do(d.admin, "GET", "/v1/rbac/grants?search.role_id="+role, nil)
	d.do(d.admin, "DELETE", "/v1/rbac/grants/"+grant, nil)
	d.expect(auditor, "GET", "/v1/audit", nil, 403, "common.rbac_no_rec_access")
	d.do(d.admin, "DELETE", "/v1/rbac/roles/"+role, nil)

	d.do(d.admin, "GET", "/v1/rbac/endpoints", nil)
	d.do(d.admin, "GET", "/v1/rbac/record-types", nil)
	d.do(d.admin, "PUT", "/v1/rate-limits", map[string]any{"endpoint": "GET /v1/customers", "per_minute": 600})
	d.do(d.admin, "GET", "/v1/rate-limits", nil)
	d.do(d.admin, "PUT", "/v1/rate-limits", map[string]any{"endpoint": "GET /v1/customers", "per_minute": nil})
	d.do(p.customer, "POST", "/v1/rbac/check", map[string]any{"checks": []map[string]string{{"rec_type": "customers", "permission": "create"},
		{"rec_type": "users", "rec_id": p.customer.UserID, "permission": "read"}}})

	var key struct{ ID, Key string }
	d.do(d.admin, "POST", "/v1/api-keys", map[string]any{"name": "the <web> site"}).Into(d, &key)
	application := d.s.Anonymous().With("X-API-Key", key.Key)
	d.do(application, "GET", "/v1/public-endpoint", nil)
	d.do(d.admin, "GET", "/v1/api-keys", nil)
	d.do(d.admin, "DELETE", "/v1/api-keys/"+key.ID, nil)
	d.expect(application, "GET", "/v1/public-endpoint", nil, 401, "common.unauthorized")
}

// recovery replaces a forgotten password.
func (d *day) recovery() {
	d.do(d.s.Keyed(), "POST", "/v1/users/initiate-recovery", map[string]any{"credential_value": beat})
	d.do(d.s.Keyed(), "POST", "/v1/users/complete-recovery", map[string]any{"credential_value": beat, "otp": d.code(beat), "password": "ein anderer ruhiger Tag"})
}

// sessions ends one session from another, and this one itself.
func (d *day) sessions(p people) {
	d.expect(p.customer, "GET", "/v1/users/me", nil, 401, "common.unauthorized") // the recovery has ended it
	p.customer = d.s.SignIn(beat, "ein anderer ruhiger Tag")
	user := "/v1/users/" + p.customer.UserID
	d.do(p.customer, "PUT", user+"/password", map[string]any{"old_password": "ein anderer ruhiger Tag", "password": beatPassword})
	d.do(p.customer, "POST", user+"/reauthenticate", map[string]any{"password": beatPassword})
	var tokens struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}
	d.do(d.s.Anonymous(), "POST", "/v1/token/refresh", map[string]any{"refresh_token": p.customer.Refresh}).Into(d, &tokens)
	fresh := d.s.Anonymous().With("Authorization", "Bearer "+tokens.AccessToken)
	elsewhere := d.s.SignIn(beat, beatPassword)
	var page struct{ Data []struct{ ID string } }
	d.do(fresh, "GET", user+"/sessions", nil).Into(d, &page)
	d.do(fresh, "DELETE", user+"/sessions/"+page.Data[0].ID, nil) // the newest
	d.expect(elsewhere, "GET", "/v1/users/me", nil, 401, "common.unauthorized")
	d.do(fresh, "POST", "/v1/logout", nil)
	d.expect(fresh, "GET", "/v1/users/me", nil, 401, "common.unauthorized")
	d.expect(d.s.Anonymous(), "POST", "/v1/token/refresh", map[string]any{"refresh_token": tokens.RefreshToken}, 401, "auth_m.invalid_refresh_token")
}
