package browser_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"testing"
)

// choosePicture puts a picture into a file field.
func (v *visitor) choosePicture(selector string) {
	v.t.Helper()
	v.eval(fmt.Sprintf(`const bytes = Uint8Array.from(atob(%q), (c) => c.charCodeAt(0));
		const all = new DataTransfer(); all.items.add(new File([bytes], 'passport.png', { type: 'image/png' }));
		const field = document.querySelector(%q); field.files = all.files; field.dispatchEvent(new Event('change', { bubbles: true }))`,
		base64.StdEncoding.EncodeToString(scan(v.t)), selector))
}

// A document is one step with its photo. Until there is one, the customer reads that it is missing, and the reviewer that there is no
// scan.
func TestDocuments_AreOneStepWithTheirPhoto(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	token := s.token(me)
	id := s.waitingCase(token, "Photo", "Fehlt")
	v := signedIn(t, s, look{width: 360, height: 740}, me)
	v.see("A photo is missing")
	v.until(`!document.body.innerText.includes('need nothing from you')`)
	v.goTo("/me/documents")
	v.see("Photo missing")
	v.picture("photo-missing")
	reviewer := signedInAt(t, s, desk, s.newPerson("Advisor"), "/review/"+id)
	reviewer.see("No scan")
	if cases := s.call(s.token(firstAdmin), http.MethodGet, "/v1/kyc/cases?search.ready=true&search.customer_id="+id, nil); cases["total"] != float64(0) {
		t.Error("a case without a scan is ready")
	}

	v.clickText("Add a document")
	v.write(`dialog input[name=number]`, "X1234567")
	v.write(`dialog input[name=expiry_date]`, "01012099")
	v.click(`dialog button[type=submit]`)
	v.see("A photo or scan of the document is missing.")
	v.choosePicture(`dialog .photos input[type=file]`)
	v.see("passport.png")
	v.picture("document-with-photo")
	v.click(`dialog button[type=submit]`)
	v.gone(`dialog`)
	s.addScan(token, id)
	v.open("/me/documents")
	v.until(`document.querySelectorAll('.own-document .files li').length === 2 && !document.body.innerText.includes('Photo missing')`)
	if cases := s.call(s.token(firstAdmin), http.MethodGet, "/v1/kyc/cases?search.ready=true&search.customer_id="+id, nil); cases["total"] != float64(1) {
		t.Error("a case with all scans is not ready")
	}
}

// A verification needs the members of its level: the grounds show them, and the server enforces them.
func TestDocuments_AVerificationNeedsTheMembersOfItsLevel(t *testing.T) {
	s := newServer(t)
	admin := s.token(firstAdmin)
	id := s.call(admin, http.MethodPost, "/v1/customers", map[string]any{"first_name": "No", "last_name": "Birthdate", "email": "no@example.ch"})["id"].(string)
	s.call(admin, http.MethodPut, "/v1/customers/"+id+"/kyc", map[string]any{"documents": []any{
		map[string]any{"type": "passport", "number": "X1", "expiry_date": "2099-01-01", "country": "CHE"}}})
	v := signedInAt(t, s, desk, s.newPerson("Advisor"), "/review/"+id)
	v.until(`document.querySelector('.review-grid')?.dataset.keys === 'on'`)
	v.keys("a")
	v.see("Date of birth: missing")
	v.see("Nationality: missing")
	v.choose(`select[name=level]`, "basic")
	v.write(`textarea[name=reason]`, "Seen in person")
	v.picture("members-missing")
	v.click(`.review-decision button[type=submit]`)
	v.see("Complete the customer’s details first: Date of birth, Nationality")
	if got := s.call(admin, http.MethodGet, "/v1/customers/"+id, nil); got["kyc_status"] == "verified" {
		t.Error("a customer without a date of birth is verified")
	}
}
