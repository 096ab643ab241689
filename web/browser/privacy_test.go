package browser_test

import (
	"net/http"
	"testing"
)

// A hold prevents the erasure, and the erasure works without it. The export downloads a file.
func TestPrivacy_HoldExportAndErasureOfACustomer(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	customer := s.newCustomer(token, "Reto", "Vogelsang")
	v := signedIn(t, s, desk, me)
	v.expect("404") // There is no hold.
	v.expect("409")
	v.goTo("/customers/" + customer + "/privacy")
	v.eval(`window.offered = []; const click = HTMLAnchorElement.prototype.click;
		HTMLAnchorElement.prototype.click = function () { if (this.download) window.offered.push(this.download); else click.call(this); }`)
	v.clickText("Export data")
	v.until(`window.offered.length === 1 && window.offered[0].endsWith('.json')`)

	v.clickText("Set a legal hold")
	v.write(`dialog[open] input[name=reason]`, "Case 2026/17")
	v.submit(`dialog[open] input[name=reason]`)
	v.see("Case 2026/17")
	erase := func() {
		v.clickText("Erase")
		v.until(`document.querySelector('dialog[open] button.danger:disabled')`) // Until the user confirms that they have checked.
		v.click(`dialog[open] input[name=understood]`)
		v.click(`dialog[open] button.danger`)
	}
	erase()
	v.until(`document.querySelector('dialog[open] [role=alert]')`)
	v.click(`dialog[open] header button`)
	v.clickText(v.text("discard.do")) // The confirmation in the form counts as input.
	v.gone(`dialog[open]`)
	v.clickText("Lift the hold")
	v.click(`dialog[open] .actions button.danger`)
	v.see("Set a legal hold")
	erase()
	v.see("The data of this person has been erased.")
	v.click(`dialog[open] .actions button`)
	v.until(`document.querySelector('h1').innerText === 'Erased customer' && !document.querySelector('main .danger')`)
	if got := s.call(token, http.MethodGet, "/v1/customers/"+customer, nil)["last_name"]; got == "Vogelsang" {
		t.Error("the name is still there")
	}
}
