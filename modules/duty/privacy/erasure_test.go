package privacy_test

import (
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
	"kontor/store/storetest"
)

// marks are planted texts. Each is unique, so that a search in the files finds no other.
type marks struct {
	name string
	all  []string
}

func (m *marks) mark(what string) string {
	text := fmt.Sprintf("Planted%s%s%02dq", m.name, strings.ToUpper(what[:1])+what[1:], len(m.all))
	m.all = append(m.all, text)
	return text
}

// filesWith returns the planted texts that the files of a database contain, or its tables on PostgreSQL, in any case.
func filesWith(t testing.TB, db *store.DB, planted []string) (found []string) {
	t.Helper()
	for name, content := range storetest.Contents(t, db) {
		content = strings.ToLower(content)
		for _, text := range planted {
			if strings.Contains(content, strings.ToLower(text)) {
				found = append(found, name+": "+text)
			}
		}
	}
	return found
}

// person is a customer and a user with planted data.
type person struct {
	marks
	client                               *servertest.Client // of the user
	customer, task, payer, chat, persona string
}

// plant creates a person with data in all modules.
func plant(t testing.TB, s *servertest.Server, name string) *person {
	t.Helper()
	admin := s.Admin()
	p := &person{client: s.User(access.Customer)}
	m := &p.marks
	m.name = name
	owner := p.client.With("X-Device-ID", m.mark("device"))
	owner.Do("PATCH", "/v1/users/"+p.client.UserID, map[string]any{"display_name": m.mark("display")}).Expect(t, 200)
	p.customer = owner.Create("/v1/customers", map[string]any{
		"first_name": m.mark("first"), "last_name": m.mark("last"), "email": m.mark("mail") + "@example.ch", "phone": "+41791234567",
		"date_of_birth": "1980-02-03", "nationality": "CHE", "metadata": map[string]any{"note": m.mark("metadata")},
		"address": map[string]any{"street": m.mark("street"), "city": m.mark("city"), "postal_code": "80011", "country": "CH"},
	})
	p.payer = owner.Create("/v1/payers", map[string]any{"customer_id": p.customer, "name": m.mark("payer"), "company": m.mark("company"),
		"email": m.mark("paymail") + "@example.ch", "metadata": map[string]any{"note": m.mark("paymeta")}})
	p.task = admin.Create("/v1/customers/"+p.customer+"/tasks", map[string]any{"title": m.mark("title"), "category": "sign",
		"description": m.mark("description"), "metadata": map[string]any{"note": m.mark("taskmeta")},
		"assignees": []map[string]any{{"user_id": p.client.UserID, "name": m.mark("assignee")}}})
	owner.Do("PUT", "/v1/customers/"+p.customer+"/kyc", map[string]any{"documents": []map[string]any{
		{"type": "passport", "number": m.mark("passport"), "expiry_date": "2030-01-01", "country": "CHE"}}}).Expect(t, 200)
	for _, status := range []string{"in_review", "action_required"} {
		admin.Do("PATCH", "/v1/customers/"+p.customer+"/kyc/status", map[string]any{"kyc_status": status, "reason": m.mark("reason")}).Expect(t, 200)
	}
	owner.Do("PUT", "/v1/customers/"+p.customer, map[string]any{"last_name": m.mark("renamed")}).Expect(t, 200)
	p.persona = admin.Create("/v1/personas", map[string]any{"first_name": m.mark("pfirst"), "last_name": m.mark("plast"),
		"date_of_birth": "1980-02-03", "hash_id": m.mark("hash"), "metadata": map[string]any{"note": m.mark("pmeta")}})
	admin.Do("POST", "/v1/personas/"+p.persona+"/users", map[string]any{"user_id": p.client.UserID}).Expect(t, 201)
	admin.Do("PUT", "/v1/personas/"+p.persona, map[string]any{"first_name": m.mark("pnew"), "last_name": m.mark("plast"),
		"date_of_birth": "1980-02-03"}).Expect(t, 200)
	p.chat = owner.Create("/v1/chats", map[string]any{"participants": []string{admin.UserID}, "metadata": map[string]any{"topic": m.mark("topic")}})
	for range 3 {
		owner.Do("POST", "/v1/chats/"+p.chat+"/messages", map[string]any{"content": m.mark("message"),
			"metadata": map[string]any{"note": m.mark("msgmeta")}}).Expect(t, 201)
	}
	admin.Do("POST", "/v1/users/"+p.client.UserID+"/credentials", map[string]any{"credential_type": "email",
		"credential_value": m.mark("second") + "@example.ch"}).Expect(t, 201)
	return p
}

