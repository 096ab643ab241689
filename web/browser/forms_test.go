package browser_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestCustomers_ShowErrorsBesideTheFields(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, desk, s.newPerson("Administrator"), "/customers?new=1")
	v.expect("400")
	v.write(`input[name=first_name]`, "Noëmi")
	v.write(`input[name="address.country"]`, "QQ")
	v.click(`dialog button[type=submit]`)
	for _, field := range []string{"last_name", "email", "address.country"} {
		v.until(fmt.Sprintf(`document.getElementById(document.getElementsByName(%q)[0].getAttribute('aria-describedby')?.split(' ')[0])?.innerText`, field))
	}
	v.until(`document.activeElement.name === 'last_name'`) // The first wrong field has the focus.
	v.write(`input[name=last_name]`, "Häfliger")
	v.write(`input[name=email]`, "noemi@example.ch")
	v.write(`input[name="address.country"]`, "CH")
	v.click(`dialog button[type=submit]`)
	v.until(`document.querySelector('h1').innerText === 'Noëmi Häfliger' && !document.querySelector('dialog')`)

	v.click(`.tabs a[href$="/kyc"]`)
	v.see("No documents")
	v.clickText("Add document")
	v.write(`dialog input[name=number]`, "X1234567")
	v.eval(`const f = document.querySelector('dialog input[name=expiry_date]'); f.value = '2099-01-31'; f.dispatchEvent(new Event('input', { bubbles: true }))`)
	v.click(`dialog button[type=submit]`)
	v.see("X1234567")
	v.see("Pending")
	v.clickText("Decide")
	v.click(`dialog input[value=action_required]`)
	v.write(`dialog textarea[name=reason]`, "The passport was seen")
	v.click(`dialog button[type=submit]`)
	v.see("The passport was seen") // The reason is in the history.
	v.see("Action required")
}

// A press closes the suggestions of the field that had the focus; the pressed button must not move away below the pointer.
func TestCustomers_AreSentWhileSuggestionsAreOpen(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, desk, s.newPerson("Administrator"), "/customers?new=1")
	v.expect("400")
	v.write(`input[name=first_name]`, "Noëmi")
	v.write(`input[name=last_name]`, "Häfliger")
	v.write(`input[name=email]`, "noemi@example.ch")
	for _, text := range []string{"Switz", "Nowhere"} { // with suggestions, and with the sentence that there are none
		v.write(`input[name="address.country"]`, text)
		v.until(`[...document.querySelectorAll('dialog .lookup :is([role=option], [role=status])')].some((one) => one.innerText)`)
		v.clickSlowly(`dialog button[type=submit]`)
		v.until(`document.querySelector('[name="address.country"][aria-invalid=true]')`)
		v.until(`!document.querySelector('dialog .lookup [role=option]')?.checkVisibility()`)
	}
}

// Kosovo and the codes of stateless people and refugees have names. A code that the console does not know is marked, and saved.
func TestCustomers_HaveNationalitiesOutsideISO(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	v := signedInAt(t, s, desk, me, "/customers?new=1")
	v.write(`input[name=first_name]`, "Arta")
	v.write(`input[name=last_name]`, "Krasniqi")
	v.write(`input[name=email]`, "arta@example.ch")
	for typed, name := range map[string]string{"Koso": "Kosovo", "XXB": "Refugee (1951 Convention)", "stateless": "Stateless person"} {
		v.write(`input[name=nationality]`, typed)
		v.until(fmt.Sprintf(`[...document.querySelectorAll('dialog .lookup [role=option]')].some((one) => one.innerText.includes(%q))`, name))
	}
	v.write(`input[name=nationality]`, "xqz")
	v.until(`document.querySelector('dialog .lookup:has([name=nationality]) small[id$=hint]')?.innerText.startsWith('XQZ is not a known country code')`)
	v.picture("nationality-unknown")
	v.save()
	v.until(`document.querySelector('h1').innerText === 'Arta Krasniqi' && !document.querySelector('dialog')`)
	v.see("XQZ (not a known code)")
	v.picture("nationality-unknown-details")
	id := ask[string](v, `location.pathname.split('/')[2]`)
	token := s.token(me)
	s.call(token, http.MethodPut, "/v1/customers/"+id, map[string]any{"nationality": "XXA"})
	s.call(token, http.MethodPut, "/v1/customers/"+id+"/kyc", map[string]any{"documents": []any{
		map[string]any{"type": "<i>gym</i> card", "number": "G1", "expiry_date": "2020-01-31", "country": "XK"},
		map[string]any{"type": "id_card", "number": "G2", "expiry_date": "2099-01-31", "country": "XKX"}}})
	v.open("/customers/" + id)
	v.see("Stateless person")
	v.open("/customers/" + id + "/kyc")
	v.see("<i>gym</i> card") // as text
	v.see("id_card")
	v.see("Kosovo")
	v.see("Expired")
	v.picture("documents-any-type")
}

