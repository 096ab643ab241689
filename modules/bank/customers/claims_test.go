package customers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
)

// A verified customer puts the addresses and names of the staff into their own record, one after the other. No reviewer is excluded by
// that: each one sees the case, reads that it may be their own, and decides.
func TestClaims_ExcludeNoReviewer(t *testing.T) {
	s := servertest.Start(t)
	admin, anna, beat := s.Admin(), s.User(access.Advisor).Named(t, "Anna Amrein"), s.User(access.Advisor).Named(t, "Beat Baumann")
	attacker := s.User(access.Customer)
	path := verified(t, attacker, anna, person())
	id := path[len("/v1/customers/"):]
	for _, change := range []servertest.Body{
		{"email": email(t, anna)}, {"email": email(t, beat)}, {"email": servertest.AdminEmail},
		{"first_name": "Anna", "last_name": "Amrein"}, {"first_name": "Beat", "last_name": "Baumann"}, {"email": "mallory@example.ch"},
	} {
		attacker.Do("PUT", path, change).Expect(t, http.StatusOK)
	}
	for name, reviewer := range map[string]*servertest.Client{"Anna": anna, "Beat": beat, "the administrator": admin} {
		if got := cases(t, reviewer, "&search.customer_id="+id); got.Total != 1 {
			t.Errorf("%s sees %d cases, want 1", name, got.Total)
		}
		if got := reviewer.Do("GET", path+"/kyc", nil).Expect(t, http.StatusOK).JSON(t); got["possible_self_review"] != true {
			t.Errorf("%s does not read of the claim: %v", name, got["possible_self_review"])
		}
		if got := take(reviewer, t, servertest.Body{"customer_ids": []string{id}, "take_over": true}); got != "taken " {
			t.Errorf("%s takes the case: %s", name, got)
		}
	}
	if got := s.User(access.Advisor).Do("GET", path+"/kyc", nil).Expect(t, http.StatusOK).JSON(t); got["possible_self_review"] != nil {
		t.Error("an unrelated reviewer reads of a claim")
	}
	beat.Do("PATCH", path+"/kyc/status", decide("action_required")).Expect(t, http.StatusOK)
	trail := admin.Do("GET", "/v1/audit?search.action=customers.kyc_possible_self_review&search.rec_id="+id, nil).Expect(t, http.StatusOK).JSON(t)
	if trail["total"] != 1.0 {
		t.Errorf("the audit trail has %v entries about the decision, want 1", trail["total"])
	}
	if got := attacker.Do("GET", path+"/kyc", nil).Expect(t, http.StatusOK).JSON(t); got["possible_self_review"] != nil {
		t.Error("the customer reads that reviewers were warned")
	}
}

// Values that the bank wrote or reviewers have confirmed are proven, and exclude. A form that sends all members again proves nothing.
func TestProven_IsWhatStaffWrote(t *testing.T) {
	s := servertest.Start(t)
	bank, reviewer, owner := s.User(access.Advisor), s.User(access.Advisor).Named(t, "Rita Vogel"), s.User(access.Customer)
	for name, c := range map[string]struct {
		change func(path string)
		status int
	}{
		"claimed by the owner": {func(path string) {
			owner.Do("PUT", path, servertest.Body{"email": email(t, reviewer)}).Expect(t, http.StatusOK)
		}, http.StatusOK},
		"claimed, and sent again by staff": {func(path string) {
			owner.Do("PUT", path, servertest.Body{"email": email(t, reviewer)}).Expect(t, http.StatusOK)
			bank.Do("PUT", path, servertest.Body{"email": email(t, reviewer), "phone": "+41446681800"}).Expect(t, http.StatusOK)
		}, http.StatusOK},
		"written by staff": {func(path string) {
			bank.Do("PUT", path, servertest.Body{"email": email(t, reviewer)}).Expect(t, http.StatusOK)
		}, http.StatusForbidden},
		"written by staff, and changed by the owner": {func(path string) {
			bank.Do("PUT", path, servertest.Body{"email": email(t, reviewer)}).Expect(t, http.StatusOK)
			owner.Do("PUT", path, servertest.Body{"email": "else@example.ch"}).Expect(t, http.StatusOK)
		}, http.StatusForbidden},
		"a name that a reviewer has confirmed": {func(path string) {
			owner.Do("PUT", path, servertest.Body{"first_name": "Rita", "last_name": "Vogel"}).Expect(t, http.StatusOK)
			bank.Do("PUT", path+"/kyc", passport("P-1").With("verified_at", "2026-01-31T08:00:00Z")).Expect(t, http.StatusOK)
			owner.Do("PUT", path, servertest.Body{"first_name": "Rosa"}).Expect(t, http.StatusOK)
			bank.Do("PATCH", path+"/kyc/status", decide("action_required")).Expect(t, http.StatusOK)
		}, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			path := "/v1/customers/" + owner.Create("/v1/customers", person())
			c.change(path)
			if got := reviewer.Do("PATCH", path+"/kyc/status", decide("pending")); got.Status != c.status {
				t.Errorf("got %d %s, want %d", got.Status, got.Body, c.status)
			}
		})
	}
}

