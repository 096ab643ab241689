package browser_test

import (
	"path/filepath"
	"testing"

	"kontor/store/storetest"
)

// staleSession returns a visitor who entered their password long ago, on a server for this test alone.
func staleSession(t *testing.T, path string) (*testServer, *visitor) {
	t.Helper()
	s := newServer(t)
	v := newVisitor(t, s, desk)
	v.expect("401")
	v.open("/healthz")
	v.enter(firstAdmin)
	v.open("/healthz")
	s.stop()
	storetest.Tamper(t, filepath.Join(s.own.dir, "kontor.db"), `UPDATE sessions SET authenticated_at = 0`)
	s.start()
	v.open(path)
	return s, v
}

func TestStaleSession_AsksForThePasswordAndContinues(t *testing.T) {
	_, v := staleSession(t, "/profile/security")
	v.expect("400")
	v.clickText("Add")
	v.write(`dialog input[name=credential_value]`, "second@example.ch")
	v.eval(`document.querySelector('dialog input[name=credential_value]').form.requestSubmit()`)
	v.see("Please confirm that it is you")
	v.examine(view{name: "password before a change", drawn: `dialog[open] input[name=password]`})
	v.write(`dialog input[name=password]`, "not the right one")
	v.eval(`document.querySelector('dialog input[name=password]').form.requestSubmit()`)
	v.until(`document.querySelector('dialog input[name=password][aria-invalid=true]')`)
	v.until(`document.querySelector('dialog input[name=credential_value]').value === 'second@example.ch'`)
	v.write(`dialog input[name=password]`, firstAdmin.password)
	v.eval(`document.querySelector('dialog input[name=password]').form.requestSubmit()`)
	v.see("second@example.ch")
	v.see("Enter the code") // The request was sent again after the password.
	v.gone(`dialog input[name=password]`)
}

func TestStaleSession_KeepsTheInputAfterCancelling(t *testing.T) {
	s, v := staleSession(t, "/profile/security")
	v.clickText("Add")
	v.write(`dialog input[name=credential_value]`, "third@example.ch")
	v.eval(`document.querySelector('dialog input[name=credential_value]').form.requestSubmit()`)
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
