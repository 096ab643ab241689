package interference_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kontor/server/servertest"
	"kontor/store/storetest"
	"kontor/store/testenv"
)

// The work of the others. A history has some of these steps in any order, and ends with closing.
var (
	moves         = request("victim", "PUT", "/v1/customers/<victim.customer>", `{"address":{"city":"Chur","country":"CH"}}`)
	uploads       = request("victim", "POST", victimKYC+"/documents/<victim.document>/files", picture).sending("image/png")
	downloads     = request("reviewer", "GET", "/v1/files/<victim.file>/content", "")
	proposesLevel = request("reviewer", "PATCH", victimKYC+"/status", `{"verification_level":"enhanced","reason":"Seen."}`).keeping("decision", "pending_decision.id")
	confirmsLevel = request("second", "POST", victimKYC+"/decisions/<decision>/confirm", "")
	walksIn       = request("reviewer", "POST", "/v1/customers", `{"first_name":"Lea","last_name":"Neu","email":"lea@example.ch","phone":"+41791234567",
		"metadata":{"external_id":"BANK-1002"}}`).keeping("walkin", "id")
	erasesLeaver  = request(admin, "POST", "/v1/users/<leaver.user>/erasure", `{"reason":"request"}`).keeping("erasure", "id")
	answersVictim = request("reviewer", "POST", "/v1/inbox/<victim.chat>/messages", `{"content":"Good morning"}`)
	writesToBank  = request("victim", "POST", "/v1/chats/<victim.chat>/messages", `{"content":"A question"}`)
	notifies      = request("reviewer", "POST", "/v1/customers/<victim.customer>/notify", `{"text":"Please call.","user_ids":["<victim.user>"]}`)
	asksFor       = request("bystander", "POST", "/v1/customers/<bystander.customer>/erasure", `{"reason":"request"}`)
)

const victimKYC = "/v1/customers/<victim.customer>/kyc"

// imports imports a customer with an external id.
func imports(onDuplicate, externalID, first string) []step {
	row := first + ",Echt," + first + "@example.ch,+41791112233,1980-02-02," + externalID
	return []step{
		request("reviewer", "POST", "/v1/customers/import?on_duplicate="+onDuplicate,
			"first_name,last_name,email,phone,date_of_birth,metadata.external_id\n"+row+"\n").sending("text/csv").keeping("import", "id"),
		runImports,
		request("reviewer", "GET", "/v1/imports/<import>", ""),
	}
}

// decides makes a person decide about a hit.
func decides(by, hit, decision string) step {
	return request(by, "POST", "/v1/screening/hits/<"+hit+">/decide", fmt.Sprintf(`{"decision":%q,"reason":"Compared."}`, decision))
}

var work = []step{
	moves, uploads, encloses("victim", "message"), downloads, proposesLevel, confirmsLevel, walksIn, answersVictim, writesToBank, notifies, asksFor, screen,
	decides("reviewer", "bystander.hit", "confirmed"), decides("second", "bystander.hit", "confirmed"), decides("reviewer", "attacker.hit", "confirmed"),
}

// closing is done at the end of each history.
var closing = slices.Concat(
	[]step{moves, uploads, encloses("victim", "message"), downloads, proposesLevel, confirmsLevel, walksIn},
	imports("skip", "BANK-1001", "paula"), imports("update", "BANK-1001", "petra"),
	[]step{decides("reviewer", "bystander.hit", "dismissed"), screen, decides("second", "attacker.hit", "confirmed"), erasesLeaver})

// play plays a history, without the steps of the attacker unless attack is true. It returns what the others see: the answers to their
// steps, and then all that they can read.
func (b *bank) play(history []step, attack bool) (seen []view) {
	b.Helper()
	for _, s := range history {
		switch {
		case !s.isAttack():
			b.server.Clock.Advance(time.Second) // so that no two things happen at the same moment
			seen = append(seen, b.see(s, b.do(s)))
		case attack:
			b.do(s)
		}
	}
	for _, s := range observed(b.server.Table()) {
		seen = append(seen, b.see(s, b.send(s)))
	}
	for i, event := range b.streamed() {
		seen = append(seen, b.see(step{by: "victim", does: fmt.Sprintf("victim: event %d of the stream", i+1)}, event))
	}
	return seen
}