func erase(t testing.TB, c *servertest.Client, path string) map[string]any {
	t.Helper()
	return c.Erase(path).JSON(t)
}

func TestErasure_LeavesNothingInAnswersAndFiles(t *testing.T) {
	s := servertest.Start(t)
	p, other := plant(t, s, "Anna"), plant(t, s, "Berta")
	if err := s.DB.Clean(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := filesWith(t, s.DB, p.all); len(found) < 25 {
		t.Fatalf("only these texts were planted: %v", found)
	}
	before := len(filesWith(t, s.DB, other.all))
	admin := s.Admin()
	customer := erase(t, admin, "/v1/customers/"+p.customer)
	user := erase(t, admin, "/v1/users/"+p.client.UserID)
	for _, e := range []map[string]any{customer, user} {
		if e["status"] != "erased" || e["erased_at"] == nil || len(e["left"].([]any)) < 3 {
			t.Errorf("got %v", e)
		}
	}
	if found := filesWith(t, s.DB, p.all); len(found) > 0 {
		t.Errorf("the files contain %v", found)
	}
	if after := len(filesWith(t, s.DB, other.all)); after != before {
		t.Errorf("of another person, %d of %d texts remain", after, before)
	}
	for path, want := range map[string]string{
		"/v1/customers/" + p.customer: `"erased_at":"`, "/v1/payers/" + p.payer: `"erased_at":"`,
		"/v1/customers/" + p.customer + "/tasks/" + p.task: `"erased_at":"`, "/v1/users/" + p.client.UserID: `"erased_at":"`,
		"/v1/personas/" + p.persona: `"erased_at":"`, "/v1/customers/" + p.customer + "/kyc": `"number":""`,
		"/v1/chats/" + p.chat + "/messages": "This message was erased.", "/v1/notifications": "", "/v1/notifications/deliveries": "",
		"/v1/customers": "", "/v1/users": "", "/v1/chats": "", "/v1/personas": "", "/v1/erasures": p.customer,
	} {
		answer := admin.Do("GET", path, nil).Expect(t, 200)
		if !strings.Contains(answer.Body, want) {
			t.Errorf("GET %s: no %s in %s", path, want, answer.Body)
		}
		for _, text := range p.all {
			if strings.Contains(strings.ToLower(answer.Body), strings.ToLower(text)) {
				t.Errorf("GET %s shows %s", path, text)
			}
		}
	}
	p.client.Do("GET", "/v1/users/me", nil).Expect(t, 401)
}

func TestErasure_OfAPersonWhoIsLinkedToOthers(t *testing.T) {
	s := servertest.Start(t)
	p := plant(t, s, "Anna")
	second := s.User(access.Customer)
	s.Admin().Do("POST", "/v1/personas/"+p.persona+"/users", map[string]any{"user_id": second.UserID}).Expect(t, 201)
	erase(t, s.Admin(), "/v1/users/"+p.client.UserID)
	if answer := s.Admin().Do("GET", "/v1/personas/"+p.persona, nil).Expect(t, 200); strings.Contains(answer.Body, "erased_at") {
		t.Errorf("the persona of another user was erased: %s", answer.Body)
	}
	erase(t, s.Admin(), "/v1/personas/"+p.persona)
	if answer := s.Admin().Do("GET", "/v1/personas/"+p.persona+"/users", nil).Expect(t, 200); !strings.Contains(answer.Body, `"total":0`) {
		t.Errorf("the links remain: %s", answer.Body)
	}
}

// verify makes a customer a verified one.
func verify(t testing.TB, s *servertest.Server, customer string) {
	t.Helper()
	for _, status := range []string{"pending", "in_review", "verified"} {
		s.Admin().Do("PATCH", "/v1/customers/"+customer+"/kyc/status", map[string]any{"kyc_status": status}).Expect(t, 200)
	}
}

// newCustomer creates a customer who can be verified. Customers with different addresses have different dates of birth: they are not one
// person.
func newCustomer(c *servertest.Client, email string) string {
	digest := crc32.ChecksumIEEE([]byte(email))
	born := time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, int(digest%18_000)).Format(time.DateOnly)
	return c.Create("/v1/customers", map[string]any{"first_name": "Ada", "last_name": "Muster", "email": email, "date_of_birth": born, "nationality": "CHE"})
}

