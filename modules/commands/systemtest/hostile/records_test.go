package hostile_test

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

const passportBody = `{"verified_at":"2020-01-01T00:00:00Z","documents":[{"type":"passport","number":"P1","expiry_date":"2099-01-01","country":"CHE"}]}`

// Attacks of customers and reviewers on identity records.
func TestHostile_IdentitiesAndLinks(t *testing.T) {
	t.Parallel()
	p := systemtest.Start(t, t.TempDir())
	admin := p.Admin()
	mallory, victim := p.Account(admin, "mallory@example.ch", "Customer"), p.Account(admin, "victim@example.ch", "Customer")
	reviewer, colleague := p.Account(admin, "grace@example.ch", "Advisor"), p.Account(admin, "colleague@example.ch", "Advisor")

	grace := `{"first_name":"Grace","last_name":"Hopper","date_of_birth":"1906-12-09"}`
	persona := admin.Create(t, "/v1/personas", grace)
	admin.Do(t, "POST", "/v1/personas/"+persona+"/users", fmt.Sprintf(`{"user_id":%q}`, reviewer.ID), 201)
	body := func(first, last, born string) string {
		return fmt.Sprintf(`{"first_name":%q,"last_name":%q,"date_of_birth":%q,"nationality":"CHE","email":"someone@example.org"}`, first, last, born)
	}
	verified := func(first, last, born string) string {
		path := "/v1/customers/" + mallory.Create(t, "/v1/customers", body(first, last, born))
		reviewer.Do(t, "PUT", path+"/kyc", passportBody, 200)
		return path
	}
	review := []string{`"kyc_status":"in_review"`, `"verification_level":"none"`}
	one, two, three, four := verified("Ada", "One", "1990-01-01"), verified("Ada", "Two", "1990-01-01"), verified("Ada", "Three", "1990-01-01"), verified("Ada", "Four", "1990-01-01")
	five := verified("Ada", "Five", "1990-01-01")
	self := func(first, last, born string) string {
		return "/v1/customers/" + colleague.Create(t, "/v1/customers", body(first, last, born)) + "/kyc"
	}
	planted := mallory.Create(t, "/v1/personas", `{"first_name":"Mallory","last_name":"Muster","date_of_birth":"1990-01-01"}`)
	mallory.Do(t, "POST", "/v1/personas/"+planted+"/users", fmt.Sprintf(`{"user_id":%q}`, colleague.ID), 201)
	own := "/v1/customers/" + mallory.Create(t, "/v1/customers", body("Mallory", "Muster", "1990-01-01")) + "/kyc/status"
	former := "/v1/customers/" + colleague.Create(t, "/v1/customers", body("Grace", "Hopper", "1906-12-09"))
	colleague.Do(t, "PUT", former, `{"first_name":"Somebody","last_name":"Else"}`, 200)
	accept := "/v1/personas/" + planted + "/users/" + colleague.ID + "/accept"
	second := mallory.Create(t, "/v1/personas", `{"first_name":"Rich","last_name":"Person","date_of_birth":"1950-01-01"}`)
	var trust struct {
		ID string `json:"id"`
	}
	mallory.Do(t, "POST", "/v1/personas/"+planted+"/links", fmt.Sprintf(`{"linked_persona_id":%q,"relation":"authorised_signatory"}`, second), 201).Decode(t, &trust)

	claimed := "/v1/customers/" + mallory.Create(t, "/v1/customers", body("Grace", "Hopper", "1906-12-09")) + "/kyc/status"
	const selfCode = "customers.self_verification"
	pending := `{"kyc_status":"pending"}`
	systemtest.RunAttacks(t, []systemtest.Attack{
		{Name: "another name after the verification", By: mallory.Client, Method: "PUT", Path: one, Body: `{"last_name":"Changed"}`, Status: 200, Contains: review},
		{Name: "another date of birth", By: mallory.Client, Method: "PUT", Path: two, Body: `{"date_of_birth":"1990-01-02"}`, Status: 200, Contains: review},
		{Name: "another nationality", By: mallory.Client, Method: "PUT", Path: three, Body: `{"nationality":"DEU"}`, Status: 200, Contains: review},
		{Name: "another type", By: mallory.Client, Method: "PUT", Path: four, Body: `{"type":"business"}`, Status: 200, Contains: review},
		{Name: "a look-alike letter", By: colleague.Client, Method: "PUT", Path: five, Body: `{"first_name":"\u0410da"}`, Status: 200, Contains: review},
		{Name: "the status with the name", By: mallory.Client, Method: "PUT", Path: two, Body: `{"last_name":"X","kyc_status":"verified","verification_level":"enhanced"}`, Status: 200, Contains: review},
		{Name: "the owner reads old values", By: mallory.Client, Method: "GET", Path: one + "/kyc", Status: 200, Excludes: []string{`"field":"last_name"`}},
		{Name: "a reviewer reads old values", By: colleague.Client, Method: "GET", Path: one + "/kyc", Status: 200,
			Contains: []string{`"from":"verified","to":"in_review"`, `{"field":"last_name","from":"One","to":"Changed"}`}},
		{Name: "a reviewer becomes the customer they verified", By: reviewer.Client, Method: "PUT", Path: five, Body: grace, Status: 403, Code: selfCode},
		{Name: "with the names exchanged", By: reviewer.Client, Method: "PUT", Path: five, Body: `{"first_name":"HOPPER","last_name":"Gräce","date_of_birth":null}`, Status: 403, Code: selfCode},
		{Name: "by the e-mail address", By: reviewer.Client, Method: "PUT", Path: five, Body: `{"email":"GRACE@example.ch"}`, Status: 403, Code: selfCode},
		{Name: "a reviewer decides about themselves", By: reviewer.Client, Method: "PATCH", Path: self("Grace", "Hopper", "1906-12-09") + "/status", Body: pending, Status: 403, Code: selfCode},
		{Name: "with accents", By: reviewer.Client, Method: "PATCH", Path: self("Gràce", "Höpper", "1906-12-09") + "/status", Body: pending, Status: 403, Code: selfCode},
		{Name: "with the names exchanged in the record", By: reviewer.Client, Method: "PATCH", Path: self("Hopper", "Grace", "1906-12-09") + "/status", Body: pending, Status: 403, Code: selfCode},
		{Name: "with Cyrillic letters", By: reviewer.Client, Method: "PATCH", Path: self("Grасе", "Норреr", "1906-12-09") + "/status", Body: pending, Status: 403, Code: selfCode},
		{Name: "by verified_at", By: reviewer.Client, Method: "PUT", Path: self("Grace", "Hopper", "1906-12-09"), Body: passportBody, Status: 403, Code: selfCode},
		{Name: "under a former name of the record", By: reviewer.Client, Method: "PATCH", Path: former + "/kyc/status", Body: pending, Status: 403, Code: selfCode},
		{Name: "by verified_at under a former name", By: reviewer.Client, Method: "PUT", Path: former + "/kyc", Body: passportBody, Status: 403, Code: selfCode},
		{Name: "unlinked by a colleague", By: colleague.Client, Method: "DELETE", Path: "/v1/personas/" + persona + "/users/" + reviewer.ID, Status: 200},
		{Name: "after the persona was unlinked", By: reviewer.Client, Method: "PATCH", Path: self("Grace", "Hopper", "1906-12-09") + "/status", Body: pending, Status: 403, Code: selfCode},
		{Name: "a customer accepts a link on behalf of the reviewer", By: mallory.Client, Method: "POST", Path: accept, Status: 403},
		{Name: "another customer accepts the link", By: victim.Client, Method: "POST", Path: accept, Status: 403},
		{Name: "a pending link grants no access", By: victim.Client, Method: "GET", Path: "/v1/personas/" + planted, Status: 403},
		{Name: "a pending link does not block a review", By: colleague.Client, Method: "PATCH", Path: own, Body: pending, Status: 200},
		{Name: "what a customer claims excludes no reviewer", By: reviewer.Client, Method: "PATCH", Path: claimed, Body: pending, Status: 200},
		{Name: "a signatory accepts their own link", By: mallory.Client, Method: "POST", Path: "/v1/personas/" + second + "/links/" + trust.ID + "/accept", Status: 403},
		{Name: "a decision by the customer", By: mallory.Client, Method: "PATCH", Path: own, Body: `{"kyc_status":"in_review"}`, Status: 403},
	})
}

