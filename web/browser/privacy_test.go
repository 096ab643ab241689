package browser_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"kontor/store/storetest"
)

// A hold prevents the erasure, and the erasure works without it. The export downloads a file.
func TestPrivacy_HoldExportAndErasureOfACustomer(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	customer := s.newCustomer(token, "Reto", "Vogelsang")
	v := signedInAt(t, s, desk, me, "/customers/"+customer+"/privacy")
	v.expect("404") // There is no hold.
	v.expect("409")
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

// An end of the relationship far in the past waits for a second person, who confirms or rejects it.
func TestPrivacy_ASecondPersonConfirmsAnEnd(t *testing.T) {
	s := newServer(t)
	me, colleague := s.newPerson("Administrator"), s.newPerson("Administrator")
	token := s.token(me)
	customer := s.newCustomer(token, "Reto", "Former")
	for _, status := range []string{"pending", "in_review", "verified"} {
		s.call(token, http.MethodPatch, "/v1/customers/"+customer+"/kyc/status", map[string]any{"kyc_status": status})
	}
	path := "/v1/customers/" + customer + "/relationship"
	s.stop() // all evidence is of last year
	for table, column := range map[string]string{"kyc_changes": "changed_at", "customers": "verified_at"} {
		storetest.Tamper(t, filepath.Join(s.own.dir, "kontor.db"), "UPDATE "+table+" SET "+column+" = "+column+" - 31536000000")
	}
	storetest.Tamper(t, filepath.Join(s.own.dir, "kontor.db"), "UPDATE customers SET created_at = verified_at")
	s.start()
	day := time.Now().UTC().AddDate(0, 0, -200).Format(time.DateOnly)
	first := signedInAt(t, s, desk, me, "/customers/"+customer+"/privacy")
	first.expect("404") // There is no hold.
	propose := func() {
		first.clickText("End the relationship")
		first.see("An end more than 90 days ago waits")
		first.eval(fmt.Sprintf(`const f = document.querySelector('dialog[open] input[name=ended_at]'); f.value = %q; f.dispatchEvent(new Event('input', { bubbles: true }))`, day))
		first.submit(`dialog[open] input[name=ended_at]`)
		first.see("waits for a second person")
		first.until(`document.querySelector('.proposed-end') && !document.querySelector('.confirm-end')`)
	}
	propose()
	second := signedInAt(t, s, look{width: 390, height: 844}, colleague, "/customers/"+customer+"/privacy")
	second.expect("404")
	second.see("Proposed by")
	second.picture("end-second")
	second.clickText("Reject the end")
	second.gone(`.proposed-end`)
	if got := s.call(token, http.MethodGet, path, nil); got["ended_at"] != nil || got["proposed_end"] != nil {
		t.Errorf("after the rejection: %v", got)
	}
	first.open("/customers/" + customer + "/privacy")
	propose()
	second.open("/customers/" + customer + "/privacy")
	second.clickText("Confirm the end")
	second.gone(`.proposed-end`)
	if got := s.call(token, http.MethodGet, path, nil); got["ended_at"] != day+"T00:00:00.000Z" {
		t.Errorf("after the confirmation: %v", got)
	}
}