// Many records with the address of a reviewer leave their lists as they are: no statement grows with such data.
func TestCases_DoNotGrowWithRecordsOfTheReviewer(t *testing.T) {
	s := servertest.Start(t)
	s.SkipRecordCheck()
	owner, advisor := s.User(access.Customer), s.User(access.Advisor)
	waiting(t, s, owner)
	const insert = `
		INSERT INTO customers (id, type, first_name, first_name_key, last_name, last_name_key, email, email_key, has_address, street, city, city_key, postal_code,
			country, kyc_status, verification_level, metadata, language, created_at, created_by, updated_at, updated_by, version, by_staff, email_proven)
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 35000)
		SELECT 'own-' || i, 'individual', 'A', 'a', 'B', 'b', $1, $1, FALSE, '', '', '', '', '', 'pending', 'none', '{}', '', 1, $2, 1, $2, 1, TRUE, TRUE FROM n`
	servertest.Exec(t, s.DB, insert, email(t, advisor), s.Admin().UserID)
	servertest.Exec(t, s.DB, `INSERT INTO kyc_cases (customer_id, opened_at, suggested_level, country, ready) SELECT id, 1, 'none', '', FALSE FROM customers WHERE id LIKE 'own-%'`)
	if got := cases(t, advisor, ""); got.Total != 1 {
		t.Errorf("the reviewer sees %d cases, want that of another person", got.Total)
	}
	advisor.Do("GET", "/v1/screening/hits", nil).Expect(t, http.StatusOK)
}

