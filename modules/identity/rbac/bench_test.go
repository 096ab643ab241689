package rbac_test

import (
	"testing"

	"kontor/modules/identity/rbac"
	"kontor/server/access"
	"kontor/store"
)

// BenchmarkCheck100 decides 100 checks on 100 records of two types, half of which the caller may read, with 20,000 grants on
// records in the database.
func BenchmarkCheck100(b *testing.B) {
	h := newHarness(b)
	user := h.user(access.Customer)
	var checks []access.Check
	err := h.DB.InTx(b.Context(), func(tx *store.Tx) error {
		for i := range 20_000 {
			principal := user
			if i%2 == 0 {
				principal = access.Customer
			}
			persona := store.NewID()
			if _, err := tx.Exec(b.Context(), `
				INSERT INTO personas (id, first_name, first_name_key, last_name, last_name_key, date_of_birth, active, metadata,
					created_at, created_by, modified_at, modified_by, version)
				VALUES ($1, 'Ada', 'ada', 'Muster', 'muster', '1990-01-31', TRUE, '{}', 0, $2, 0, $2, 1)`, persona, h.root); err != nil {
				return err
			}
			_, err := tx.Exec(b.Context(), `INSERT INTO grants (id, principal_kind, principal_id, rec_type, permission, rec_id, created_at, created_by)
				VALUES ($1, 'user', $2, 'customers', 'read', $3, 0, $2)`, store.NewID(), principal, persona)
			if err != nil {
				return err
			}
			if i%200 == 0 {
				checks = append(checks, access.Check{RecType: "personas", Permission: []string{"read", "update"}[i/200%2], RecID: persona})
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	checks[7] = access.Check{RecType: "roles", Permission: "read", RecID: access.Advisor}
	caller := access.Caller{UserID: user, Roles: []string{access.Customer}}.WithPolicy(h.Policy.Load())
	b.ResetTimer()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.RBAC.Decide(b.Context(), caller, checks); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck100HTTP measures 100 checks as one request, including the client's work.
func BenchmarkCheck100HTTP(b *testing.B) {
	h := newHarness(b)
	user := h.user(access.Customer)
	checks := make([]object, 100)
	for i := range checks {
		checks[i] = object{"rec_type": "personas", "permission": "read", "rec_id": h.persona(user)}
	}
	body := object{"checks": checks}
	b.ResetTimer()
	for b.Loop() {
		if a := h.do(user, "POST", "/v1/rbac/check", body); a.status != 200 {
			b.Fatal(a.text)
		}
	}
}

// BenchmarkPolicyLoad changes a rule, which loads a policy of 5,000 grants on types.
func BenchmarkPolicyLoad(b *testing.B) {
	h := newHarness(b)
	err := h.DB.InTx(b.Context(), func(tx *store.Tx) error {
		for range 5_000 {
			_, err := tx.Exec(b.Context(), `INSERT INTO grants (id, principal_kind, principal_id, rec_type, permission, created_at, created_by)
				VALUES ($1, 'user', $1, 'customers', 'read', 0, $1)`, store.NewID())
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	root := access.With(b.Context(), access.Caller{UserID: h.root, Roles: []string{access.Administrator}}.WithPolicy(h.Policy.Load()))
	in := rbac.RateLimitInput{Endpoint: "GET /v1/personas/{persona_id}"}
	in.PerMinute.Given = true
	for b.Loop() {
		in.PerMinute.Value = in.PerMinute.Value%1000 + 1
		if _, err := h.RBAC.SetRateLimit(root, in); err != nil {
			b.Fatal(err)
		}
	}
}
