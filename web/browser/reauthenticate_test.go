package browser_test

import (
	"fmt"
	"net/http"
	"testing"
)

// staleSession returns a visitor who entered their password long ago, on a server for this test alone.
func staleSession(t *testing.T, path string) (*testServer, *visitor) {
	t.Helper()
	s := newServer(t)
	v := signedIn(t, s, desk, firstAdmin)
	v.expect("401")
	v.makeStale(path)
	return s, v
}

func TestStaleSession_AsksForThePasswordAndContinues(t *testing.T) {
	_, v := staleSession(t, "/profile/security")
	v.expect("400")
	v.expect("403")
	v.clickText("Add")
	v.write(`dialog input[name=credential_value]`, "second@example.ch")
	v.submit(`dialog input[name=credential_value]`)
	v.see("Please confirm that it is you")
	v.examine(view{name: "password before a change", drawn: `dialog[open] input[name=password]`})
	v.write(`dialog input[name=password]`, "not the right one")
	v.submit(`dialog input[name=password]`)
	v.until(`document.querySelector('dialog input[name=password][aria-invalid=true]')`)
	v.until(`document.querySelector('dialog input[name=credential_value]').value === 'second@example.ch'`)
	v.write(`dialog input[name=password]`, firstAdmin.password)
	v.submit(`dialog input[name=password]`)
	v.see("second@example.ch")
	v.see("Enter the code")               // The request was sent again after the password.
	v.gone(`dialog input[name=password]`) // It is also the proof of the change.
}

func TestStaleSession_KeepsTheInputAfterCancelling(t *testing.T) {
	s, v := staleSession(t, "/profile/security")
	v.clickText("Add")
	v.write(`dialog input[name=credential_value]`, "third@example.ch")
	v.submit(`dialog input[name=credential_value]`)
	v.see("Please confirm that it is you")
	v.until(`document.querySelector('dialog input[name=password]')`) // the dialog asks first which methods the user has
	v.eval(`document.querySelector('dialog input[name=password]').closest('dialog').querySelector('header button').click()`)
	v.gone(`dialog input[name=password]`)
	v.until(`document.querySelector('dialog [role=alert]') && document.querySelector('dialog input[name=credential_value]').value === 'third@example.ch'`)
	if list := s.call(s.token(firstAdmin), "GET", "/v1/users/me", nil); list["id"] == "" {
		t.Error("the session is lost")
	}
}

// The console keeps the device token of a sign-in and sends it with the next one.
func TestSignIn_KeepsTheDeviceToken(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	v := newVisitor(t, s, desk)
	v.openSignedOut("/signin")
	signIn := func() string {
		v.write(`input[name=login]`, me.login)
		v.write(`input[name=password]`, me.password)
		v.click(`button[type=submit]`)
		v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)
		return ask[string](v, `Object.values(JSON.parse(localStorage.getItem('kontor.device_tokens')))[0]`)
	}
	first := signIn()
	v.pressSignOut()
	v.until(`location.pathname === '/signin'`)
	if second := signIn(); first == "" || second == first || second[:36] != first[:36] {
		t.Errorf("got the tokens %q and %q, want one device and two rotations", first, second)
	}
}

