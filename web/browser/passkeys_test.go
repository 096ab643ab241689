package browser_test

import "testing"

func TestPasskey_SignsInWithoutAPassword(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	v := signedIn(t, s, desk, me)
	v.expect("401")
	key := v.withAuthenticator()
	v.goTo("/profile/security")
	v.addPasskey("My laptop")
	v.see("My laptop")
	v.see("10 recovery codes left")

	// The same device has a passkey already.
	v.clickText("Add passkey")
	v.submit(`dialog[open] input[name=name]`)
	v.prove()
	v.see("This device already has a passkey for your account.")
	v.click(`dialog[open] header button`)

	v.signOut()
	key.verifyUser(false) // The fingerprint is not recognised.
	v.clickText("Sign in with a passkey")
	v.see("The passkey was not used.")
	key.verifyUser(true)
	v.clickText("Sign in with a passkey")
	v.isIn()
	v.goTo("/profile/security")
	v.see("With passkey")

	// With the password, the passkey is the second step.
	v.signOut()
	v.typePassword(me)
	v.see("Second step")
	v.clickText("Use passkey")
	v.isIn()

	// Another device does not have the passkey.
	v.signOut()
	key.forget()
	v.clickText("Sign in with a passkey")
	v.see("The passkey was not used.")
	v.typePassword(me)
	v.see("Second step")
	v.clickText("Use passkey")
	v.see("The passkey was not used.")
	v.clickText("Start over")
	v.until(`document.querySelector('input[name=login]')`)
}

// A passkey that the user has removed stays on the device, but does not sign in any more.
func TestPasskey_RemovedOneIsRejected(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	v := signedIn(t, s, desk, me)
	v.expect("401")
	v.withAuthenticator()
	v.goTo("/profile/security")
	v.addPasskey("My laptop")
	v.click(`button[aria-label="Rename My laptop"]`)
	v.write(`dialog[open] input[name=name]`, "Old laptop")
	v.submit(`dialog[open] input[name=name]`)
	v.click(`button[aria-label="Remove Old laptop"]`)
	v.see("the recovery codes are deleted")
	v.click(confirmation)
	v.prove()
	v.see("No second factor")
	v.signOut()
	v.clickText("Sign in with a passkey")
	v.until(`document.querySelector('[role=alert]')`)
	v.typePassword(me) // One step is enough again.
	v.isIn()
}

// The browser offers the passkey in the field of the user name.
func TestPasskey_IsOfferedInTheForm(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	v := signedIn(t, s, desk, me)
	v.withSuggestedPasskeys()
	v.goTo("/profile/security")
	v.addPasskey("My laptop")
	v.eval(`const get = navigator.credentials.get.bind(navigator.credentials);
		window.asked = [];
		navigator.credentials.get = (options) => {
			window.asked.push((options.mediation ?? 'modal') + ' ' + document.querySelector('input[name=login]').autocomplete);
			return get(options);
		}`)
	v.pressSignOut()
	v.until(`window.asked.length > 0`)
	if got := ask[string](v, `window.asked.join()`); got != "conditional username webauthn" {
		t.Errorf("the browser was asked for %q", got)
	}
	v.isIn() // Chromium has chosen the only suggestion.
}
