package privacy_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func TestErasure_RejectsHostileRequests(t *testing.T) {
	s := servertest.Start(t)
	admin, advisor, owner, stranger := s.Admin(), s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	customer := newCustomer(owner, "hostile@example.ch")
	verified := newCustomer(owner, "verified@example.ch")
	verify(t, s, verified)
	held := newCustomer(owner, "held@example.ch")
	admin.Do("PUT", "/v1/customers/"+held+"/legal-hold", map[string]any{"reason": "A dispute."}).Expect(t, 200)
	erased := newCustomer(owner, "erased@example.ch")
	payer := admin.Create("/v1/payers", map[string]any{"customer_id": erased, "name": "Hans"})
	task := admin.Create("/v1/customers/"+erased+"/tasks", map[string]any{"title": "Sign", "category": "sign"})
	erase(t, admin, "/v1/customers/"+erased)
	gone := s.User(access.Customer)
	erase(t, admin, "/v1/users/"+gone.UserID)
	persona := admin.Create("/v1/personas", map[string]any{"first_name": "A", "last_name": "B", "date_of_birth": "1980-01-01"})
	erase(t, admin, "/v1/personas/"+persona)
	same := s.User(access.Customer) // its customer has the same validated address
	own := newCustomer(same, "user5@example.ch")
	verify(t, s, own)

	reason := map[string]any{"reason": "request"}
	c, u := "/v1/customers/", "/v1/users/"
	noGrant, noRecord, done := "common.rbac_no_rec_access", "common.rbac_no_rec_access", "privacy.record_erased"
	for _, h := range []struct {
		name, method, path string
		as                 *servertest.Client
		body               any
		status             int
		code               string
	}{
		{"anonymous erases", "POST", c + customer + "/erasure", s.Anonymous(), reason, 401, "common.unauthorized"},
		{"an API key erases", "POST", c + customer + "/erasure", s.Keyed(), reason, 401, "common.unauthorized"},
		{"the owner erases a customer without the right", "POST", c + customer + "/erasure", owner, reason, 403, noGrant},
		{"an advisor erases", "POST", c + customer + "/erasure", advisor, reason, 403, noGrant},
		{"a user erases another one", "POST", u + owner.UserID + "/erasure", stranger, reason, 403, noGrant},
		{"a user erases themselves", "POST", u + owner.UserID + "/erasure", owner, reason, 403, noGrant},
		{"an administrator erases themselves", "POST", u + admin.UserID + "/erasure", admin, reason, 409, "privacy.self_erasure"},
		{"without a reason", "POST", c + customer + "/erasure", admin, map[string]any{}, 400, "common.invalid_input"},
		{"with a text as the reason", "POST", c + customer + "/erasure", admin, map[string]any{"reason": "Anna asked"}, 400, "common.invalid_input"},
		{"before the end of the relationship", "POST", c + verified + "/erasure", admin, reason, 409, "privacy.relationship_open"},
		{"under a hold", "POST", c + held + "/erasure", admin, reason, 409, "privacy.on_hold"},
		{"a user who is a customer", "POST", u + same.UserID + "/erasure", admin, reason, 409, "privacy.has_customers"},
		{"an unknown customer", "POST", c + store.NewID() + "/erasure", admin, reason, 404, "customers.customer_not_found"},
		{"an unknown user", "POST", u + store.NewID() + "/erasure", admin, reason, 404, "users.user_not_found"},
		{"a malformed id", "POST", c + "17/erasure", admin, reason, 400, "common.invalid_input"},
		{"the owner removes a hold", "DELETE", c + held + "/legal-hold", owner, nil, 403, noGrant},
		{"the owner places a hold", "PUT", c + customer + "/legal-hold", owner, map[string]any{"reason": "x"}, 403, noGrant},
		{"the owner ends the relationship", "PUT", c + verified + "/relationship", owner, map[string]any{"ended_at": "2000-01-01T00:00:00Z"}, 403, noGrant},
		{"an end in the future", "PUT", c + verified + "/relationship", admin, map[string]any{"ended_at": "2100-01-01T00:00:00Z"}, 400, "common.invalid_input"},
		{"an end before the verification", "PUT", c + verified + "/relationship", admin, map[string]any{"ended_at": "2000-01-01T00:00:00Z"}, 400, "common.invalid_input"},
		{"a hold without a reason", "PUT", c + customer + "/legal-hold", admin, map[string]any{"reason": " "}, 400, "common.invalid_input"},
		{"a customer exports another one's customer", "GET", c + customer + "/export", stranger, nil, 403, noRecord},
		{"a user exports another user", "GET", u + owner.UserID + "/export", stranger, nil, 403, noRecord},
		{"an advisor exports a user", "GET", u + owner.UserID + "/export", advisor, nil, 403, noRecord},
		{"a user lists erasures", "GET", "/v1/erasures", owner, nil, 403, noGrant},
		{"an erased customer changes", "PUT", c + erased, admin, map[string]any{"last_name": "Back"}, 409, done},
		{"an erased customer gets documents", "PUT", c + erased + "/kyc", admin, map[string]any{"documents": []map[string]any{
			{"type": "passport", "number": "X1", "expiry_date": "2099-05-01", "country": "CHE"}}}, 409, done},
		{"an erased customer is decided", "PATCH", c + erased + "/kyc/status", admin, map[string]any{"kyc_status": "pending"}, 409, done},
		{"an erased customer gets a payer", "POST", "/v1/payers", admin, map[string]any{"customer_id": erased, "name": "Hans"}, 409, done},
		{"an erased customer gets a task", "POST", c + erased + "/tasks", admin, map[string]any{"title": "Sign", "category": "sign"}, 409, done},
		{"an erased payer changes", "PUT", "/v1/payers/" + payer, admin, map[string]any{"name": "Hans"}, 409, done},
		{"an erased task changes", "PUT", c + erased + "/tasks/" + task, admin, map[string]any{"title": "Sign", "category": "sign"}, 409, done},
		{"an erased customer gets a hold", "PUT", c + erased + "/legal-hold", admin, map[string]any{"reason": "x"}, 409, done},
		{"an erased user changes", "PATCH", u + gone.UserID, admin, map[string]any{"display_name": "Back", "status": "active"}, 409, done},
		{"an erased user gets roles", "PUT", u + gone.UserID + "/roles", admin, map[string]any{"roles": []string{"Customer"}}, 409, done},
		{"an erased user gets an address", "POST", u + gone.UserID + "/credentials", admin, map[string]any{"credential_type": "email", "credential_value": "b@example.ch"}, 409, done},
		{"an erased user goes on", "GET", "/v1/users/me", gone, nil, 401, "common.unauthorized"},
		{"an erased user joins a chat", "POST", "/v1/chats", admin, map[string]any{"participants": []string{gone.UserID}}, 400, "common.invalid_input"},
		{"an erased persona changes", "PUT", "/v1/personas/" + persona, admin, map[string]any{"first_name": "A", "last_name": "B", "date_of_birth": "1980-01-01"}, 409, done},
	} {
		t.Run(h.name, func(t *testing.T) { h.as.Do(h.method, h.path, h.body).ExpectError(t, h.status, h.code) })
	}
	for _, path := range []string{c + erased, u + gone.UserID, "/v1/personas/" + persona} {
		first := erase(t, admin, path)
		if again := erase(t, admin, path); again["id"] != first["id"] || again["status"] != "erased" {
			t.Errorf("%s: the second erasure is %v", path, again)
		}
	}
	s.Clock.Advance(11 * time.Minute)
	admin.Do("POST", c+customer+"/erasure", reason).ExpectError(t, 401, "auth_m.insufficient_user_authentication")
	admin.Do("GET", c+customer+"/export", nil).ExpectError(t, 401, "auth_m.insufficient_user_authentication")
}

