package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// member is a user with a session in the built program.
type member struct {
	*client
	id, email string
}

// account registers a user with an e-mail address, confirms it by the code in the outbox, and assigns a role.
func (p *process) account(admin *client, email, role string) member {
	p.tb.Helper()
	const password = "four words in a row"
	var made struct {
		UserID      string `json:"user_id"`
		AccessToken string `json:"access_token"`
		Credential  struct {
			ID string `json:"id"`
		} `json:"credential"`
	}
	p.client("X-API-Key", apiKey).do(p.tb, "POST", "/v1/users/initiate-registration", fmt.Sprintf(
		`{"credential_type":"email","credential_value":%q,"password":%q,"terms_accepted":true,"privacy_policy_accepted":true}`, email, password), 201).into(p.tb, &made)
	var sent struct {
		Data []struct {
			Text string `json:"text"`
		} `json:"data"`
	}
	admin.do(p.tb, "GET", "/v1/notifications/deliveries?limit=1&sort=-created_at&search.to="+email, "", 200).into(p.tb, &sent)
	code := sixDigits(sent.Data[0].Text)
	p.client("Authorization", "Bearer "+made.AccessToken).do(p.tb, "PUT", "/v1/users/"+made.UserID+"/credentials/"+made.Credential.ID+"/validate",
		fmt.Sprintf(`{"otp":%q}`, code), 200)
	admin.do(p.tb, "PUT", "/v1/users/"+made.UserID+"/roles", fmt.Sprintf(`{"roles":[%q]}`, role), 200)
	return member{client: p.signIn(email, password), id: made.UserID, email: email}
}

// sixDigits matches a code in a text.
func sixDigits(text string) string {
	for _, word := range strings.Fields(text) {
		word = strings.Trim(word, ".,:;")
		if _, err := strconv.Atoi(word); err == nil && len(word) == 6 {
			return word
		}
	}
	return ""
}

// make creates a record and returns its id.
func (a member) make(tb testing.TB, path, body string) string {
	tb.Helper()
	var made struct {
		ID string `json:"id"`
	}
	a.do(tb, "POST", path, body, 201).into(tb, &made)
	return made.ID
}

const passportBody = `{"verified_at":"2020-01-01T00:00:00Z","documents":[{"type":"passport","number":"P1","expiry_date":"2099-01-01","country":"CHE"}]}`

