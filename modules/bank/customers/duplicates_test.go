package customers_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// candidates is the answer of a search for duplicates.
type candidates struct {
	Candidates []struct {
		ID      string
		Name    string
		Score   float64
		Agrees  []string
		Matched []struct{ Query, Entry string }
	}
	Complete bool
}

func duplicates(t *testing.T, c *servertest.Client, members servertest.Body) candidates {
	t.Helper()
	var found candidates
	c.Do("POST", "/v1/customers/duplicates", members).Expect(t, http.StatusOK).Into(t, &found)
	return found
}

func (c candidates) ids() []string {
	ids := make([]string, len(c.Candidates))
	for i, one := range c.Candidates {
		ids[i] = one.ID
	}
	return ids
}

func hans() servertest.Body {
	return servertest.Body{"first_name": "Hans", "last_name": "Müller", "email": "hans@example.ch", "date_of_birth": "1960-02-29", "phone": "+41446681800",
		"nationality": "CHE", "address": map[string]any{"street": "Hauptstrasse 5", "city": "Bern", "postal_code": "3000", "country": "CH"},
		"metadata": map[string]any{"external_id": "K-77"}}
}

func TestDuplicates_FindACustomerInOtherSpellings(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	id := advisor.Create("/v1/customers", hans())
	advisor.Create("/v1/customers", ada())
	for name, members := range map[string]servertest.Body{
		"order":       {"first_name": "MUELLER", "last_name": "Hans"},
		"typing":      {"first_name": "Hnas", "last_name": "Müller"},
		"nickname":    {"first_name": "Johannes", "last_name": "Müller"},
		"middle name": {"first_name": "Hans Peter", "last_name": "Müller"},
		"birth date":  {"first_name": "Hanss", "last_name": "Müler", "date_of_birth": "1960-02-29"},
		"e-mail":      {"first_name": "Eva", "last_name": "Zbinden", "email": "HANS@example.ch"},
		"phone":       {"type": "business", "last_name": "Zbinden AG", "phone": "044 668 18 00"},
		"external id": {"first_name": "X", "last_name": "Y", "metadata": map[string]any{"external_id": "K-77"}},
	} {
		if found := duplicates(t, advisor, members); !slices.Equal(found.ids(), []string{id}) || !found.Complete {
			t.Errorf("%s: got %+v", name, found)
		}
	}
	sergej := advisor.Create("/v1/customers", ada().With("first_name", "Sergej", "last_name", "Lawrow"))
	if found := duplicates(t, advisor, servertest.Body{"first_name": "Сергей", "last_name": "Лавров"}); !slices.Equal(found.ids(), []string{sergej}) {
		t.Errorf("another alphabet: %+v", found)
	}
	found := duplicates(t, advisor, hans()).Candidates[0]
	if found.Score != 1 || found.Name != "Hans Müller" || !slices.Equal(found.Agrees, []string{"date_of_birth", "email", "phone", "address", "external_id"}) || len(found.Matched) != 2 {
		t.Errorf("the same customer: %+v", found)
	}
}

func TestDuplicates_LeaveOutOthers(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	advisor.Create("/v1/customers", hans())
	for _, members := range []servertest.Body{
		{"first_name": "Hans", "last_name": "Zbinden"}, {"first_name": "Ursula", "last_name": "Müller"}, {"last_name": "\u202e"}, {"last_name": "'"},
		{"first_name": "Eva", "last_name": "Zbinden", "date_of_birth": "1960-02-29"},
	} {
		answer := advisor.Do("POST", "/v1/customers/duplicates", members)
		if answer.Status == http.StatusBadRequest {
			continue // no text
		}
		if found := duplicates(t, advisor, members); len(found.Candidates) != 0 {
			t.Errorf("%v finds %+v", members, found)
		}
	}
}

func TestDuplicates_FollowChangesAndErasures(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	id := admin.Create("/v1/customers", hans())
	members := servertest.Body{"first_name": "Hans", "last_name": "Müller"}
	if found := duplicates(t, admin, members); len(found.Candidates) != 1 {
		t.Fatalf("got %+v", found)
	}
	admin.Do("PUT", "/v1/customers/"+id, map[string]any{"last_name": "Zbinden"}).Expect(t, http.StatusOK)
	if found := duplicates(t, admin, members); len(found.Candidates) != 0 {
		t.Errorf("the former name finds %+v", found)
	}
	if found := duplicates(t, admin, servertest.Body{"first_name": "Hans", "last_name": "Zbinden"}); len(found.Candidates) != 1 {
		t.Errorf("the new name finds %+v", found)
	}
	other := admin.Create("/v1/customers", hans().With("last_name", "Zbinden"))
	admin.Do("POST", "/v1/customers/"+id+"/duplicates/"+other+"/dismiss", nil).Expect(t, http.StatusOK)
	admin.Erase("/v1/customers/" + id)
	if found := duplicates(t, admin, hans().With("last_name", "Zbinden")); !slices.Equal(found.ids(), []string{other}) {
		t.Errorf("after the erasure: %+v", found)
	}
	for _, table := range []string{"customer_name_keys WHERE customer_id = $1", "customer_distinctions WHERE customer_id = $1 OR other_id = $1"} {
		if rows, err := store.All(t.Context(), s.DB, store.Text, "SELECT customer_id FROM "+table, id); err != nil || len(rows) != 0 {
			t.Errorf("after the erasure, %s has %v, %v", table, rows, err)
		}
	}
	admin.Do("POST", "/v1/customers/"+id+"/duplicates/"+other+"/dismiss", nil).ExpectError(t, http.StatusConflict, "privacy.record_erased")
}