// Twenty requests at once make one erasure, and writes about the customer that arrive meanwhile leave nothing.
func TestErasure_RunsOnceBesideWrites(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	m := marks{name: "Race"}
	customer := newCustomer(admin, m.mark("mail")+"@example.ch")
	stop := make(chan struct{})
	var writers, erasers sync.WaitGroup
	for i := range 4 {
		text := m.mark(fmt.Sprint("write", i))
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, w := range []struct {
					method, path string
					body         any
				}{
					{"PUT", "/v1/customers/" + customer, map[string]any{"last_name": text}},
					{"POST", "/v1/payers", map[string]any{"customer_id": customer, "name": text}},
					{"POST", "/v1/customers/" + customer + "/tasks", map[string]any{"title": text, "category": "sign"}},
				} {
					if got, err := admin.Try(w.method, w.path, w.body); err != nil || got.Status >= 500 {
						t.Errorf("%s %s: %d %s, %v", w.method, w.path, got.Status, got.Body, err)
					}
				}
			}
		})
	}
	ids := make([]string, 20)
	for i := range ids {
		erasers.Go(func() {
			got, err := admin.Try("POST", "/v1/customers/"+customer+"/erasure", map[string]any{"reason": "request"})
			if err != nil || got.Status != http.StatusOK && got.Status != http.StatusAccepted {
				t.Errorf("%d %s, %v", got.Status, got.Body, err)
				return
			}
			ids[i], _ = got.JSON(t)["id"].(string)
		})
	}
	erasers.Wait()
	close(stop)
	writers.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("erasures %s and %s", ids[0], id)
		}
	}
	if err := s.Privacy.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.DB.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := filesWith(t, s.DB, m.all); len(found) > 0 {
		t.Errorf("the files contain %v", found)
	}
}

