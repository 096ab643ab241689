package browser_test

import (
	"testing"
	"time"

	"kontor/modules/identity/oidc/oidctest"
)

// comeBack lets a person sign in at the provider, whose page the browser shows, and returns to the console.
func (v *visitor) comeBack(provider *oidctest.Provider, person oidctest.Claims) {
	v.t.Helper()
	v.until(`location.pathname === '/auth'`)
	answer := provider.SignIn(ask[string](v, `location.href`), person)
	v.open("/authenticate/oidc/callback?" + answer.Encode())
}

func TestFederatedSignIn_OpensTheScreenAndLeavesNoCode(t *testing.T) {
	provider := oidctest.New(t, time.Now)
	s := newServer(t, "--auth.oidc.issuer", provider.URL, "--auth.oidc.client_id", oidctest.ClientID, "--auth.oidc.client_secret", oidctest.ClientSecret,
		"--auth.oidc.name", "Example Login")
	me := s.newPerson("Advisor")
	v := newVisitor(t, s, desk)
	v.expect("404") // The provider of the tests has no page for people.
	v.allow(provider.URL)

	// An account with the same address is not signed in to: its owner links it first.
	person := oidctest.Claims{"sub": "sub-7", "email": me.login, "email_verified": true}
	v.openSignedOut("/customers?q=none")
	v.clickText("Sign in with Example Login")
	v.comeBack(provider, person)
	v.see("Sign in once to link the provider")
	v.until(`location.hash === '' && location.search.startsWith('?next=')`)
	v.typePassword(me)
	v.until(`location.pathname === '/customers' && location.search === '?q=none'`)
	v.prove()
	v.seeMessage("Your account at the sign-in provider is linked.")
	v.goTo("/profile/security")
	v.see("Accounts at the sign-in provider")
	v.examine(view{name: "linked account", drawn: `button[aria-label^="Unlink"]`})

	v.signOut()
	v.examine(view{name: "sign in with a provider", drawn: `.auth-more a`})
	v.clickText("Sign in with Example Login")
	v.comeBack(provider, person)
	v.isIn()
	if got := ask[bool](v, `location.href.includes('oidc') || location.hash !== ''`); got {
		t.Error("the address still has the code")
	}
	v.goTo("/profile/security")
	v.see("sign-in provider · Last used")
	v.click(`button[aria-label^="Unlink"]`)
	v.expect("401")
	v.click(confirmation)
	v.confirmWithPassword(me)
	v.see("No linked account")
}

func TestFederatedSignIn_ShowsItsOwnTextsForErrors(t *testing.T) {
	s := sharedServer(t)
	v := newVisitor(t, s, desk)
	for code, want := range map[string]string{
		"auth_m.oidc_cancelled": "The sign-in was cancelled.", "auth_m.oidc_no_account": "There is no account for you here yet.",
		"Call+this+number": "The sign-in with the provider failed.",
	} {
		v.openSignedOut("/signin#oidc_error=" + code + "&return_to=%2Fcustomers")
		v.see(want)
		v.until(`location.hash === '' && location.search === '?next=%2Fcustomers' && !document.body.innerText.includes('Call this')`)
	}
}

// confirmWithPassword answers the question for a proof of identity, if there is one.
func (v *visitor) confirmWithPassword(p person) {
	v.t.Helper()
	v.until(`document.querySelector('dialog[open] input[name=password]') || document.body.innerText.includes('No linked account')`)
	if ask[bool](v, `Boolean(document.querySelector('dialog[open] input[name=password]'))`) {
		v.write(`dialog[open] input[name=password]`, p.password)
		v.submit(`dialog[open] input[name=password]`)
	}
}