// customerForm opens the dialog that changes a customer and returns the customer's id.
func customerForm(s *testServer, v *visitor, token string) (id string) {
	s.t.Helper()
	id = s.newCustomer(token, "Lea", "Brunner")
	v.open("/customers/" + id)
	v.clickText("Edit")
	v.until(`document.querySelector('dialog input[name=last_name]').value === 'Brunner'`)
	return id
}

// save clicks the button that sends the dialog's form.
func (v *visitor) save() {
	v.t.Helper()
	v.click(`dialog button[type=submit]`)
}

func TestSave_KeepsTheInputWhileTheServerIsUnavailable(t *testing.T) {
	s := newServer(t)
	v := signedInAt(t, s, desk, firstAdmin, "/customers?new=1")
	v.expect("ERR_")
	v.expect("503")
	v.write(`input[name=first_name]`, "Urs")
	v.write(`input[name=last_name]`, "Kälin")
	v.write(`input[name=email]`, "urs@example.ch")
	s.stop()
	v.save()
	v.until(`document.querySelector('dialog [role=alert]').innerText.includes('Your input is kept')`)
	v.until(`document.querySelector('input[name=last_name]').value === 'Kälin' && !document.querySelector('dialog button[type=submit]').disabled`)
	s.start()
	v.save()
	v.until(`document.querySelector('h1').innerText === 'Urs Kälin' && !document.querySelector('dialog')`)
}

// The response to a creation is lost: sending the form again creates nothing twice.
func TestSave_CreatesOnceAfterALostResponse(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me := p.newPerson("Advisor")
	v := signedIn(t, p.testServer, desk, me)
	v.expect("ERR_")
	p.onNext(http.MethodPost, "/v1/customers", dropResponse)
	v.open("/customers?new=1")
	v.write(`input[name=first_name]`, "Ladina")
	v.write(`input[name=last_name]`, "Onlyonce")
	v.write(`input[name=email]`, "ladina@example.ch")
	v.save()
	v.until(`document.querySelector('dialog [role=alert]')`)
	v.save()
	v.until(`document.querySelector('h1').innerText === 'Ladina Onlyonce'`)
	found := p.call(p.token(me), http.MethodGet, "/v1/customers?search.last_name=Onlyonce", nil)
	if found["total"].(float64) != 1 {
		t.Errorf("there are %v customers, want one", found["total"])
	}

	rahel := p.newPerson("Advisor")
	chat := p.call(p.token(me), http.MethodPost, "/v1/chats", map[string]any{"participants": []any{rahel.id}})["id"].(string)
	p.onNext(http.MethodPost, "/v1/chats/"+chat+"/messages", dropResponse)
	v.open("/chats/" + chat)
	v.write(`#composer`, "Is it there?")
	v.click(`.composer button[type=submit]`)
	v.until(`document.querySelector('.thread [role=alert]') && document.querySelector('#composer').value === 'Is it there?'`)
	v.click(`.composer button[type=submit]`)
	v.until(`document.querySelector('#composer').value === '' && document.querySelectorAll('.message').length === 1`)
}

func TestErrors_AreExplained(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me := p.newPerson("Advisor")
	v := signedIn(t, p.testServer, desk, me)
	v.expect("429")
	v.expect("503")
	customerForm(p.testServer, v, p.token(me))
	v.write(`input[name=last_name]`, "Brunner-Frei")
	p.onNext(http.MethodPut, "/v1/customers/", respond(http.StatusTooManyRequests, `{"status":429,"message":"Too many requests.","code":"common.rate_limited","class":"temporary","retryable":true}`, "Retry-After", "2"))
	v.save()
	v.until(`document.querySelector('dialog [role=alert]').innerText.includes('Too many requests')`)
	v.until(`document.querySelector('dialog [role=alert]').innerText.includes('You can try again now')`) // after the countdown
	p.onNext(http.MethodPut, "/v1/customers/", respond(http.StatusServiceUnavailable, `{"status":503,"message":"Not now.","code":"common.unavailable","class":"temporary","retryable":true}`))
	v.save()
	v.until(`document.querySelector('dialog [role=alert]').innerText.includes('This is an error on our side')`)
	p.onNext(http.MethodPut, "/v1/customers/", respond(http.StatusBadGateway, `<html>A proxy's own words</html>`))
	v.expect("502")
	v.save()
	v.until(`document.querySelector('dialog [role=alert]').innerText.includes('502')`)
	v.save()
	v.until(`document.querySelector('h1').innerText === 'Lea Brunner-Frei'`)
}