func TestDuplicates_ShowOnlyReadableCustomers(t *testing.T) {
	s := servertest.Start(t)
	owner, customer := s.User(access.Advisor), s.User(access.Customer)
	id := owner.Create("/v1/customers", hans())
	customer.Do("POST", "/v1/customers/duplicates", hans()).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	customer.Do("POST", "/v1/customers/"+id+"/duplicates/"+id+"/dismiss", nil).ExpectError(t, http.StatusForbidden, "common.rbac_no_rec_access")
	s.Anonymous().Do("POST", "/v1/customers/duplicates", hans()).Expect(t, http.StatusUnauthorized)

	// A role with the endpoint and without the right to read all customers.
	role := s.Admin().Create("/v1/rbac/roles", map[string]any{"name": "Registrar"})
	for _, grant := range []map[string]any{{"rec_type": "customers", "permissions": []string{"create"}}, {"endpoint": "POST /v1/customers"},
		{"endpoint": "POST /v1/customers/duplicates"}} {
		grant["role_id"] = role
		s.Admin().Do("POST", "/v1/rbac/grants", grant).Expect(t, http.StatusCreated)
	}
	registrar := s.User(role)
	for _, members := range []servertest.Body{hans(), {"last_name": "Müller", "email": "hans@example.ch"}, {"last_name": "X", "phone": "+41446681800"}} {
		if found := duplicates(t, registrar, members); len(found.Candidates) != 0 {
			t.Errorf("a caller who may not read the customer finds %+v", found)
		}
	}
	registrar.Do("POST", "/v1/customers/duplicates", hans().With("customer_id", id)).Expect(t, http.StatusForbidden)
	own := registrar.Create("/v1/customers", hans())
	if found := duplicates(t, registrar, hans()); !slices.Equal(found.ids(), []string{own}) {
		t.Errorf("their own customer: %+v", found)
	}
}

func TestDismiss_IsSymmetricAndAudited(t *testing.T) {
	s := servertest.Start(t)
	advisor, admin := s.User(access.Advisor), s.Admin()
	one, other := advisor.Create("/v1/customers", hans()), advisor.Create("/v1/customers", hans())
	for _, pair := range [][2]string{{one, other}, {other, one}} {
		if found := duplicates(t, advisor, hans().With("customer_id", pair[0])); !slices.Equal(found.ids(), []string{pair[1]}) {
			t.Fatalf("before: %+v", found)
		}
	}
	for range 2 { // a repetition changes nothing
		advisor.Do("POST", "/v1/customers/"+other+"/duplicates/"+one+"/dismiss", nil).Expect(t, http.StatusOK)
	}
	for _, id := range []string{one, other} {
		if found := duplicates(t, advisor, hans().With("customer_id", id)); len(found.Candidates) != 0 {
			t.Errorf("after the dismissal: %+v", found)
		}
		trail := admin.Do("GET", "/v1/audit?search.action=customers.dismiss_duplicate&search.rec_id="+id, nil).Expect(t, http.StatusOK)
		if total := trail.JSON(t)["total"]; fmt.Sprint(total) != "1" {
			t.Errorf("the audit trail has %v entries: %s", total, trail.Body)
		}
	}
	advisor.Do("POST", "/v1/customers/"+one+"/duplicates/"+one+"/dismiss", nil).ExpectError(t, http.StatusBadRequest, "common.invalid_input")
}

func TestDuplicates_RejectWrongMembers(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	answer := advisor.Do("POST", "/v1/customers/duplicates", map[string]any{"last_name": "", "email": "nobody", "date_of_birth": "2025-02-29", "customer_id": "x"}).
		Expect(t, http.StatusBadRequest).JSON(t)
	details, _ := answer["details"].(map[string]any)
	for _, field := range []string{"last_name", "email", "date_of_birth", "customer_id"} {
		if details[field] == nil {
			t.Errorf("no reason for %s: %v", field, details)
		}
	}
	if details["first_name"] != nil {
		t.Error("the first name is required")
	}
}
