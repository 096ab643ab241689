package main

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
)

// lived is a person who has used everything that leaves something behind.
type lived struct {
	planted
	customer, user, persona string
	email, otpSecret        string
	own                     *client
}

// livePerson stores texts about a person that [plantPerson] does not store: former addresses, removed records, failed
// registrations and sign-ins, factors, messages to others about the person, and texts of requests.
func livePerson(tb testing.TB, p *process, name string) *lived {
	tb.Helper()
	m := &lived{planted: planted{name: name}}
	admin := p.admin()
	advisor := p.register(admin, "advisor-of-"+name+"@example.ch")
	admin.do(tb, "PUT", "/v1/users/"+advisor.id+"/roles", `{"roles":["Advisor"]}`, 200)
	m.email = m.text("Login") + "@example.ch"
	account := p.register(admin, m.email)
	m.user = account.id
	admin.do(tb, "PUT", "/v1/users/"+m.user+"/roles", `{"roles":["Customer"]}`, 200)
	anonymous := p.client()
	for range 2 { // a wrong password, an unknown name, and a registration with an address that is taken
		anonymous.do(tb, "POST", "/authenticate", object("user_id", m.email, "password", m.text("wrongpw")), 401)
	}
	anonymous.do(tb, "POST", "/authenticate", object("user_id", m.text("typed")+"@example.ch", "password", customerPassword), 401)
	_, _ = p.keyed().try("POST", "/v1/users/initiate-registration", body(tb, members{"credential_type": "email", "credential_value": m.email,
		"password": customerPassword, "display_name": m.text("taken"), "terms_accepted": true, "privacy_policy_accepted": true}))
	_, _ = p.keyed().try("POST", "/v1/users/initiate-recovery", object("credential_value", m.email))

	var tokens struct {
		AccessToken string `json:"access_token"`
	}
	device := p.client("X-Device-ID", m.text("device"), "User-Agent", m.text("agent"))
	device.do(tb, "POST", "/authenticate", object("user_id", m.email, "password", customerPassword), 200).into(tb, &tokens)
	m.own = device.with("Authorization", "Bearer "+tokens.AccessToken)
	users := "/v1/users/" + m.user
	m.own.do(tb, "PATCH", users, object("display_name", m.text("former")), 200)
	m.own.do(tb, "PATCH", users, object("display_name", m.text("shown")), 200)
	former := m.own.create(tb, users+"/credentials", credentialOf("email", m.text("former")+"@example.ch"))
	m.own.do(tb, "POST", users+"/credentials/"+former+"/otp", "", 200)
	m.own.do(tb, "DELETE", "/v1/users/credentials/"+former, "", 200)
	m.own.do(tb, "POST", users+"/credentials", credentialOf("username", strings.ToLower(m.text("login"))), 201)
	phone := fmt.Sprintf("+4179%07d", len(name)*1234567%10_000_000)
	m.texts = append(m.texts, phone)
	m.own.do(tb, "POST", users+"/credentials", credentialOf("phone", phone), 201)
	var enrolled struct {
		ID   string
		TOTP struct{ Secret string }
	}
	m.own.do(tb, "POST", users+"/factors", object("type", "totp", "name", m.text("factor")), 201).into(tb, &enrolled)
	m.otpSecret = enrolled.TOTP.Secret
	code, err := totp.GenerateCode(m.otpSecret, time.Now())
	if err != nil {
		tb.Fatal(err)
	}
	m.own.do(tb, "POST", users+"/factors/"+enrolled.ID+"/confirm", object("code", code), 200)
	m.own.do(tb, "PATCH", users+"/factors/"+enrolled.ID, object("name", m.text("app")), 200)

	for range 2 { // a customer under two names; the first request has the name in its headers
		body := object("first_name", m.text("first"), "last_name", m.text("last"), "email", m.text("mail")+"@example.ch",
			"phone", fmt.Sprintf("+4176%07d", len(name)*7654321%10_000_000), "date_of_birth", "1971-03-04", "metadata", members{m.text("member"): m.text("value")})
		if m.customer == "" {
			m.customer = admin.with("Idempotency-Key", m.text("key"), "X-Request-ID", m.text("request")).create(tb, "/v1/customers", body)
		} else {
			admin.with("Idempotency-Key", m.text("key"), "X-Request-ID", m.text("request")).do(tb, "PUT", "/v1/customers/"+m.customer, body, 200)
		}
	}
	path := "/v1/customers/" + m.customer
	m.texts = append(m.texts, fmt.Sprintf("+4176%07d", len(name)*7654321%10_000_000))
	number := strings.ToUpper(m.text("Doc"))
	admin.with("Idempotency-Key", m.text("kyckey")).do(tb, "PUT", path+"/kyc", body(tb, members{"documents": []members{{"type": "identity_card", "number": number,
		"expiry_date": "2044-01-01", "country": "CHE"}}}), 200)
	admin.do(tb, "PATCH", path+"/kyc/status", object("kyc_status", "in_review", "reason", m.text("reason")), 200)
	payer := admin.create(tb, "/v1/payers", object("customer_id", m.customer, "name", m.text("payer"), "metadata", members{"note": m.text("payernote")}))
	admin.do(tb, "PUT", "/v1/payers/"+payer, object("name", m.text("payernew")), 200)
	gone := admin.create(tb, "/v1/payers", object("customer_id", m.customer, "name", m.text("payergone")))
	admin.do(tb, "DELETE", "/v1/payers/"+gone, "", 200)
	assigned := []members{{"user_id": advisor.id, "name": m.text("advisorsnote")}, {"user_id": m.user, "name": m.text("ownnote")}}
	task := admin.create(tb, path+"/tasks", body(tb, members{"title": m.text("task"), "category": "sign", "is_urgent": true, "assignees": assigned,
		"description": m.text("describes")}))
	admin.do(tb, "PUT", path+"/tasks/"+task, object("title", m.text("tasknew")), 200)
	gone = admin.create(tb, path+"/tasks", body(tb, members{"title": m.text("taskgone"), "category": "sign", "assignees": assigned}))
	admin.do(tb, "DELETE", path+"/tasks/"+gone, "", 200)

	m.persona = admin.create(tb, "/v1/personas", object("first_name", m.text("pfirst"), "last_name", m.text("plast"), "date_of_birth", "1971-03-04"))
	admin.do(tb, "POST", "/v1/personas/"+m.persona+"/users", object("user_id", m.user), 201)
	other := admin.create(tb, "/v1/personas", object("first_name", "Other", "last_name", "Person", "date_of_birth", "1971-03-05"))
	admin.do(tb, "POST", "/v1/personas/"+m.persona+"/links", object("linked_persona_id", other, "relation", "spouse"), 201)
	gone = admin.create(tb, "/v1/personas", object("first_name", m.text("gonefirst"), "last_name", m.text("gonelast"), "date_of_birth", "1971-03-06"))
	admin.do(tb, "POST", "/v1/personas/"+gone+"/users", object("user_id", m.user), 201)
	admin.do(tb, "DELETE", "/v1/personas/"+gone, "", 200)

	chat := m.own.create(tb, "/v1/chats", body(tb, members{"participants": []string{advisor.id, admin.userID(tb)}}))
	for range 3 { // the others get notifications, and answer
		m.own.with("Idempotency-Key", m.text("chatkey")).do(tb, "POST", "/v1/chats/"+chat+"/messages", object("content", m.text("said")), 201)
		admin.do(tb, "POST", "/v1/chats/"+chat+"/messages", `{"content":"Good morning"}`, 201)
	}
	p.keyed().do(tb, "POST", "/v1/notifications/trigger", body(tb, members{"event": "customer_status_changed", "content": m.text("personal"), "user_ids": []string{m.user}}), 200)
	p.keyed().do(tb, "POST", "/v1/notifications/trigger", body(tb, members{"event": "customer_status_changed", "content": m.text("about"), "customer_id": m.customer,
		"user_ids": []string{advisor.id}}), 200)
	// Requests that say nothing about the records, with the name in the query, in the path and in a value that is rejected.
	admin.do(tb, "GET", "/v1/customers?search.last_name="+url.QueryEscape(m.text("searched")), "", 200)
	_, _ = admin.try("GET", "/v1/customers?sort="+m.text("sorted"), "")
	_, _ = admin.try("GET", "/v1/customers/"+m.text("path"), "")
	_, _ = admin.try("POST", "/v1/customers", object("first_name", m.text("refused"), "email", m.text("noaddress")))
	_, _ = p.client("Authorization", "Bearer "+m.text("token")).try("GET", "/v1/users/me", "")
	return m
}