// A customer with very many notifications is erased in small transactions.
func TestErasure_OfAHugeCustomer(t *testing.T) {
	s := servertest.Start(t)
	m := marks{name: "Huge"}
	text := m.mark("name")
	customer := newCustomer(s.Admin(), "huge@example.ch")
	s.Admin().Do("POST", "/v1/customers/"+customer+"/notify", map[string]any{"text": "Hello", "user_ids": []string{s.User().UserID}}).Expect(t, 200)
	servertest.Exec(t, s.DB, `
		INSERT INTO notifications (id, notice_id, user_id, customer_id, event, title_key, content_key, content, content_low, rec_type, rec_id,
			metadata, system, created_at)
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)
		SELECT '0193a7c4-0000-7000-8000-' || substr(CAST(1000000000000 + i AS TEXT), 2), (SELECT id FROM notices WHERE customer_id = $1 LIMIT 1), $2, $1, 'customer_created',
			'', '', '', '', 'customers', $1, '{"Name":"`+text+`"}', FALSE, 1 FROM n`, customer, s.Admin().UserID)
	began := time.Now()
	erase(t, s.Admin(), "/v1/customers/"+customer)
	t.Logf("10,000 notifications were erased in %v", time.Since(began))
	if found := filesWith(t, s.DB, m.all); len(found) > 0 {
		t.Errorf("the files contain %v", found)
	}
}

// An export is a reading in the audit trail, holds what the person has, and nothing of others.
func TestExport_HoldsWhatIsKnown(t *testing.T) {
	s := servertest.Start(t)
	p, other := plant(t, s, "Anna"), plant(t, s, "Berta")
	customer := p.client.Do("GET", "/v1/customers/"+p.customer+"/export", nil).Expect(t, 200)
	user := p.client.Do("GET", "/v1/users/"+p.client.UserID+"/export", nil).Expect(t, 200)
	persona := s.Admin().Do("GET", "/v1/personas/"+p.persona+"/export", nil).Expect(t, 200)
	whole := strings.ToLower(customer.Body + user.Body + persona.Body)
	for _, text := range p.all {
		if !strings.Contains(whole, strings.ToLower(text)) && !strings.Contains(text, "Device") && !strings.Contains(text, "Hash") { // the hash was removed by an update
			t.Errorf("the exports lack %s", text)
		}
	}
	for _, text := range other.all {
		if strings.Contains(whole, strings.ToLower(text)) {
			t.Errorf("the exports hold %s of another person", text)
		}
	}
	if got := customer.Header.Get("Content-Disposition"); !strings.HasPrefix(got, "attachment") {
		t.Errorf("Content-Disposition is %q", got)
	}
	if err := s.Audit.WriteEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	if trail := s.Admin().Do("GET", "/v1/audit?search.action=privacy.export", nil).Expect(t, 200); !strings.Contains(trail.Body, p.customer) {
		t.Errorf("no reading of the customer in %s", trail.Body)
	}
}