func TestErrors_ExplainAFileThatIsTooLarge(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, desk, s.newPerson("Advisor"), "/profile")
	v.expect("413")
	large := filepath.Join(t.TempDir(), "large.png")
	if err := os.WriteFile(large, make([]byte, 6<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	v.do(chromedp.SetUploadFiles(chromedp.CSS(`input[type=file]`), []string{large}, chromedp.NodeReady))
	v.clickText("Use this picture")
	v.until(`document.querySelector('.toast.bad')?.innerText.includes('Choose a smaller file')`)
}

// Another user saves while a form is open: neither change is lost.
func TestConflict_MergesTheNewerValues(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	v := signedIn(t, s, desk, me)
	v.expect("412")
	customer := "/v1/customers/" + customerForm(s, v, token)
	v.write(`input[name=last_name]`, "Brunner-Frei")
	v.write(`input[name=phone]`, "+41791234567")
	changed := s.call(token, http.MethodGet, customer, nil)
	changed["first_name"], changed["last_name"], changed["metadata"] = "Lea Maria", "Brunner-Wyss", map[string]any{"branch": "Chur"}
	s.call(token, http.MethodPut, customer, changed)
	v.save()
	v.until(`document.querySelector('dialog [role=alert]').innerText.includes('your input is kept')`)
	v.clickText("Load the newer values")
	v.until(`document.querySelector('input[name=first_name]').value === 'Lea Maria'`) // An untouched field takes the newer value.
	v.until(`document.querySelector('input[name=last_name]').value === 'Brunner-Frei' && document.querySelector('input[name=phone]').value === '+41791234567'`)
	v.see("New value: Brunner-Wyss")
	v.clickText("Use this value")
	v.until(`document.querySelector('input[name=last_name]').value === 'Brunner-Wyss' && !document.body.innerText.includes('New value')`)
	v.save()
	v.until(`document.querySelector('h1').innerText === 'Lea Maria Brunner-Wyss' && !document.querySelector('dialog')`)
	now := s.call(token, http.MethodGet, customer, nil)
	if now["phone"] != "+41791234567" || now["metadata"].(map[string]any)["branch"] != "Chur" {
		t.Errorf("saved was %v", now)
	}
}

func TestConflict_IsDetectedByEveryForm(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	v := signedIn(t, s, desk, me)
	v.expect("412")
	customer := s.newCustomer(token, "Timo", "Egger")
	made := func(path string, body map[string]any) string {
		return path + "/" + s.call(token, http.MethodPost, path, body)["id"].(string)
	}
	for _, one := range []struct {
		name, record, screen, field string
		change                      map[string]any
	}{
		{"persona", made("/v1/personas", map[string]any{"first_name": "Timo", "last_name": "Egger", "date_of_birth": "1980-01-01"}), "", "first_name", map[string]any{"first_name": "Timo", "last_name": "Graf", "date_of_birth": "1980-01-01"}},
		{"payer", made("/v1/payers", map[string]any{"customer_id": customer, "name": "Timo Egger", "country": "CHE"}), "", "company", map[string]any{"name": "Timo Graf", "country": "CHE"}},
		{"task", made("/v1/customers/"+customer+"/tasks", map[string]any{"title": "Call back", "category": "approve"}), "", "description", map[string]any{"title": "Call back twice", "category": "approve"}},
		{"role", made("/v1/rbac/roles", map[string]any{"name": "Caller " + me.login}), "/admin", "description", map[string]any{"name": "Caller two " + me.login}},
	} {
		t.Run(one.name, func(t *testing.T) {
			v.t, s.t = t, t
			v.open(one.screen + strings.Replace(strings.TrimPrefix(one.record, "/v1"), "/rbac", "", 1))
			v.clickText("Edit")
			v.write(`dialog [name=`+one.field+`]`, "typed")
			s.call(token, http.MethodPut, one.record, one.change)
			v.save()
			v.clickText("Load the newer values")
			v.see("The form now shows the newer values")
			v.until(fmt.Sprintf(`document.querySelector('dialog [name=%s]').value === 'typed'`, one.field))
			v.save()
			v.gone(`dialog`)
		})
	}
	v.t, s.t = t, t
}

// Two reviewers decide at the same time: the second one sees which decisions are possible now.
func TestConflict_OffersTheDecisionsThatArePossibleNow(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	v := signedIn(t, s, desk, me)
	v.expect("409")
	customer := s.newCustomer(token, "Nina", "Arnold")
	s.call(token, http.MethodPut, "/v1/customers/"+customer+"/kyc", map[string]any{"documents": []any{map[string]any{"type": "passport", "number": "Z9", "expiry_date": "2099-01-01", "country": "CHE"}}})
	v.open("/customers/" + customer + "/kyc")
	v.clickText("Decide")
	v.click(`dialog input[value=rejected]`)
	v.write(`dialog textarea[name=reason]`, "I look at it")
	for _, status := range []string{"in_review", "rejected"} {
		s.call(token, http.MethodPatch, "/v1/customers/"+customer+"/kyc/status", map[string]any{"kyc_status": status, "reason": "Another was faster"})
	}
	v.save()
	const onlyPending = `[...document.querySelectorAll('dialog [name=choice]')].map((one) => one.value).join() === 'pending'`
	v.until(`document.querySelector('dialog [role=alert]')?.innerText.includes('This case is closed') || ` + onlyPending) // The newer state may arrive before the answer.
	if ask[bool](v, `Boolean(document.querySelector('dialog [role=alert]'))`) {
		v.clickText("Load the newer values")
	}
	v.until(onlyPending)
	v.click(`dialog input[value=pending]`)
	v.write(`dialog textarea[name=reason]`, "I look at it")
	v.save()
	v.gone(`dialog`)
	v.see("I look at it") // The reason is in the history.
}
