package erasure_test

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
	"kontor/modules/commands/systemtest"
)

// lived is a person who has used everything that leaves something behind.
type lived struct {
	planted
	customer, user, persona string
	email, otpSecret        string
	own                     *systemtest.Client
}

// livePerson stores texts about a person that [plantPerson] does not store: former addresses, removed records, failed
// registrations and sign-ins, factors, messages to others about the person, and texts of requests.
func livePerson(tb testing.TB, p *systemtest.Process, name string) *lived {
	tb.Helper()
	m := &lived{planted: planted{name: name}}
	admin := p.Admin()
	advisor := p.Register(admin, "advisor-of-"+name+"@example.ch")
	admin.Do(tb, "PUT", "/v1/users/"+advisor.ID+"/roles", `{"roles":["Advisor"]}`, 200)
	m.email = m.text("Login") + "@example.ch"
	account := p.Register(admin, m.email)
	m.user = account.ID
	admin.Do(tb, "PUT", "/v1/users/"+m.user+"/roles", `{"roles":["Customer"]}`, 200)
	anonymous := p.Client()
	for range 2 { // a wrong password, an unknown name, and a registration with an address that is taken
		anonymous.Do(tb, "POST", "/authenticate", systemtest.Object("user_id", m.email, "password", m.text("wrongpw")), 401)
	}
	anonymous.Do(tb, "POST", "/authenticate", systemtest.Object("user_id", m.text("typed")+"@example.ch", "password", systemtest.CustomerPassword), 401)
	_, _ = p.Keyed().Try("POST", "/v1/users/initiate-registration", body(tb, members{"credential_type": "email", "credential_value": m.email,
		"password": systemtest.CustomerPassword, "display_name": m.text("taken"), "terms_accepted": true, "privacy_policy_accepted": true}))
	_, _ = p.Keyed().Try("POST", "/v1/users/initiate-recovery", systemtest.Object("credential_value", m.email))

	var tokens struct {
		AccessToken string `json:"access_token"`
	}
	device := p.Client("X-Device-ID", m.text("device"), "User-Agent", m.text("agent"))
	device.Do(tb, "POST", "/authenticate", systemtest.Object("user_id", m.email, "password", systemtest.CustomerPassword), 200).Decode(tb, &tokens)
	m.own = device.With("Authorization", "Bearer "+tokens.AccessToken)
	users := "/v1/users/" + m.user
	m.own.Do(tb, "PATCH", users, systemtest.Object("display_name", m.text("former")), 200)
	m.own.Do(tb, "PATCH", users, systemtest.Object("display_name", m.text("shown")), 200)
	former := m.own.Create(tb, users+"/credentials", systemtest.CredentialOf("email", m.text("former")+"@example.ch"))
	m.own.Do(tb, "POST", users+"/credentials/"+former+"/otp", "", 200)
	m.own.Do(tb, "DELETE", "/v1/users/credentials/"+former, "", 200)
	m.own.Do(tb, "POST", users+"/credentials", systemtest.CredentialOf("username", strings.ToLower(m.text("login"))), 201)
	phone := fmt.Sprintf("+4179%07d", len(name)*1234567%10_000_000)
	m.texts = append(m.texts, phone)
	m.own.Do(tb, "POST", users+"/credentials", systemtest.CredentialOf("phone", phone), 201)
	var enrolled struct {
		ID   string
		TOTP struct{ Secret string }
	}
	m.own.Do(tb, "POST", users+"/factors", systemtest.Object("type", "totp", "name", m.text("factor"), "password", systemtest.CustomerPassword), 201).Decode(tb, &enrolled)
	m.otpSecret = enrolled.TOTP.Secret
	code, err := totp.GenerateCode(m.otpSecret, time.Now())
	if err != nil {
		tb.Fatal(err)
	}
	m.own.Do(tb, "POST", users+"/factors/"+enrolled.ID+"/confirm", systemtest.Object("code", code), 200)
	m.own.Do(tb, "PATCH", users+"/factors/"+enrolled.ID, systemtest.Object("name", m.text("app")), 200)

	for range 2 { // a customer under two names; the first request has the name in its headers
		body := systemtest.Object("first_name", m.text("first"), "last_name", m.text("last"), "email", m.text("mail")+"@example.ch",
			"phone", fmt.Sprintf("+4176%07d", len(name)*7654321%10_000_000), "date_of_birth", "1971-03-04", "metadata", members{m.text("member"): m.text("value")})
		if m.customer == "" {
			m.customer = admin.With("Idempotency-Key", m.text("key"), "X-Request-ID", m.text("request")).Create(tb, "/v1/customers", body)
		} else {
			admin.With("Idempotency-Key", m.text("key"), "X-Request-ID", m.text("request")).Do(tb, "PUT", "/v1/customers/"+m.customer, body, 200)
		}
	}
	path := "/v1/customers/" + m.customer
	m.texts = append(m.texts, fmt.Sprintf("+4176%07d", len(name)*7654321%10_000_000))
	number := strings.ToUpper(m.text("Doc"))
	admin.With("Idempotency-Key", m.text("kyckey")).Do(tb, "PUT", path+"/kyc", body(tb, members{"documents": []members{{"type": "identity_card", "number": number,
		"expiry_date": "2044-01-01", "country": "CHE"}}}), 200)
	admin.Do(tb, "PATCH", path+"/kyc/status", systemtest.Object("kyc_status", "in_review", "reason", m.text("reason")), 200)
	payer := admin.Create(tb, "/v1/payers", systemtest.Object("customer_id", m.customer, "name", m.text("payer"), "metadata", members{"note": m.text("payernote")}))
	admin.Do(tb, "PUT", "/v1/payers/"+payer, systemtest.Object("name", m.text("payernew")), 200)
	gone := admin.Create(tb, "/v1/payers", systemtest.Object("customer_id", m.customer, "name", m.text("payergone")))
	admin.Do(tb, "DELETE", "/v1/payers/"+gone, "", 200)
	assigned := []members{{"user_id": advisor.ID, "name": m.text("advisorsnote")}, {"user_id": m.user, "name": m.text("ownnote")}}
	task := admin.Create(tb, path+"/tasks", body(tb, members{"title": m.text("task"), "category": "sign", "is_urgent": true, "assignees": assigned,
		"description": m.text("describes")}))
	admin.Do(tb, "PUT", path+"/tasks/"+task, systemtest.Object("title", m.text("tasknew")), 200)
	gone = admin.Create(tb, path+"/tasks", body(tb, members{"title": m.text("taskgone"), "category": "sign", "assignees": assigned}))
	admin.Do(tb, "DELETE", path+"/tasks/"+gone, "", 200)

	m.persona = admin.Create(tb, "/v1/personas", systemtest.Object("first_name", m.text("pfirst"), "last_name", m.text("plast"), "date_of_birth", "1971-03-04"))
	admin.Do(tb, "POST", "/v1/personas/"+m.persona+"/users", systemtest.Object("user_id", m.user), 201)
	other := admin.Create(tb, "/v1/personas", systemtest.Object("first_name", "Other", "last_name", "Person", "date_of_birth", "1971-03-05"))
	admin.Do(tb, "POST", "/v1/personas/"+m.persona+"/links", systemtest.Object("linked_persona_id", other, "relation", "spouse"), 201)
	gone = admin.Create(tb, "/v1/personas", systemtest.Object("first_name", m.text("gonefirst"), "last_name", m.text("gonelast"), "date_of_birth", "1971-03-06"))
	admin.Do(tb, "POST", "/v1/personas/"+gone+"/users", systemtest.Object("user_id", m.user), 201)
	admin.Do(tb, "DELETE", "/v1/personas/"+gone, "", 200)

	chat := m.own.Create(tb, "/v1/chats", body(tb, members{"participants": []string{advisor.ID, admin.UserID(tb)}}))
	for range 3 { // the others get notifications, and answer
		m.own.With("Idempotency-Key", m.text("chatkey")).Do(tb, "POST", "/v1/chats/"+chat+"/messages", systemtest.Object("content", m.text("said")), 201)
		admin.Do(tb, "POST", "/v1/chats/"+chat+"/messages", `{"content":"Good morning"}`, 201)
	}
	p.Keyed().Do(tb, "POST", "/v1/notifications/trigger", body(tb, members{"event": "customer_status_changed", "content": m.text("personal"), "user_ids": []string{m.user}}), 200)
	p.Keyed().Do(tb, "POST", "/v1/notifications/trigger", body(tb, members{"event": "customer_status_changed", "content": m.text("about"), "customer_id": m.customer,
		"user_ids": []string{advisor.ID}}), 200)
	// Requests that say nothing about the records, with the name in the query, in the path and in a value that is rejected.
	admin.Do(tb, "GET", "/v1/customers?search.last_name="+url.QueryEscape(m.text("searched")), "", 200)
	_, _ = admin.Try("GET", "/v1/customers?sort="+m.text("sorted"), "")
	_, _ = admin.Try("GET", "/v1/customers/"+m.text("path"), "")
	_, _ = admin.Try("POST", "/v1/customers", systemtest.Object("first_name", m.text("refused"), "email", m.text("noaddress")))
	_, _ = p.Client("Authorization", "Bearer "+m.text("token")).Try("GET", "/v1/users/me", "")
	return m
}

