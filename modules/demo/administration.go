package demo

import (
	"context"
	"crypto/rand"
	"net/http"

	"kontor/modules/identity/directory"
)

// configure creates a custom role, API keys, and rate limits, as the administrator.
func (b *builder) configure(ctx context.Context) error {
	if err := b.createAuditor(ctx); err != nil {
		return err
	}
	for _, name := range []string{"Website", "Mobile app", "Pilot 2025"} {
		var created record
		if err := b.api.post(ctx, b.admin, "/v1/api-keys", object{"name": name}, &created); err != nil {
			return err
		}
		if name == "Pilot 2025" {
			if err := b.api.do(ctx, b.admin, http.MethodDelete, "/v1/api-keys/"+created.ID, nil, nil); err != nil {
				return err
			}
		}
	}
	for _, rule := range []object{
		{"endpoint": "GET /v1/customers", "per_minute": 600},
		{"endpoint": "POST /v1/invoices/qrcode", "per_minute": 60},
		{"endpoint": "POST /v1/chats/{id}/messages", "per_minute": 240},
	} {
		if err := b.api.do(ctx, b.admin, http.MethodPut, "/v1/rate-limits", rule, nil); err != nil {
			return err
		}
	}
	return nil
}

// createAuditor creates a role that may only read, and a user who holds it.
func (b *builder) createAuditor(ctx context.Context) error {
	var role record
	if err := b.api.post(ctx, b.admin, "/v1/rbac/roles", object{"name": "Auditor", "description": "Reads customers and the audit trail, changes nothing."}, &role); err != nil {
		return err
	}
	for _, recType := range []string{"customers", "audit"} {
		if err := b.api.post(ctx, b.admin, "/v1/rbac/grants", object{"role_id": role.ID, "rec_type": recType, "permissions": []string{"read", "read_all"}}, nil); err != nil {
			return err
		}
	}
	for _, endpoint := range []string{"GET /v1/customers", "GET /v1/customers/{id}", "GET /v1/customers/{id}/kyc", "GET /v1/audit", "GET /v1/audit/status"} {
		if err := b.api.post(ctx, b.admin, "/v1/rbac/grants", object{"role_id": role.ID, "endpoint": endpoint}, nil); err != nil {
			return err
		}
	}
	// The password of this user is not printed: the demo prints one sign-in per built-in role.
	_, err := b.Users.Create(ctx, directory.NewUser{Value: "audit@kontor.localhost", DisplayName: "Reto Zgraggen", Password: rand.Text(), Roles: []string{"Auditor"}, Language: "de"})
	return err
}