// A former member of staff keeps nothing of what they recorded for the bank. Records that they made for themselves stay theirs.
func TestCreators_KeepNothingOfTheBank(t *testing.T) {
	s := servertest.Start(t)
	admin, client := s.Admin(), s.User(access.Customer)
	roles := func(of *servertest.Client, role string) {
		admin.Do("PUT", "/v1/users/"+of.UserID+"/roles", map[string]any{"roles": []string{role}}).Expect(t, http.StatusOK)
	}
	private := "/v1/customers/" + client.Create("/v1/customers", ada())
	roles(client, access.Advisor)
	records := func() []string {
		customer := "/v1/customers/" + client.Create("/v1/customers", ada().With("email", "bank@example.ch"))
		id := customer[len("/v1/customers/"):]
		return []string{customer, customer + "/kyc", "/v1/payers/" + client.Create("/v1/payers", map[string]any{"customer_id": id, "name": "Anna"}),
			"/v1/personas/" + client.Create("/v1/personas", map[string]any{"first_name": "Eva", "last_name": "Frei", "date_of_birth": "1981-01-01"}),
			customer + "/tasks/" + client.Create(customer+"/tasks", map[string]any{"title": "Sign", "category": "sign"})}
	}()
	for _, path := range append(records, private) {
		client.Do("GET", path, nil).Expect(t, http.StatusOK)
	}
	client.Do("DELETE", records[2], nil).Expect(t, http.StatusOK) // creators archive as long as they work for the bank
	roles(client, access.Customer)
	for _, path := range records {
		client.Do("GET", path, nil).Expect(t, http.StatusForbidden)
	}
	client.Do("GET", private, nil).Expect(t, http.StatusOK)
	client.Do("PUT", private, map[string]any{"phone": "+41446681800"}).Expect(t, http.StatusOK)
	client.Do("PUT", records[0], map[string]any{"phone": "+41446681800"}).Expect(t, http.StatusForbidden)
	for path, want := range map[string]float64{"/v1/customers": 1, "/v1/payers": 0, "/v1/personas": 0, "/v1/tasks": 0, "/v1/tasks?scope=all": 0} {
		if got := client.Do("GET", path, nil).Expect(t, http.StatusOK).JSON(t)["total"]; got != want {
			t.Errorf("%s has %v records, want %v", path, got, want)
		}
	}
	admin.Do("PATCH", records[1]+"/status", decide("pending")).Expect(t, http.StatusOK)
	admin.Do("PATCH", records[4]+"/status", map[string]any{"status": "in_progress"}).Expect(t, http.StatusOK)
	for _, event := range []string{"customer_status_changed", "task_status_changed"} {
		if got := client.Do("GET", "/v1/notifications?search.event="+event, nil).Expect(t, http.StatusOK).JSON(t)["total"]; got != 0.0 {
			t.Errorf("the former advisor was notified of %s", event)
		}
	}
	check := map[string]any{"checks": []map[string]any{{"record_type": "customers", "rec_type": "customers", "rec_id": records[0][len("/v1/customers/"):], "permission": "read"}}}
	if got := client.Do("POST", "/v1/rbac/check", check).Expect(t, http.StatusOK); !strings.Contains(got.Body, `"allowed":false`) {
		t.Errorf("the check says %s", got.Body)
	}
	roles(client, access.Advisor)
	for _, path := range records {
		client.Do("GET", path, nil).Expect(t, http.StatusOK)
	}
}

// A customer does not write the external id of the bank, and does not change or remove it.
func TestExternalID_IsTheBanks(t *testing.T) {
	s := servertest.Start(t)
	bank, owner := s.User(access.Advisor), s.User(access.Customer)
	path := "/v1/customers/" + owner.Create("/v1/customers", ada().With("metadata", map[string]any{"external_id": "K-1", "color": "red"}))
	expect := func(when string, id any, metadata string) {
		t.Helper()
		got := owner.Do("GET", path, nil).Expect(t, http.StatusOK).JSON(t)
		if got["external_id"] != id || fmt.Sprint(got["metadata"]) != metadata {
			t.Errorf("%s: external id %v and metadata %v, want %v and %s", when, got["external_id"], got["metadata"], id, metadata)
		}
	}
	expect("claimed", nil, "map[color:red external_id:K-1]")
	bank.Do("PUT", path, map[string]any{"metadata": map[string]any{"external_id": "K-1", "color": "blue"}}).Expect(t, http.StatusOK)
	expect("sent again by staff", nil, "map[color:blue external_id:K-1]")
	bank.Do("PUT", path, map[string]any{"metadata": map[string]any{"external_id": "K-2"}}).Expect(t, http.StatusOK)
	expect("written by staff", "K-2", "map[external_id:K-2]")
	owner.Do("PUT", path, map[string]any{"metadata": map[string]any{"external_id": "K-3", "color": "red"}}).Expect(t, http.StatusOK)
	expect("changed by the owner", "K-2", "map[color:red external_id:K-2]")
	owner.Do("PUT", path, map[string]any{"metadata": map[string]any{}}).Expect(t, http.StatusOK)
	expect("removed by the owner", "K-2", "map[external_id:K-2]")
	bank.Do("PUT", path, map[string]any{"metadata": map[string]any{}}).Expect(t, http.StatusOK)
	expect("removed by staff", nil, "map[]")
}

