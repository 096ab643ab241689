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

const passportBody = `{"verified_at":"2020-01-01T00:00:00Z","documents":[{"type":"passport","number":"P1","expiry_date":"2099-01-01","country":"CHE"}]}`

// Attacks of customers and reviewers on identity records.
func TestHostile_IdentitiesAndLinks(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir())
	admin := p.admin()
	mallory, victim := p.account(admin, "mallory@example.ch", "Customer"), p.account(admin, "victim@example.ch", "Customer")
	reviewer, colleague := p.account(admin, "grace@example.ch", "Advisor"), p.account(admin, "colleague@example.ch", "Advisor")

	grace := `{"first_name":"Grace","last_name":"Hopper","date_of_birth":"1906-12-09"}`
	persona := admin.create(t, "/v1/personas", grace)
	admin.do(t, "POST", "/v1/personas/"+persona+"/users", fmt.Sprintf(`{"user_id":%q}`, reviewer.id), 201)
	body := func(first, last, born string) string {
		return fmt.Sprintf(`{"first_name":%q,"last_name":%q,"date_of_birth":%q,"nationality":"CHE","email":"someone@example.org"}`, first, last, born)
	}
	verified := func(first, last, born string) string {
		path := "/v1/customers/" + mallory.create(t, "/v1/customers", body(first, last, born))
		reviewer.do(t, "PUT", path+"/kyc", passportBody, 200)
		return path
	}
	review := []string{`"kyc_status":"in_review"`, `"verification_level":"none"`}
	one, two, three, four := verified("Ada", "One", "1990-01-01"), verified("Ada", "Two", "1990-01-01"), verified("Ada", "Three", "1990-01-01"), verified("Ada", "Four", "1990-01-01")
	five := verified("Ada", "Five", "1990-01-01")
	self := func(first, last, born string) string {
		return "/v1/customers/" + mallory.create(t, "/v1/customers", body(first, last, born)) + "/kyc"
	}
	planted := mallory.create(t, "/v1/personas", `{"first_name":"Mallory","last_name":"Muster","date_of_birth":"1990-01-01"}`)
	mallory.do(t, "POST", "/v1/personas/"+planted+"/users", fmt.Sprintf(`{"user_id":%q}`, colleague.id), 201)
	own := "/v1/customers/" + mallory.create(t, "/v1/customers", body("Mallory", "Muster", "1990-01-01")) + "/kyc/status"
	former := "/v1/customers/" + mallory.create(t, "/v1/customers", body("Grace", "Hopper", "1906-12-09"))
	mallory.do(t, "PUT", former, `{"first_name":"Somebody","last_name":"Else"}`, 200)
	accept := "/v1/personas/" + planted + "/users/" + colleague.id + "/accept"
	second := mallory.create(t, "/v1/personas", `{"first_name":"Rich","last_name":"Person","date_of_birth":"1950-01-01"}`)
	var trust struct {
		ID string `json:"id"`
	}
	mallory.do(t, "POST", "/v1/personas/"+planted+"/links", fmt.Sprintf(`{"linked_persona_id":%q,"relation":"authorised_signatory"}`, second), 201).into(t, &trust)

	const selfCode = "customers.self_verification"
	pending := `{"kyc_status":"pending"}`
	runAttacks(t, []attack{
		{name: "another name after the verification", by: mallory.client, method: "PUT", path: one, body: `{"last_name":"Changed"}`, status: 200, contains: review},
		{name: "another date of birth", by: mallory.client, method: "PUT", path: two, body: `{"date_of_birth":"1990-01-02"}`, status: 200, contains: review},
		{name: "another nationality", by: mallory.client, method: "PUT", path: three, body: `{"nationality":"DEU"}`, status: 200, contains: review},
		{name: "another type", by: mallory.client, method: "PUT", path: four, body: `{"type":"business"}`, status: 200, contains: review},
		{name: "a look-alike letter", by: colleague.client, method: "PUT", path: five, body: `{"first_name":"\u0410da"}`, status: 200, contains: review},
		{name: "the status with the name", by: mallory.client, method: "PUT", path: two, body: `{"last_name":"X","kyc_status":"verified","verification_level":"enhanced"}`, status: 200, contains: review},
		{name: "the owner reads old values", by: mallory.client, method: "GET", path: one + "/kyc", status: 200, excludes: []string{`"field":"last_name"`}},
		{name: "a reviewer reads old values", by: colleague.client, method: "GET", path: one + "/kyc", status: 200,
			contains: []string{`"from":"verified","to":"in_review"`, `{"field":"last_name","from":"One","to":"Changed"}`}},
		{name: "a reviewer becomes the customer they verified", by: reviewer.client, method: "PUT", path: five, body: grace, status: 403, code: selfCode},
		{name: "with the names exchanged", by: reviewer.client, method: "PUT", path: five, body: `{"first_name":"HOPPER","last_name":"Gräce","date_of_birth":null}`, status: 403, code: selfCode},
		{name: "by the e-mail address", by: reviewer.client, method: "PUT", path: five, body: `{"email":"GRACE@example.ch"}`, status: 403, code: selfCode},
		{name: "a reviewer decides about themselves", by: reviewer.client, method: "PATCH", path: self("Grace", "Hopper", "1906-12-09") + "/status", body: pending, status: 403, code: selfCode},
		{name: "with accents", by: reviewer.client, method: "PATCH", path: self("Gràce", "Höpper", "1906-12-09") + "/status", body: pending, status: 403, code: selfCode},
		{name: "with the names exchanged in the record", by: reviewer.client, method: "PATCH", path: self("Hopper", "Grace", "1906-12-09") + "/status", body: pending, status: 403, code: selfCode},
		{name: "with Cyrillic letters", by: reviewer.client, method: "PATCH", path: self("Grасе", "Норреr", "1906-12-09") + "/status", body: pending, status: 403, code: selfCode},
		{name: "by verified_at", by: reviewer.client, method: "PUT", path: self("Grace", "Hopper", "1906-12-09"), body: passportBody, status: 403, code: selfCode},
		{name: "under a former name of the record", by: reviewer.client, method: "PATCH", path: former + "/kyc/status", body: pending, status: 403, code: selfCode},
		{name: "by verified_at under a former name", by: reviewer.client, method: "PUT", path: former + "/kyc", body: passportBody, status: 403, code: selfCode},
		{name: "unlinked by a colleague", by: colleague.client, method: "DELETE", path: "/v1/personas/" + persona + "/users/" + reviewer.id, status: 200},
		{name: "after the persona was unlinked", by: reviewer.client, method: "PATCH", path: self("Grace", "Hopper", "1906-12-09") + "/status", body: pending, status: 403, code: selfCode},
		{name: "a customer accepts a link on behalf of the reviewer", by: mallory.client, method: "POST", path: accept, status: 403},
		{name: "another customer accepts the link", by: victim.client, method: "POST", path: accept, status: 403},
		{name: "a pending link grants no access", by: victim.client, method: "GET", path: "/v1/personas/" + planted, status: 403},
		{name: "a pending link does not block a review", by: colleague.client, method: "PATCH", path: own, body: pending, status: 200},
		{name: "a signatory accepts their own link", by: mallory.client, method: "POST", path: "/v1/personas/" + second + "/links/" + trust.ID + "/accept", status: 403},
		{name: "a decision by the customer", by: mallory.client, method: "PATCH", path: own, body: `{"kyc_status":"in_review"}`, status: 403},
	})
}