// An erasure finds what a person has left in every place, also before and after rotations of the master key, and while one runs.
func TestErasure_WithRotations(t *testing.T) {
	work := t.TempDir()
	dir := filepath.Join(work, "data")
	p := systemtest.Start(t, dir)
	kept, before, during, after := livePerson(t, p, "k"), livePerson(t, p, "bb"), livePerson(t, p, "ddd"), livePerson(t, p, "ffff")
	file, key, ledger := filepath.Join(work, "old.backup"), filepath.Join(work, "old.key"), filepath.Join(work, "kontor.erasures")
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "backup", file, "--data.dir", dir))
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "export", key, "--data.dir", dir))
	admin := p.Admin()
	erased := func(m *lived) {
		t.Helper()
		eraseFully(t, admin, "/v1/customers/"+m.customer)
		eraseFully(t, admin, "/v1/users/"+m.user)
	}
	export := func() string {
		return withoutTime(admin.Do(t, "GET", "/v1/customers/"+kept.customer+"/export", "", 200).Body)
	}
	exported := export()
	t.Logf("planted %d texts, %d are in the files", len(after.texts), len(after.in(t, dir)))
	erased(before)
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "rotate", "--data.dir", dir))
	var wait sync.WaitGroup
	wait.Go(func() {
		if o := systemtest.Run(t, nil, "key", "rotate", "--data.dir", dir); o.Code != 0 {
			t.Errorf("a rotation beside an erasure: %d %s", o.Code, o.Stderr)
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
	kept.own.Do(t, "GET", "/v1/users/me", "", 200)
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "privacy", "ledger", ledger, "--data.dir", dir))
	erasedCustomer, keptCustomer := admin.Do(t, "GET", "/v1/customers/"+after.customer, "", 200).Body, admin.Do(t, "GET", "/v1/customers/"+kept.customer, "", 200).Body
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, m := range []*lived{before, during, after} {
		if found := m.in(t, dir); len(found) > 0 {
			t.Errorf("after the stop, the files hold %v", found)
		}
	}
	requestIDs := regexp.MustCompile(`"request_id":"[^"]*"`) // the log has them as the client sent them
	for line := range strings.Lines(p.Stdout.String() + p.Stderr.String()) {
		if strings.Contains(strings.ToLower(requestIDs.ReplaceAllString(line, "")), "qplant") {
			t.Errorf("the log holds %s", line)
		}
	}
	check := func(dir string) {
		t.Helper()
		systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))
		systemtest.ExpectSuccess(t, systemtest.RunWithInput(t, erasedCustomer, "check", "--record=customers/"+after.customer, "--data.dir", dir))
		systemtest.ExpectSuccess(t, systemtest.RunWithInput(t, keptCustomer, "check", "--record=customers/"+kept.customer, "--data.dir", dir))
	}
	check(dir)

	elsewhere := filepath.Join(work, "elsewhere")
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "restore", file, "--erasures", ledger, "--data.dir", elsewhere))
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "import", key, "--data.dir", elsewhere))
	restored := systemtest.Start(t, elsewhere)
	admin = restored.Admin()
	for _, m := range []*lived{before, during, after} {
		erased(m)
		if found := m.in(t, elsewhere); len(found) > 0 {
			t.Errorf("the restored files hold %v", found)
		}
	}
	if export() != exported {
		t.Error("another customer has changed by the restore")
	}
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "rotate", "--data.dir", elsewhere))
	restored.Stop()
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", elsewhere))
	again := systemtest.Start(t, elsewhere)
	admin = again.Admin()
	if export() != exported {
		t.Error("another customer has changed by a rotation")
	}
	again.Stop()
}