// differences returns what the others see otherwise because of an attack.
func differences(calm, attacked []view) (all []string) {
	for i := range max(len(calm), len(attacked)) {
		if d := difference(at(calm, i), at(attacked, i)); d != "" && !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}

func at(views []view, i int) (v view) {
	if i < len(views) {
		v = views[i]
	}
	return v
}

// proposal is the first step of the histories of findings: a decision waits for a second person.
var proposal = decides("reviewer", "attacker.hit", "confirmed")

// findings are attacks that have succeeded once. Each is tried for certain, between proposal and closing.
var findings = []struct {
	name   string
	attack []step
}{
	{"none: two equal banks show the same", nil},
	{"A1: the addresses of the staff make each of them the customer", []step{
		change("<attacker.customer>", map[string]any{"email": emailOf("reviewer")}),
		change("<attacker.customer>", map[string]any{"email": emailOf("second")}),
		change("<attacker.customer>", map[string]any{"email": emailOf(admin)}),
	}},
	{"A2: the external id of another customer receives their data", []step{
		change("<attacker.customer>", map[string]any{"metadata": map[string]any{"external_id": "BANK-1001"}}),
	}},
	{"B1: uploads that do not end take the places of all others", []step{hold}},
	{"B4: the address of a user prevents the erasure of the user", []step{
		change("<attacker.customer>", map[string]any{"email": emailOf("leaver")}),
	}},
	{"B5: another name ends the decision about a hit", []step{
		change("<attacker.customer>", map[string]any{"first_name": "Hans", "last_name": "Neu"}),
	}},
}

const headline = "%d answers to the others differ (- without the attack, + with it):\n%s"

func TestInterference_NotByAFormerAttack(t *testing.T) {
	calm := openBank(t).play(slices.Concat([]step{proposal}, closing), false)
	for _, f := range findings {
		t.Run(f.name, func(t *testing.T) {
			found := differences(calm, openBank(t).play(slices.Concat([]step{proposal}, f.attack, closing), true))
			if len(found) > 0 {
				t.Errorf(headline, len(found), strings.Join(found[:min(len(found), 8)], "\n"))
			}
		})
	}
}

// The statements of a reviewer's lists, and their work, do not depend on how many records an attacker has made with the address
// of the reviewer. A5: each of them was a parameter of the statement.
func TestInterference_NotByManyRecords(t *testing.T) {
	statements := storetest.RecordStatements(t)
	b := openBank(t)
	read := func() {
		for _, path := range []string{"/v1/screening/hits", "/v1/kyc/cases", "/v1/customers", "/v1/tasks", "/v1/search?q=Muster", "/v1/inbox"} {
			b.do(request("reviewer", "GET", path, ""))
		}
	}
	const records = 40
	b.do(flood(records, emailOf("bystander")))
	read()
	before := statements.Sorted()
	b.do(flood(records, emailOf("reviewer")))
	read()
	for _, statement := range statements.Sorted() {
		sent := strings.HasPrefix(strings.TrimSpace(statement), "UPDATE notifications SET sent_at") // a job marks what streams have sent
		if !sent && !slices.Contains(before, statement) {
			t.Errorf("after %d records with the address of the reviewer, their lists need another statement: %.300s", records, statement)
		}
	}
}

// Whatever the attacker sends, in whatever history.
func TestInterference_NotByAnyHistory(t *testing.T) {
	testenv.Checks(t, 1, 30, 500)
	f := surfaceOf(t, servertest.Start(t))
	rapid.Check(t, func(rt *rapid.T) {
		s := &scope{TB: t, rt: rt}
		defer s.end()
		var history []step
		for range rapid.IntRange(4, 16).Draw(rt, "length") {
			history = append(history, rapid.OneOf(rapid.SampledFrom(work), f.attack(), f.attack()).Draw(rt, "step"))
		}
		history = append(history, closing...)
		found := differences(openBank(s).play(history, false), openBank(s).play(history, true))
		if len(found) > 0 {
			rt.Fatalf(headline, len(found), strings.Join(found[:min(len(found), 3)], "\n"))
		}
	})
}

// scope is the test of one history: its servers end with it.
type scope struct {
	testing.TB
	rt   *rapid.T
	ends []func()
}

func (s *scope) Cleanup(f func())                  { s.ends = append(s.ends, f) }
func (s *scope) Errorf(format string, args ...any) { s.rt.Errorf(format, args...) }
func (s *scope) Fatalf(format string, args ...any) { s.rt.Fatalf(format, args...) }
func (s *scope) Fatal(args ...any)                 { s.rt.Fatal(args...) }
func (s *scope) Error(args ...any)                 { s.rt.Error(args...) }

func (s *scope) end() {
	for _, f := range slices.Backward(s.ends) {
		f()
	}
}
