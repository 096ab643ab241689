package demo

import (
	"crypto/rand"
	"net/http"

	"kontor/modules/directory"
)

// keepHouse is what the administrator does when the bank opens: a role of the bank's own, keys for its applications, and
// limits for what is called too often.
func (b *bank) keepHouse() error {
	if err := b.addAuditor(); err != nil {
		return err
	}
	for _, name := range []string{"Website", "Mobile app", "Pilot 2025"} {
		var made idOf
		if err := b.api.post(b.admin, "/v1/api-keys", object{"name": name}, &made); err != nil {
			return err
		}
		if name == "Pilot 2025" {
			if err := b.api.do(b.admin, http.MethodDelete, "/v1/api-keys/"+made.ID, nil, nil); err != nil {
				return err
			}
		}
	}
	for _, rule := range []object{
		{"endpoint": "GET /v1/customers", "per_minute": 600},
		{"endpoint": "POST /v1/invoices/qrcode", "per_minute": 60},
		{"endpoint": "POST /v1/chats/{id}/messages", "per_minute": 240},
	} {
		if err := b.api.do(b.admin, http.MethodPut, "/v1/rate-limits", rule, nil); err != nil {
			return err
		}
	}
	return nil
}

// addAuditor makes a role that reads and changes nothing, and a user who has it.
func (b *bank) addAuditor() error {
	var role idOf
	if err := b.api.post(b.admin, "/v1/rbac/roles", object{"name": "Auditor", "description": "Reads customers and the audit trail, changes nothing."}, &role); err != nil {
		return err
	}
	for _, recType := range []string{"customers", "audit"} {
		if err := b.api.post(b.admin, "/v1/rbac/grants", object{"role_id": role.ID, "rec_type": recType, "permissions": []string{"read", "read_all"}}, nil); err != nil {
			return err
		}
	}
	for _, endpoint := range []string{"GET /v1/customers", "GET /v1/customers/{id}", "GET /v1/customers/{id}/kyc", "GET /v1/audit", "GET /v1/audit/status"} {
		if err := b.api.post(b.admin, "/v1/rbac/grants", object{"role_id": role.ID, "endpoint": endpoint}, nil); err != nil {
			return err
		}
	}
	// Nobody is told this user's password: the four of the demo are enough to come in.
	_, err := b.Users.Create(b.ctx, directory.NewUser{Value: "audit@kontor.localhost", DisplayName: "Reto Zgraggen", Password: rand.Text(), Roles: []string{"Auditor"}, Language: "de"})
	return err
}