// Attacks of a customer on memory and disk space.
func TestHostile_LargeRecords(t *testing.T) {
	t.Parallel()
	p := systemtest.Start(t, t.TempDir(), "--quotas.records_per_user", "90", "--rate_limits.concurrent_per_caller", "8")
	admin := p.Admin()
	mallory, victim := p.Account(admin, "mallory@example.ch", "Customer"), p.Account(admin, "victim@example.ch", "Advisor")
	filler := func(n int) string { return strings.Repeat("x", n) }
	chat := func(metadata int) string {
		return fmt.Sprintf(`{"participants":[%q],"metadata":{"support":true,"x":%q}}`, victim.ID, filler(metadata))
	}
	first := mallory.Create(t, "/v1/chats", chat(0))
	message := func(metadata int) string { return fmt.Sprintf(`{"content":"a","metadata":{"x":%q}}`, filler(metadata)) }
	systemtest.RunAttacks(t, []systemtest.Attack{
		{Name: "a chat with large metadata", By: mallory.Client, Method: "POST", Path: "/v1/chats", Body: chat(5000), Status: 400, Code: "common.invalid_input", Contains: []string{`"metadata"`}},
		{Name: "a message with large metadata", By: mallory.Client, Method: "POST", Path: "/v1/chats/" + first + "/messages", Body: message(5000), Status: 400, Contains: []string{`"metadata"`}},
		{Name: "SQL in a cursor", By: mallory.Client, Method: "GET", Path: "/v1/chats?before=%27%20OR%201=1", Status: 400, Contains: []string{`"before"`}},
		{Name: "a limit above the maximum", By: mallory.Client, Method: "GET", Path: "/v1/chats?limit=1001", Status: 400},
		{Name: "a cursor with a negative time", By: mallory.Client, Method: "GET", Path: "/v1/chats?before=-1." + first, Status: 400},
		{Name: "a cursor in the future", By: victim.Client, Method: "GET", Path: "/v1/chats?before=9999999999999." + first + "&limit=1", Status: 200, Contains: []string{first}},
	})
	full := fmt.Sprintf(`{"content":%q,"metadata":{"x":%q}}`, strings.Repeat("€", 10_000), filler(4000))
	for range 35 {
		id := mallory.Create(t, "/v1/chats", chat(4000))
		mallory.Do(t, "POST", "/v1/chats/"+id+"/messages", full, 201)
	}
	for _, path := range []string{"/v1/chats", "/v1/chats?limit=1000"} {
		var chats []any
		if mallory.Do(t, "GET", path, "", 200).Decode(t, &chats); len(chats) != 36 {
			t.Errorf("%s: got %d chats, want all 36", path, len(chats))
		}
	}
	for range 40 {
		if got, err := mallory.Try("POST", "/v1/chats/"+first+"/messages", message(0)); err != nil || got.Status == 409 {
			break
		}
	}
	systemtest.RunAttacks(t, []systemtest.Attack{
		{Name: "a message beyond the quota", By: mallory.Client, Method: "POST", Path: "/v1/chats/" + first + "/messages", Body: message(0), Status: 409, Code: "common.quota_exceeded",
			Contains: []string{`"limit":"quotas.records_per_user"`, `"max":90`}},
		{Name: "a chat beyond the quota", By: mallory.Client, Method: "POST", Path: "/v1/chats", Body: chat(0), Status: 409, Code: "common.quota_exceeded"},
		{Name: "a persona beyond the quota", By: mallory.Client, Method: "POST", Path: "/v1/personas", Body: `{"first_name":"A","last_name":"B","date_of_birth":"1990-01-01"}`, Status: 409, Code: "common.quota_exceeded"},
		{Name: "a customer beyond the quota", By: mallory.Client, Method: "POST", Path: "/v1/customers", Body: `{"first_name":"A","last_name":"B","email":"a@example.ch"}`, Status: 409, Code: "common.quota_exceeded"},
		{Name: "another user has a quota of their own", By: victim.Client, Method: "POST", Path: "/v1/chats/" + first + "/messages", Body: message(0), Status: 201},
	})
	holdResponses(t, p, mallory)
}