// A change of roles needs a second factor: the dialog asks for it, and the form stays as it was filled in.
func TestStepUp_RepeatsAChangeOfRoles(t *testing.T) {
	s := newServer(t)
	other := s.newPerson("Customer")
	v := signedIn(t, s, desk, firstAdmin)
	v.expect("401")
	key := v.withAuthenticator()
	v.goTo("/profile/security")
	codes := v.addPasskey("My laptop")
	roles := func() string {
		return fmt.Sprint(s.call(ask[string](v, `JSON.parse(localStorage.getItem('kontor.session')).access_token`), http.MethodGet, "/v1/users/"+other.id, nil)["roles"])
	}
	v.makeStale("/admin/users/" + other.id)
	v.until(`document.querySelector('fieldset input[type=checkbox]:not(:checked)')`)
	v.eval(`[...document.querySelectorAll('fieldset .field.check')].find((one) => one.innerText.startsWith('Advisor')).querySelector('input').click()`)
	save := func() {
		v.until(`document.querySelector('fieldset ~ .actions button:not(:disabled)')`)
		v.eval(`document.querySelector('fieldset ~ .actions button').click()`)
	}
	chosen := `[...document.querySelectorAll('fieldset input:checked')].length === 2`

	save()
	v.see("Please confirm that it is you")
	v.until(`document.querySelector('dialog[open] button[type=submit]')?.innerText === 'Use passkey'`)
	v.until(`!document.querySelector('dialog[open]').innerText.includes('Use the password')`) // The password alone is not enough.
	v.examine(view{name: "step-up", drawn: `dialog[open] button[type=submit]`})
	v.click(`dialog[open] header button`)
	v.gone(`dialog`)
	v.until(chosen + ` && !document.querySelector('.toast.bad')`) // Cancelling is no error.
	if got := roles(); got != "[Customer]" {
		t.Fatalf("after cancelling, the user has the roles %s", got)
	}

	key.verifyUser(false)
	save()
	v.clickText("Use passkey")
	v.see("The passkey was not used.")
	v.clickText("Use a recovery code")
	v.write(`dialog[open] input[name=recovery_code]`, "AAAA-AAAA-AAAA")
	v.expect("400")
	v.submit(`dialog[open] input[name=recovery_code]`)
	v.until(`document.querySelector('dialog[open] [aria-invalid=true], dialog[open] [role=alert]')`)
	v.write(`dialog[open] input[name=recovery_code]`, codes[3])
	v.submit(`dialog[open] input[name=recovery_code]`)
	v.gone(`dialog`)
	v.seeMessage("Saved")
	if got := roles(); got != "[Advisor Customer]" && got != "[Customer Advisor]" {
		t.Errorf("after the step-up, the user has the roles %s", got)
	}

	// The same with the passkey, and without a further question while it is fresh.
	key.verifyUser(true)
	v.makeStale("/admin/users/" + other.id)
	v.until(`document.querySelector('fieldset input:checked')`)
	v.eval(`document.querySelectorAll('fieldset input:checked')[0].click()`)
	save()
	v.clickText("Use passkey")
	v.gone(`dialog`)
	v.seeMessage("Saved")
	v.until(`document.querySelectorAll('fieldset input:checked').length === 1`)
	v.eval(`document.querySelector('fieldset input:checked').click()`)
	save()
	v.seeMessage("Saved")
	v.gone(`dialog`)
	if got := roles(); got != "[]" {
		t.Errorf("after the second change, the user has the roles %s", got)
	}
}

// A session that has expired is renewed with both factors; the input stays.
func TestExpiredSession_AsksForBothFactors(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	v := signedIn(t, s, desk, me)
	v.expect("401")
	v.withAuthenticator()
	v.goTo("/profile/security")
	v.addPasskey("My laptop")
	v.goTo("/profile")
	v.write(`input[name=display_name]`, "Nina Frei")
	s.endSessions(me)
	v.submit(`input[name=display_name]`)
	v.see("Please sign in again")
	v.write(`dialog input[name=password]`, me.password)
	v.submit(`dialog input[name=password]`)
	v.clickText("Use passkey")
	v.gone(`dialog`)
	v.until(`document.querySelector('.account .me').innerText.includes('Nina Frei')`)

	// The passkey alone is enough, too.
	v.write(`input[name=display_name]`, "Nina Frei-Roth")
	s.endSessions(me)
	v.submit(`input[name=display_name]`)
	v.see("Please sign in again")
	v.clickText("Sign in with a passkey")
	v.gone(`dialog`)
	v.until(`document.querySelector('.account .me').innerText.includes('Nina Frei-Roth')`)
}