// Attacks of a customer on memory and disk space.
func TestHostile_LargeRecords(t *testing.T) {
	t.Parallel()
	p := start(t, t.TempDir(), "--quotas.records_per_user", "90", "--rate_limits.concurrent_per_caller", "8")
	admin := p.admin()
	mallory, victim := p.account(admin, "mallory@example.ch", "Customer"), p.account(admin, "victim@example.ch", "Customer")
	filler := func(n int) string { return strings.Repeat("x", n) }
	chat := func(metadata int) string {
		return fmt.Sprintf(`{"participants":[%q],"metadata":{"support":true,"x":%q}}`, victim.id, filler(metadata))
	}
	first := mallory.create(t, "/v1/chats", chat(0))
	message := func(metadata int) string { return fmt.Sprintf(`{"content":"a","metadata":{"x":%q}}`, filler(metadata)) }
	runAttacks(t, []attack{
		{name: "a chat with large metadata", by: mallory.client, method: "POST", path: "/v1/chats", body: chat(5000), status: 400, code: "common.invalid_input", contains: []string{`"metadata"`}},
		{name: "a message with large metadata", by: mallory.client, method: "POST", path: "/v1/chats/" + first + "/messages", body: message(5000), status: 400, contains: []string{`"metadata"`}},
		{name: "SQL in a cursor", by: mallory.client, method: "GET", path: "/v1/chats?before=%27%20OR%201=1", status: 400, contains: []string{`"before"`}},
		{name: "a limit above the maximum", by: mallory.client, method: "GET", path: "/v1/chats?limit=1001", status: 400},
		{name: "a cursor with a negative time", by: mallory.client, method: "GET", path: "/v1/chats?before=-1." + first, status: 400},
		{name: "a cursor in the future", by: victim.client, method: "GET", path: "/v1/chats?before=9999999999999." + first + "&limit=1", status: 200, contains: []string{first}},
	})
	full := fmt.Sprintf(`{"content":%q,"metadata":{"x":%q}}`, strings.Repeat("€", 10_000), filler(4000))
	for range 35 {
		id := mallory.create(t, "/v1/chats", chat(4000))
		mallory.do(t, "POST", "/v1/chats/"+id+"/messages", full, 201)
	}
	for _, path := range []string{"/v1/chats", "/v1/chats?limit=1000"} {
		if got := mallory.do(t, "GET", path, "", 200); len(got.body) > 1<<20 || !strings.Contains(got.header.Get("Link"), `rel="next"`) {
			t.Errorf("%s: got %d bytes with Link %q, want at most 1 MiB and a link to the next page", path, len(got.body), got.header.Get("Link"))
		}
	}
	for range 40 {
		if got, err := mallory.try("POST", "/v1/chats/"+first+"/messages", message(0)); err != nil || got.status == 409 {
			break
		}
	}
	runAttacks(t, []attack{
		{name: "a message beyond the quota", by: mallory.client, method: "POST", path: "/v1/chats/" + first + "/messages", body: message(0), status: 409, code: "common.quota_exceeded",
			contains: []string{`"limit":"quotas.records_per_user"`, `"max":90`}},
		{name: "a chat beyond the quota", by: mallory.client, method: "POST", path: "/v1/chats", body: chat(0), status: 409, code: "common.quota_exceeded"},
		{name: "a persona beyond the quota", by: mallory.client, method: "POST", path: "/v1/personas", body: `{"first_name":"A","last_name":"B","date_of_birth":"1990-01-01"}`, status: 409, code: "common.quota_exceeded"},
		{name: "a customer beyond the quota", by: mallory.client, method: "POST", path: "/v1/customers", body: `{"first_name":"A","last_name":"B","email":"a@example.ch"}`, status: 409, code: "common.quota_exceeded"},
		{name: "another user has a quota of their own", by: victim.client, method: "POST", path: "/v1/chats/" + first + "/messages", body: message(0), status: 201},
	})
	holdResponses(t, p, mallory)
}

// maxMemory is the peak memory that the server may use in this test, in kB.
const maxMemory = 400_000

// holdResponses opens many connections that request a large response and do not read it. The server must serve other
// requests, and must not exceed maxMemory.
func holdResponses(t *testing.T, p *process, mallory account) {
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
	if err != nil || kB > maxMemory {
		t.Errorf("the peak memory is %d kB, want at most %d (%v)", kB, maxMemory, err)
	}
	t.Logf("peak memory %d kB", kB)
}
