package browser_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// signedIn opens the console, in English, with a user who is signed in.
func signedIn(t *testing.T, s *testServer, l look, p person) *visitor {
	t.Helper()
	v := signedInAt(t, s, l, p, "/")
	v.until(`document.querySelector('.shell h1')`)
	return v
}

// signedInAt is like [signedIn] and opens another path than the overview, without waiting for it.
func signedInAt(t *testing.T, s *testServer, l look, p person, path string) *visitor {
	t.Helper()
	v := newVisitor(t, s, l)
	v.open("/healthz") // a page of the same origin without the console
	v.keepSession(p)
	v.open(path)
	return v
}

// enter stores a new session in the browser and opens the console.
func (v *visitor) enter(p person) {
	v.t.Helper()
	v.keepSession(p)
	v.open("/")
	v.until(`document.querySelector('.shell h1')`)
}

// keepSession stores a new session in the browser.
func (v *visitor) keepSession(p person) {
	v.t.Helper()
	v.me = p
	pair := v.server.signIn(p)
	kept, err := json.Marshal(map[string]any{
		"access_token": pair["access_token"], "refresh_token": pair["refresh_token"], "user_id": pair["user_id"], "login": p.login,
		"expires_at": time.Now().Add(time.Duration(pair["expires_in"].(float64)) * time.Second).UnixMilli(),
	})
	if err != nil {
		v.t.Fatal(err)
	}
	v.eval(fmt.Sprintf(`localStorage.setItem('kontor.session', %q)`, kept))
	v.setLanguage("en")
}

// typePassword fills in and sends the sign-in form.
func (v *visitor) typePassword(p person) {
	v.t.Helper()
	v.me = p
	v.write(`input[name=login]`, p.login)
	v.write(`input[name=password]`, p.password)
	v.submit(`input[name=password]`)
}

// isIn waits until the overview is open.
func (v *visitor) isIn() {
	v.t.Helper()
	v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)
}

// pressSignOut presses the button that ends the session. Requests that are under way at that moment may be refused.
func (v *visitor) pressSignOut() {
	v.t.Helper()
	v.expect("401")
	v.click(`.top button[title]:last-of-type`)
}

// signOut leaves the console by its button.
func (v *visitor) signOut() {
	v.t.Helper()
	v.pressSignOut()
	v.until(`location.pathname === '/signin' && document.querySelector('input[name=login]')`)
}

// openSignedOut opens a screen before sign-in, in English.
func (v *visitor) openSignedOut(path string) {
	v.t.Helper()
	v.open("/healthz")
	v.setLanguage("en")
	v.open(path)
}

// setLanguage stores the language of the console before it is opened.
func (v *visitor) setLanguage(language string) {
	v.t.Helper()
	v.eval(fmt.Sprintf(`localStorage.setItem('kontor.language', %q); localStorage.setItem('kontor.language.chosen', %q)`, language, language))
}