func TestErasure_WaitsForRetentionAndHold(t *testing.T) {
	s := servertest.Start(t)
	admin := s.Admin()
	customer := newCustomer(admin, "ada@example.ch")
	verify(t, s, customer)
	path := "/v1/customers/" + customer
	reason := map[string]any{"reason": "retention"}
	admin.Do("POST", path+"/erasure", reason).ExpectError(t, 409, "privacy.relationship_open")
	ended := admin.Do("PUT", path+"/relationship", map[string]any{"ended_at": "2026-01-31T00:00:00Z"}).Expect(t, 200).JSON(t)
	if ended["retention_until"] != "2036-01-31" || ended["erasable"] != false || ended["customer"] != true {
		t.Errorf("got %v", ended)
	}
	refused := admin.Do("POST", path+"/erasure", reason)
	refused.ExpectError(t, 409, "privacy.retained")
	if !strings.Contains(refused.Body, `"retention_until":"2036-01-31"`) {
		t.Errorf("no date in %s", refused.Body)
	}
	if set := admin.Do("PUT", path+"/legal-hold", map[string]any{"reason": "A dispute.", "until": "2040-01-01"}).Expect(t, 200).JSON(t); set["active"] != true {
		t.Errorf("a new hold: %v", set)
	}
	s.Clock.Advance(10*365*24*time.Hour + 3*24*time.Hour) // 31 January 2036 is over after the leap days, too
	admin = s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	hold := admin.Do("POST", path+"/erasure", reason)
	hold.ExpectError(t, 409, "privacy.on_hold")
	if !strings.Contains(hold.Body, `"until":"2040-01-01"`) {
		t.Errorf("no date in %s", hold.Body)
	}
	if due := admin.Do("GET", "/v1/erasures/due", nil).Expect(t, 200); strings.Contains(due.Body, customer) {
		t.Errorf("a customer under a hold is due: %s", due.Body)
	}
	admin.Do("DELETE", path+"/legal-hold", nil).Expect(t, 200)
	none := admin.Do("GET", path+"/legal-hold", nil).Expect(t, 200).JSON(t)
	if none["customer_id"] != customer || none["active"] != false || none["reason"] != "" || none["until"] != nil || none["people"] != nil {
		t.Errorf("without a hold: %v", none)
	}
	admin.Do("DELETE", path+"/legal-hold", nil).ExpectError(t, 404, "privacy.hold_not_found")
	if due := admin.Do("GET", "/v1/erasures/due", nil).Expect(t, 200); !strings.Contains(due.Body, customer) {
		t.Errorf("the customer is not due: %s", due.Body)
	}
	back := newCustomer(admin, "back@example.ch") // a former customer who is verified again has a new relationship
	for _, status := range []string{"pending", "in_review", "verified"} {
		admin.Do("PATCH", "/v1/customers/"+back+"/kyc/status", map[string]any{"kyc_status": status}).Expect(t, 200)
	}
	admin.Do("PUT", "/v1/customers/"+back+"/relationship", map[string]any{"ended_at": s.Clock.Now().Format(time.RFC3339)}).Expect(t, 200)
	s.Clock.Advance(11 * 366 * 24 * time.Hour)
	admin = s.SignIn(servertest.AdminEmail, servertest.AdminPassword)
	for _, status := range []string{"expired", "pending", "in_review", "verified"} {
		admin.Do("PATCH", "/v1/customers/"+back+"/kyc/status", map[string]any{"kyc_status": status}).Expect(t, 200)
	}
	admin.Do("POST", "/v1/customers/"+back+"/erasure", reason).ExpectError(t, 409, "privacy.relationship_open")
	erase(t, admin, path)
	if due := admin.Do("GET", "/v1/erasures/due", nil).Expect(t, 200); strings.Contains(due.Body, customer) {
		t.Errorf("an erased customer is due: %s", due.Body)
	}
}
