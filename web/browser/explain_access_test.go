package browser_test

import (
	"net/http"
	"testing"
)

// The page of a user explains rights to records. It says that it does not cover endpoints: a registrant with a grant on a
// record still gets 403.
func TestUser_ExplainsAccessToARecord(t *testing.T) {
	s := sharedServer(t)
	admin, registrant := s.newPerson("Administrator"), s.newPerson("Registrant")
	customer := s.newCustomer(s.token(admin), "Vreni", "Muster")
	v := signedInAt(t, s, desk, admin, "/admin/users/"+registrant.id)
	v.see("A request also needs the right to call its endpoint.")
	v.write(`input[name="rec_id"]`, customer)
	v.clickText("Check")
	v.see("No grant allows this.")
	s.call(s.token(admin), http.MethodPost, "/v1/rbac/grants",
		map[string]any{"user_id": registrant.id, "rec_type": "customers", "rec_id": customer, "permissions": []string{"read"}})
	v.clickText("Check")
	v.see("Has a grant on this record")
	v.see("No grant on an endpoint that reads it")
}
