package browser_test

import (
	"fmt"
	"net/http"
	"testing"
)

// waitingCase creates a customer with a passport whose verification waits for a reviewer.
func (s *testServer) waitingCase(token, first, last string) (id string) {
	s.t.Helper()
	id = s.newCustomer(token, first, last)
	s.call(token, http.MethodPut, "/v1/customers/"+id+"/kyc", map[string]any{"documents": []any{
		map[string]any{"type": "passport", "number": "X" + last, "expiry_date": "2099-01-01", "country": "CHE"}}})
	return id
}

// reviewer counts the clicks and keys of a visitor.
type reviewer struct {
	*visitor
	inputs int
}

func (r *reviewer) click(selector string) { r.t.Helper(); r.inputs++; r.visitor.click(selector) }

func (r *reviewer) press(text string) { r.t.Helper(); r.inputs++; r.clickText(text) }

// typeKeys sends keys one by one.
func (r *reviewer) typeKeys(keys ...string) {
	r.t.Helper()
	for _, key := range keys {
		r.inputs++
		r.keys(key)
	}
}

const enter = "\r"

// shown waits until the decision of another case than the given one can be made, and returns its path.
func (r *reviewer) shown(after string) (path string) {
	r.t.Helper()
	r.until(fmt.Sprintf(`location.pathname !== %q && (location.pathname === '/review' ||
		location.pathname === '/review/' + document.querySelector('.review-grid')?.dataset.case && document.querySelector('.review-decision [type=radio]')
			&& document.querySelector('.review-grid').dataset.keys === 'on' && document.querySelector('.evidence .files li'))`, after))
	return ask[string](r.visitor, `location.pathname`)
}

// decide opens the scan of the case and types the keys of a decision.
func (r *reviewer) decide(keys ...string) {
	r.t.Helper()
	r.typeKeys("o")
	r.until(`document.querySelector('dialog[open] .sheet canvas')`)
	r.typeKeys(keys[0])
	r.gone(`dialog[open]`)
	r.typeKeys(keys[1:]...)
}

// A reviewer takes 30 cases into review and decides them, some with a reason from a template, by fewer than 100 clicks and keys.
func TestReview_ThirtyCasesTakeLessThanAHundredInputs(t *testing.T) {
	s := newServer(t)
	admin := s.token(firstAdmin)
	const cases = 30
	for i := range cases {
		s.addScan(admin, s.waitingCase(admin, "Case", fmt.Sprintf("Number%02d", i)))
	}
	r := &reviewer{visitor: signedIn(t, s, desk, s.newPerson("Advisor"))}
	r.open("/review")
	r.until(fmt.Sprintf(`document.querySelectorAll('table.data tbody tr').length === %d`, cases))
	r.click(`table.data thead input[type=checkbox]`)
	r.press("Take into review")
	r.seeMessage("30 cases changed")
	r.click(`.start-review`)
	for i, path := 0, r.shown("/review"); i < cases; i++ {
		if i == 0 && ask[bool](r.visitor, `Boolean(document.querySelector('.review-decision :checked'))`) {
			t.Error("a decision is preselected")
		}
		switch {
		case i%10 == 4:
			r.decide("r", "1", enter)
		case i%10 == 7:
			r.decide("n", "2", enter)
		default:
			r.decide("a", enter)
		}
		path = r.shown(path)
	}
	r.see("No open cases")
	r.answers(admin, "/v1/customers?limit=1&search.kyc_status=verified", "total", 24)
	if r.inputs >= 100 {
		t.Errorf("%d clicks and keys, want fewer than 100", r.inputs)
	}
	t.Logf("%d clicks and keys for %d cases", r.inputs, cases)
	for status, want := range map[string]float64{"verified": 24, "rejected": 3, "action_required": 3} {
		page := s.call(admin, http.MethodGet, "/v1/customers?limit=1&search.kyc_status="+status, nil)
		if page["total"] != want {
			t.Errorf("%v customers are %s, want %v", page["total"], status, want)
		}
		id := page["data"].([]any)[0].(map[string]any)["id"].(string)
		reason := s.call(admin, http.MethodGet, "/v1/customers/"+id+"/kyc", nil)["history"].([]any)[0].(map[string]any)["reason"].(string)
		if (reason == "") != (status == "verified") {
			t.Errorf("the reason of %s is %q", status, reason)
		}
	}
}