// A case that no reviewer may work on is escalated to administrators at once, with the reason.
func TestCases_WithoutAReviewerAreEscalated(t *testing.T) {
	s := servertest.Start(t)
	admin, owner := s.Admin(), s.User(access.Customer)
	path := inReview(t, owner, admin)
	id := path[len("/v1/customers/") : len(path)-len("/kyc")]
	escalated := func(as *servertest.Client, want int, event float64) {
		t.Helper()
		if got := cases(t, as, "&search.escalation=no_second_person,no_reviewer"); got.Total != want {
			t.Errorf("%d cases are escalated, want %d", got.Total, want)
		}
		if got := as.Do("GET", "/v1/notifications?search.event=kyc_case_escalated&search.user_id="+as.UserID, nil).Expect(t, http.StatusOK).JSON(t)["total"]; got != event {
			t.Errorf("the administrator has %v notifications, want %v", got, event)
		}
	}
	escalated(admin, 0, 0)
	decision := proposed(t, path, admin) // there is no second person
	escalated(admin, 1, 1)
	if got := admin.Do("GET", "/v1/kyc/cases?search.customer_id="+id, nil).Expect(t, http.StatusOK); !strings.Contains(got.Body, `"escalation":"no_second_person"`) {
		t.Errorf("the case has no reason: %s", got.Body)
	}
	admin.Do("POST", decision+"/withdraw", nil).Expect(t, http.StatusOK)
	escalated(admin, 0, 1)

	// The only administrator is the customer, and the last other reviewer leaves: they learn that a case waits, and not which.
	advisor := s.User(access.Advisor)
	self := "/v1/customers/" + advisor.Create("/v1/customers", person().With("email", servertest.AdminEmail)) + "/kyc"
	advisor.Do("PUT", self, documents(document("passport", "P-1", "2030-01-01"))).Expect(t, http.StatusOK)
	escalated(admin, 0, 1)
	admin.Do("PUT", "/v1/users/"+advisor.UserID+"/roles", map[string]any{"roles": []string{access.Customer}}).Expect(t, http.StatusOK)
	if err := s.Customers.EndAssignments(t.Context()); err != nil {
		t.Fatal(err)
	}
	escalated(admin, 0, 2)
	if got := admin.Do("GET", "/v1/notifications?search.event=kyc_case_escalated", nil).Expect(t, http.StatusOK); strings.Contains(got.Body, self[len("/v1/customers/"):len(self)-len("/kyc")]) {
		t.Errorf("the customer learns of the case: %s", got.Body)
	}
	other := s.User(access.Administrator)
	escalated(other, 1, 0)
	s.Clock.Advance(time.Second)
	if err := s.Customers.EndAssignments(t.Context()); err != nil { // once
		t.Fatal(err)
	}
	escalated(s.Admin(), 0, 2)
}

// Two customers who were dismissed as duplicates are compared again after one of them has changed their name.
func TestDuplicates_AreComparedAgainAfterARename(t *testing.T) {
	s := servertest.Start(t)
	bank, owner := s.User(access.Advisor), s.User(access.Customer)
	one, other := bank.Create("/v1/customers", hans()), owner.Create("/v1/customers", hans().With("first_name", "Heinz", "email", "heinz@example.ch"))
	dismiss := func() {
		bank.Do("POST", "/v1/customers/"+one+"/duplicates/"+other+"/dismiss", nil).Expect(t, http.StatusOK)
	}
	found := func() int { return len(duplicates(t, bank, hans().With("customer_id", one)).Candidates) }
	if n := found(); n != 1 {
		t.Fatalf("%d candidates, want 1", n)
	}
	dismiss()
	if n := found(); n != 0 {
		t.Errorf("%d candidates after the dismissal", n)
	}
	s.Clock.Advance(time.Second)
	owner.Do("PUT", "/v1/customers/"+other, map[string]any{"first_name": "Hans"}).Expect(t, http.StatusOK)
	if n := found(); n != 1 {
		t.Errorf("%d candidates after the rename, want 1", n)
	}
	s.Clock.Advance(time.Second)
	dismiss()
	if n := found(); n != 0 {
		t.Errorf("%d candidates after the second dismissal", n)
	}
}
