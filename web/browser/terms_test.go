package browser_test

import (
	"net/http"
	"testing"
	"time"
)

// Administrators see when roles and grants of every kind end, with the remaining time. Users see when their own roles end.
func TestTerms_AreShown(t *testing.T) {
	s := sharedServer(t)
	me, holder := s.newPerson("Administrator"), s.newPerson("Customer")
	admin := s.token(me)
	name := "Deputy of " + me.login
	role := s.call(admin, http.MethodPost, "/v1/rbac/roles", map[string]any{"name": name})["id"].(string)
	end := time.Now().Add(73 * time.Hour).UTC().Format(time.RFC3339)
	s.call(admin, http.MethodPut, "/v1/users/"+holder.id+"/roles", map[string]any{"roles": []string{"Customer", name},
		"terms": []map[string]any{{"role": name, "expires_at": end}}})
	customer := s.newCustomer(admin, "Rita", "Fristmann")
	for _, grant := range []map[string]any{
		{"endpoint": "GET /v1/customers/{id}"},
		{"rec_type": "customers", "permissions": []string{"read"}},
		{"rec_type": "customers", "rec_id": customer, "permissions": []string{"update"}},
	} {
		grant["role_id"], grant["expires_at"] = role, end
		s.call(admin, http.MethodPost, "/v1/rbac/grants", grant)
	}
	v := signedInAt(t, s, desk, me, "/admin/roles/"+role)
	v.until(`document.body.innerText.split('in 3 days').length === 4`)
	v.picture("terms_of_grants")
	v.goTo("/admin/users/" + holder.id)
	v.see("in 3 days")
	v.goTo("/admin/review?user_id=" + holder.id)
	v.see("in 3 days")

	h := signedInAt(t, s, desk, holder, "/profile")
	h.see(name)
	h.see("in 3 days")
	h.picture("own_terms")
}