// maxMemory is the peak memory that the server may use in this test, in kB.
const maxMemory = 400_000

// holdResponses opens many connections that request a large response and do not read it. The server must serve other
// requests, and must not exceed maxMemory.
func holdResponses(t *testing.T, p *systemtest.Process, mallory systemtest.Account) {
	t.Helper()
	token := mallory.Headers[len(mallory.Headers)-1]
	var wait sync.WaitGroup
	for range 60 {
		wait.Go(func() {
			line := ""
			testenv.Wait(t, "a response that is not 503", func() bool { // a busy machine rejects requests for a while
				line = holdResponse(t, p, token)
				return !strings.Contains(line, " 503 ")
			})
			if !strings.Contains(line, " 200 ") && !strings.Contains(line, " 429 ") {
				t.Errorf("got %q", line)
			}
		})
	}
	wait.Wait()
	p.Admin().Do(t, "GET", "/v1/customers", "", 200)
	peak := systemtest.PeakKiB(t, p.Cmd.Process.Pid)
	if peak > maxMemory && !systemtest.Raced() {
		t.Errorf("the peak memory is %d KiB, want at most %d", peak, maxMemory)
	}
	t.Logf("peak memory %d KiB", peak)
}

// holdResponse requests a large response, reads its first line, and leaves the rest unread until the test ends.
func holdResponse(t *testing.T, p *systemtest.Process, token string) (line string) {
	conn, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
	if err != nil {
		t.Error(err)
		return ""
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(testenv.Limit())); err != nil {
		t.Error(err)
		return ""
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Error(err)
		return ""
	}
	fmt.Fprintf(conn, "GET /v1/chats HTTP/1.1\r\nHost: kontor\r\nAuthorization: %s\r\n\r\n", token)
	if line, err = bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil {
		t.Error(err)
	}
	return line
}