// TestHostile_IdentitiesAndLinks manipulates records of persons as customers and reviewers.
func TestHostile_IdentitiesAndLinks(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	admin := p.admin()
	mallory, victim := p.account(admin, "mallory@example.ch", "Customer"), p.account(admin, "victim@example.ch", "Customer")
	reviewer, colleague := p.account(admin, "grace@example.ch", "Advisor"), p.account(admin, "colleague@example.ch", "Advisor")
	staff := member{client: admin}

	grace := `{"first_name":"Grace","last_name":"Hopper","date_of_birth":"1906-12-09"}`
	persona := staff.make(t, "/v1/personas", grace)
	admin.do(t, "POST", "/v1/personas/"+persona+"/users", fmt.Sprintf(`{"user_id":%q}`, reviewer.id), 201)
	body := func(first, last, born string) string {
		return fmt.Sprintf(`{"first_name":%q,"last_name":%q,"date_of_birth":%q,"nationality":"CHE","email":"someone@example.org"}`, first, last, born)
	}
	verified := func(first, last, born string) string {
		path := "/v1/customers/" + mallory.make(t, "/v1/customers", body(first, last, born))
		reviewer.do(t, "PUT", path+"/kyc", passportBody, 200)
		return path
	}
	review := []string{`"kyc_status":"in_review"`, `"verification_level":"none"`}
	one, two, three, four := verified("Ada", "One", "1990-01-01"), verified("Ada", "Two", "1990-01-01"), verified("Ada", "Three", "1990-01-01"), verified("Ada", "Four", "1990-01-01")
	five := verified("Ada", "Five", "1990-01-01")
	self := func(first, last, born string) string {
		return "/v1/customers/" + mallory.make(t, "/v1/customers", body(first, last, born)) + "/kyc"
	}
	planted := mallory.make(t, "/v1/personas", `{"first_name":"Mallory","last_name":"Muster","date_of_birth":"1990-01-01"}`)
	mallory.do(t, "POST", "/v1/personas/"+planted+"/users", fmt.Sprintf(`{"user_id":%q}`, colleague.id), 201)
	own := "/v1/customers/" + mallory.make(t, "/v1/customers", body("Mallory", "Muster", "1990-01-01")) + "/kyc/status"
	former := "/v1/customers/" + mallory.make(t, "/v1/customers", body("Grace", "Hopper", "1906-12-09"))
	mallory.do(t, "PUT", former, `{"first_name":"Somebody","last_name":"Else"}`, 200)
	accept := "/v1/personas/" + planted + "/users/" + colleague.id + "/accept"
	second := mallory.make(t, "/v1/personas", `{"first_name":"Rich","last_name":"Person","date_of_birth":"1950-01-01"}`)
	var trust struct {
		ID string `json:"id"`
	}
	mallory.do(t, "POST", "/v1/personas/"+planted+"/links", fmt.Sprintf(`{"linked_persona_id":%q,"relation":"authorised_signatory"}`, second), 201).into(t, &trust)

	const selfCode = "customers.self_verification"
	pending := `{"kyc_status":"pending"}`
	repel(t, []attack{
		{name: "another name after the verification", by: mallory.client, method: "PUT", path: one, body: `{"last_name":"Changed"}`, status: 200, contains: review},
		{name: "another birth", by: mallory.client, method: "PUT", path: two, body: `{"date_of_birth":"1990-01-02"}`, status: 200, contains: review},
		{name: "another nationality", by: mallory.client, method: "PUT", path: three, body: `{"nationality":"DEU"}`, status: 200, contains: review},
		{name: "another type", by: mallory.client, method: "PUT", path: four, body: `{"type":"business"}`, status: 200, contains: review},
		{name: "a look-alike letter", by: colleague.client, method: "PUT", path: five, body: `{"first_name":"\u0410da"}`, status: 200, contains: review},
		{name: "the status with the name", by: mallory.client, method: "PUT", path: two, body: `{"last_name":"X","kyc_status":"verified","verification_level":"enhanced"}`, status: 200, contains: review},
		{name: "old values for their owner", by: mallory.client, method: "GET", path: one + "/kyc", status: 200, excludes: []string{`"field":"last_name"`}},
		{name: "old values for reviewers", by: colleague.client, method: "GET", path: one + "/kyc", status: 200,
			contains: []string{`"from":"verified","to":"in_review"`, `{"field":"last_name","from":"One","to":"Changed"}`}},
		{name: "a reviewer becomes the customer they verified", by: reviewer.client, method: "PUT", path: five, body: grace, status: 403, code: selfCode},
		{name: "with the names turned", by: reviewer.client, method: "PUT", path: five, body: `{"first_name":"HOPPER","last_name":"Gräce","date_of_birth":null}`, status: 403, code: selfCode},
		{name: "by the e-mail", by: reviewer.client, method: "PUT", path: five, body: `{"email":"GRACE@example.ch"}`, status: 403, code: selfCode},
		{name: "a reviewer decides about themselves", by: reviewer.client, method: "PATCH", path: self("Grace", "Hopper", "1906-12-09") + "/status", body: pending, status: 403, code: selfCode},
		{name: "with accents", by: reviewer.client, method: "PATCH", path: self("Gràce", "Höpper", "1906-12-09") + "/status", body: pending, status: 403, code: selfCode},
		{name: "with the names turned in the record", by: reviewer.client, method: "PATCH", path: self("Hopper", "Grace", "1906-12-09") + "/status", body: pending, status: 403, code: selfCode},
		{name: "with Cyrillic letters", by: reviewer.client, method: "PATCH", path: self("Grасе", "Норреr", "1906-12-09") + "/status", body: pending, status: 403, code: selfCode},
		{name: "by verified_at", by: reviewer.client, method: "PUT", path: self("Grace", "Hopper", "1906-12-09"), body: passportBody, status: 403, code: selfCode},
		{name: "under a name that the record had", by: reviewer.client, method: "PATCH", path: former + "/kyc/status", body: pending, status: 403, code: selfCode},
		{name: "by verified_at under a name that it had", by: reviewer.client, method: "PUT", path: former + "/kyc", body: passportBody, status: 403, code: selfCode},
		{name: "unlinked by a colleague", by: colleague.client, method: "DELETE", path: "/v1/personas/" + persona + "/users/" + reviewer.id, status: 200},
		{name: "is the same person still", by: reviewer.client, method: "PATCH", path: self("Grace", "Hopper", "1906-12-09") + "/status", body: pending, status: 403, code: selfCode},
		{name: "a customer accepts for the reviewer", by: mallory.client, method: "POST", path: accept, status: 403},
		{name: "another customer does", by: victim.client, method: "POST", path: accept, status: 403},
		{name: "a pending link gives no rights", by: victim.client, method: "GET", path: "/v1/personas/" + planted, status: 403},
		{name: "a pending link is no veto", by: colleague.client, method: "PATCH", path: own, body: pending, status: 200},
		{name: "a signatory accepts themselves", by: mallory.client, method: "POST", path: "/v1/personas/" + second + "/links/" + trust.ID + "/accept", status: 403},
		{name: "a decision by the customer", by: mallory.client, method: "PATCH", path: own, body: `{"kyc_status":"in_review"}`, status: 403},
	})
}