// An erasure finds what a person has left in every place, also before and after rotations of the master key, and while one runs.
func TestErasure_WithRotations(t *testing.T) {
	work := t.TempDir()
	dir := filepath.Join(work, "data")
	p := start(t, dir)
	kept, before, during, after := livePerson(t, p, "k"), livePerson(t, p, "bb"), livePerson(t, p, "ddd"), livePerson(t, p, "ffff")
	file, key, ledger := filepath.Join(work, "old.backup"), filepath.Join(work, "old.key"), filepath.Join(work, "kontor.erasures")
	expectSuccess(t, run(t, nil, "backup", file, "--data.dir", dir))
	expectSuccess(t, run(t, nil, "key", "export", key, "--data.dir", dir))
	admin := p.admin()
	erased := func(m *lived) {
		t.Helper()
		eraseFully(t, admin, "/v1/customers/"+m.customer)
		eraseFully(t, admin, "/v1/users/"+m.user)
	}
	export := func() string {
		return withoutTime(admin.do(t, "GET", "/v1/customers/"+kept.customer+"/export", "", 200).body)
	}
	exported := export()
	t.Logf("planted %d texts, %d are in the files", len(after.texts), len(after.in(t, dir)))
	erased(before)
	expectSuccess(t, run(t, nil, "key", "rotate", "--data.dir", dir))
	var wait sync.WaitGroup
	wait.Go(func() {
		if o := run(t, nil, "key", "rotate", "--data.dir", dir); o.code != 0 {
			t.Errorf("a rotation beside an erasure: %d %s", o.code, o.stderr)
		}
	})
	erased(during)
	wait.Wait()
	erased(after)
	for _, m := range []*lived{before, during, after} {
		if found := m.in(t, dir); len(found) > 0 {
			t.Errorf("while the server runs, the files hold %v", found)
		}
	}
	if export() != exported {
		t.Error("another customer has changed")
	}
	kept.own.do(t, "GET", "/v1/users/me", "", 200)
	expectSuccess(t, run(t, nil, "privacy", "ledger", ledger, "--data.dir", dir))
	erasedCustomer, keptCustomer := admin.do(t, "GET", "/v1/customers/"+after.customer, "", 200).body, admin.do(t, "GET", "/v1/customers/"+kept.customer, "", 200).body
	if code := p.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, m := range []*lived{before, during, after} {
		if found := m.in(t, dir); len(found) > 0 {
			t.Errorf("after the stop, the files hold %v", found)
		}
	}
	requestIDs := regexp.MustCompile(`"request_id":"[^"]*"`) // the log has them as the client sent them
	for line := range strings.Lines(p.stdout.String() + p.stderr.String()) {
		if strings.Contains(strings.ToLower(requestIDs.ReplaceAllString(line, "")), "qplant") {
			t.Errorf("the log holds %s", line)
		}
	}
	check := func(dir string) {
		t.Helper()
		expectSuccess(t, run(t, nil, "check", "--data.dir", dir))
		expectSuccess(t, runWithInput(t, erasedCustomer, "check", "--record=customers/"+after.customer, "--data.dir", dir))
		expectSuccess(t, runWithInput(t, keptCustomer, "check", "--record=customers/"+kept.customer, "--data.dir", dir))
	}
	check(dir)

	elsewhere := filepath.Join(work, "elsewhere")
	expectSuccess(t, run(t, nil, "restore", file, "--erasures", ledger, "--data.dir", elsewhere))
	expectSuccess(t, run(t, nil, "key", "import", key, "--data.dir", elsewhere))
	restored := start(t, elsewhere)
	admin = restored.admin()
	for _, m := range []*lived{before, during, after} {
		erased(m)
		if found := m.in(t, elsewhere); len(found) > 0 {
			t.Errorf("the restored files hold %v", found)
		}
	}
	if export() != exported {
		t.Error("another customer has changed by the restore")
	}
	expectSuccess(t, run(t, nil, "key", "rotate", "--data.dir", elsewhere))
	restored.stop()
	expectSuccess(t, run(t, nil, "check", "--data.dir", elsewhere))
	again := start(t, elsewhere)
	admin = again.admin()
	if export() != exported {
		t.Error("another customer has changed by a rotation")
	}
	again.stop()
}