// A level that the documents do not support needs a reason, and the level enhanced a second person, who confirms it by keys.
func TestReview_ASecondPersonConfirms(t *testing.T) {
	s := newServer(t)
	admin := s.token(firstAdmin)
	id := s.waitingCase(admin, "Two", "Persons")
	first := signedInAt(t, s, desk, s.newPerson("Advisor"), "/review/"+id)
	first.until(`document.querySelector('.review-grid')?.dataset.keys === 'on'`)
	first.keys("a")
	first.until(`document.querySelector('select[name=level]').value === 'basic'`) // as the documents say
	first.see("Proof of address: missing")
	first.choose(`select[name=level]`, "enhanced")
	first.see("A second person must confirm this decision")
	first.see("Only reviewers read this reason")
	first.clickText("Propose to a second person")
	first.see("Enter a reason.")
	first.write(`textarea[name=reason]`, "PEP, funds documented")
	first.choose(`select[name=level]`, "standard")
	first.until(`document.querySelector('textarea[name=reason]').value === ''`) // it was not meant for the customer
	first.choose(`select[name=level]`, "enhanced")
	first.until(`document.querySelector('textarea[name=customer_reason]')`) // the fields of a proposal
	first.write(`textarea[name=reason]`, "Funds documented")
	first.write(`textarea[name=customer_reason]`, "Thank you for your documents.")
	first.clickText("Propose to a second person")
	first.seeMessage("The decision waits for a second person.") // ten seconds later
	first.open("/review/" + id)
	first.see("You have proposed this decision")
	first.until(`document.querySelector('.pending-decision') && !document.querySelector('.confirm-decision')`)

	s.call(admin, http.MethodPut, "/v1/customers/"+id+"/kyc", map[string]any{"documents": []any{
		map[string]any{"type": "other", "number": "Added later", "country": "CHE"}}})
	second := signedInAt(t, s, desk, s.newPerson("Advisor"), "/review?second_person=true")
	second.see("Waits for a second person")
	second.click(`.start-review`)
	second.see("Funds documented")
	second.see("Thank you for your documents.")
	second.see("Something has changed since the proposal")
	second.see("1 document is new.")
	second.until(`[...document.querySelectorAll('.evidence li')].filter((one) => one.innerText.includes('New since the proposal'))
		.map((one) => one.innerText.includes('Added later')).join() === 'true'`)
	second.picture("review-second")
	second.until(`document.querySelector('.confirm-decision') && document.querySelector('.review-grid').dataset.keys === 'on'`)
	second.keys("a")
	second.until(`document.activeElement.matches('.confirm-decision')`)
	second.keys(enter)
	second.until(`location.pathname === '/review'`)
	second.answers(admin, "/v1/customers/"+id, "verification_level", "enhanced")
	second.open("/customers/" + id + "/kyc")
	second.see("Text for the customer: Thank you for your documents.")
	if got := s.call(admin, http.MethodGet, "/v1/customers/"+id, nil); got["verification_level"] != "enhanced" {
		t.Errorf("the customer has the level %v", got["verification_level"])
	}
	first.expect("409") // The proposer still sees it open.
	first.expect("412")
	first.clickText("Take back")
	first.until(`document.querySelector('[role=alert], .toast.bad')`)
}

// Two reviewers open the same case. The second one sees who works on it, and a decision that comes too late changes nothing.
func TestReview_NothingIsDecidedTwice(t *testing.T) {
	s := newServer(t)
	admin := s.token(firstAdmin)
	id := s.waitingCase(admin, "One", "Decision")
	one, two := signedIn(t, s, desk, s.newPerson("Advisor")), signedIn(t, s, desk, s.newPerson("Advisor"))
	one.open("/review/" + id)
	one.until(`document.querySelector('.review-decision [type=radio]')`)
	one.keys("t")
	one.see("Give back")
	two.open("/review/" + id)
	two.see("works on this case")
	two.see("Take over")
	two.until(`document.querySelector('.review-grid')?.dataset.keys === 'on'`)
	one.until(`document.querySelector('.review-grid')?.dataset.keys === 'on'`)
	one.keys("r")
	one.keys("1")
	one.until(`document.querySelector('textarea[name=reason]')?.value`)
	one.keys(enter)
	one.until(`location.pathname === '/review'`)
	one.answers(admin, "/v1/customers/"+id, "kyc_status", "rejected")
	two.expect("412")
	two.expect("409")
	two.keys("n")
	two.keys("1")
	two.until(`document.querySelector('textarea[name=reason]')?.value`)
	two.keys(enter)
	two.until(`document.querySelector('[role=alert], .toast.bad')`)
	if got := s.call(admin, http.MethodGet, "/v1/customers/"+id, nil); got["kyc_status"] != "rejected" {
		t.Errorf("the customer is %v, want rejected", got["kyc_status"])
	}
	// A customer has no queue.
	customer := signedIn(t, s, desk, s.newPerson("Customer"))
	customer.until(`!document.querySelector('nav a[href="/review"]')`)
}

// The keys can be switched off, and letters in a text field are text.
func TestReview_KeysCanBeSwitchedOff(t *testing.T) {
	s := newServer(t)
	id := s.waitingCase(s.token(firstAdmin), "With", "Keys")
	v := signedInAt(t, s, desk, s.newPerson("Advisor"), "/review/"+id)
	v.until(`document.querySelector('.review-grid')?.dataset.keys === 'on'`)
	v.keys("n")
	v.until(`document.querySelector('[value=action_required]:checked')`)
	v.write(`textarea[name=reason]`, "arnjk?")
	v.until(`document.querySelector('[value=action_required]:checked') && document.querySelector('textarea[name=reason]').value === 'arnjk?'`)
	v.eval(`document.activeElement.blur()`)
	v.keys("?")
	v.click(`dialog[open] input[type=checkbox]`)
	v.click(`dialog[open] header button`)
	v.gone(`dialog[open]`)
	v.keys("a")
	v.painted()
	v.until(`document.querySelector('[value=action_required]:checked')`)
}