// TestHostile_RecordsThatTakeSpace tries to exhaust memory and disk space as one customer.
func TestHostile_RecordsThatTakeSpace(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "--quotas.records_per_user", "90", "--rate_limits.concurrent_per_caller", "8")
	admin := p.admin()
	mallory, victim := p.account(admin, "mallory@example.ch", "Customer"), p.account(admin, "victim@example.ch", "Customer")
	filler := func(n int) string { return strings.Repeat("x", n) }
	chat := func(metadata int) string {
		return fmt.Sprintf(`{"participants":[%q],"metadata":{"support":true,"x":%q}}`, victim.id, filler(metadata))
	}
	first := mallory.make(t, "/v1/chats", chat(0))
	message := func(metadata int) string { return fmt.Sprintf(`{"content":"a","metadata":{"x":%q}}`, filler(metadata)) }
	repel(t, []attack{
		{name: "a chat with large metadata", by: mallory.client, method: "POST", path: "/v1/chats", body: chat(5000), status: 400, code: "common.invalid_input", contains: []string{`"metadata"`}},
		{name: "a message with large metadata", by: mallory.client, method: "POST", path: "/v1/chats/" + first + "/messages", body: message(5000), status: 400, contains: []string{`"metadata"`}},
		{name: "a place that is none", by: mallory.client, method: "GET", path: "/v1/chats?before=%27%20OR%201=1", status: 400, contains: []string{`"before"`}},
		{name: "more chats than there are", by: mallory.client, method: "GET", path: "/v1/chats?limit=1001", status: 400},
		{name: "a page before all time", by: mallory.client, method: "GET", path: "/v1/chats?before=-1." + first, status: 400},
		{name: "a place in the future", by: victim.client, method: "GET", path: "/v1/chats?before=9999999999999." + first + "&limit=1", status: 200, contains: []string{first}},
	})
	full := fmt.Sprintf(`{"content":%q,"metadata":{"x":%q}}`, strings.Repeat("€", 10_000), filler(4000))
	for range 35 {
		id := mallory.make(t, "/v1/chats", chat(4000))
		mallory.do(t, "POST", "/v1/chats/"+id+"/messages", full, 201)
	}
	for _, path := range []string{"/v1/chats", "/v1/chats?limit=1000"} {
		if got := mallory.do(t, "GET", path, "", 200); len(got.body) > 1<<20 || !strings.Contains(got.header.Get("Link"), `rel="next"`) {
			t.Errorf("%s: got %d bytes with Link %q, want at most 1 MiB and the way to the rest", path, len(got.body), got.header.Get("Link"))
		}
	}
	refused := mallory.client
	for range 40 {
		if got, err := mallory.try("POST", "/v1/chats/"+first+"/messages", message(0)); err != nil || got.status == 409 {
			break
		}
	}
	repel(t, []attack{
		{name: "a message beyond the quota", by: refused, method: "POST", path: "/v1/chats/" + first + "/messages", body: message(0), status: 409, code: "common.quota_exceeded",
			contains: []string{`"limit":"quotas.records_per_user"`, `"max":90`}},
		{name: "a chat beyond it", by: refused, method: "POST", path: "/v1/chats", body: chat(0), status: 409, code: "common.quota_exceeded"},
		{name: "a persona beyond it", by: refused, method: "POST", path: "/v1/personas", body: `{"first_name":"A","last_name":"B","date_of_birth":"1990-01-01"}`, status: 409, code: "common.quota_exceeded"},
		{name: "a customer beyond it", by: refused, method: "POST", path: "/v1/customers", body: `{"first_name":"A","last_name":"B","email":"a@example.ch"}`, status: 409, code: "common.quota_exceeded"},
		{name: "others still have room", by: victim.client, method: "POST", path: "/v1/chats/" + first + "/messages", body: message(0), status: 201},
	})
	holdAnswers(t, p, mallory)
}

// mostMemory is the permitted peak memory of the program in this test, in kB.
const mostMemory = 400_000

// holdAnswers opens many connections that request a large response and do not read it. Other clients are served, and the
// program keeps little memory.
func holdAnswers(t *testing.T, p *process, mallory member) {
	t.Helper()
	token := mallory.headers[len(mallory.headers)-1]
	var wait sync.WaitGroup
	for range 60 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			fmt.Fprintf(conn, "GET /v1/chats HTTP/1.1\r\nHost: kontor\r\nAuthorization: %s\r\n\r\n", token)
			line, err := bufio.NewReaderSize(conn, 16).ReadString('\n')
			if err != nil || !strings.Contains(line, " 200 ") && !strings.Contains(line, " 429 ") {
				t.Errorf("got %q, %v", line, err)
			}
		})
	}
	wait.Wait()
	p.admin().do(t, "GET", "/v1/customers", "", 200)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	kB, err := strconv.Atoi(strings.Fields(peak)[0])
	if err != nil || kB > mostMemory {
		t.Errorf("the program had %d kB in memory, want at most %d (%v)", kB, mostMemory, err)
	}
	t.Logf("%d kB at the peak", kB)
}
