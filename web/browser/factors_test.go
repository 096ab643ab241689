package browser_test

import (
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store/storetest"
)

// addPasskey enrols a passkey on the open screen and returns the recovery codes that come with a first factor.
func (v *visitor) addPasskey(name string) []string {
	v.t.Helper()
	v.clickText(v.text("factors.add_passkey"))
	v.write(`dialog[open] input[name=name]`, name)
	v.submit(`dialog[open] input[name=name]`)
	return v.keepCodes()
}

// addApp enrols an authenticator app and returns it with the recovery codes that come with a first factor.
func (v *visitor) addApp() (totp, []string) {
	v.t.Helper()
	v.clickText(v.text("factors.add_totp"))
	v.until(`document.querySelector('dialog[open] .qr')`)
	app := newTOTP(v.t, strings.ReplaceAll(ask[string](v, `document.querySelector('dialog[open] .secret .code').innerText`), " ", ""))
	v.write(`dialog[open] input[name=code]`, app.code(0))
	v.submit(`dialog[open] input[name=code]`)
	return app, v.keepCodes()
}

// keepCodes reads the recovery codes and closes their dialog.
func (v *visitor) keepCodes() []string {
	v.t.Helper()
	v.until(`document.querySelectorAll('dialog[open] .codes li').length === 10`)
	codes := ask[[]string](v, `[...document.querySelectorAll('dialog[open] .codes li')].map((one) => one.innerText)`)
	v.clickText(v.text("codes.kept"))
	v.gone(`dialog`)
	return codes
}

// submit sends the form of a field.
func (v *visitor) submit(selector string) {
	v.t.Helper()
	v.until(fmt.Sprintf(`document.querySelector(%q)`, selector))
	v.eval(fmt.Sprintf(`document.querySelector(%q).form.requestSubmit()`, selector))
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

// typePassword fills in and sends the sign-in form.
func (v *visitor) typePassword(p person) {
	v.t.Helper()
	v.write(`input[name=login]`, p.login)
	v.write(`input[name=password]`, p.password)
	v.submit(`input[name=password]`)
}

// isIn waits until the overview is open.
func (v *visitor) isIn() {
	v.t.Helper()
	v.until(`location.pathname === '/' && document.querySelector('.shell h1')`)
}

// factors returns the active factors of a user as their types.
func (s *testServer) factors(token string, p person) string {
	s.t.Helper()
	var types []string
	for _, row := range s.call(token, http.MethodGet, "/v1/users/"+p.id+"/factors?sort=created_at", nil)["data"].([]any) {
		if one := row.(map[string]any); one["status"] == "active" {
			types = append(types, one["type"].(string))
		}
	}
	return strings.Join(types, " ")
}

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

func TestAuthenticatorApp_IsTheSecondStep(t *testing.T) {
	for name, l := range map[string]look{"light": desk, "dark": {width: 360, height: 740, dark: true}} {
		t.Run(name, func(t *testing.T) {
			s := sharedServer(t)
			me := s.newPerson("Customer")
			v := signedIn(t, s, l, me)
			v.expect("40")
			v.goTo("/profile/security")
			v.clickText("Add authenticator app")
			v.until(`document.querySelector('dialog[open] .qr')`)
			uri, err := url.Parse(v.scan(`dialog[open] .qr`))
			if err != nil || uri.Scheme != "otpauth" || !strings.Contains(uri.Path, me.login) {
				t.Fatalf("the QR code has %v, %v", uri, err)
			}
			app := newTOTP(t, uri.Query().Get("secret"))
			v.write(`dialog[open] input[name=code]`, "000000")
			v.submit(`dialog[open] input[name=code]`)
			v.until(`document.querySelector('dialog[open] input[name=code][aria-invalid=true]')`)
			v.write(`dialog[open] input[name=code]`, app.code(0))
			v.submit(`dialog[open] input[name=code]`)
			codes := v.keepCodes()
			if got := s.factors(s.token(firstAdmin), me); got != "totp recovery_codes" {
				t.Errorf("the user has the factors %q", got)
			}
			v.until(`!document.querySelector('main').innerText.includes('Add authenticator app')`) // A user has one app.

			v.signOut()
			v.typePassword(me)
			v.see("Enter the code that your authenticator app shows now.")
			v.write(`input[name=code]`, "000 000")
			v.submit(`input[name=code]`)
			v.until(`document.querySelector('[role=alert]') && document.querySelector('input[name=code]').value === ''`)
			code := app.code(1) // Each code is accepted once.
			v.write(`input[name=code]`, code[:3]+" "+code[3:])
			v.submit(`input[name=code]`)
			v.isIn()
			v.goTo("/profile/security")
			v.see("With password and one-time code")

			// A recovery code works once.
			for i, accepted := range []bool{true, false} {
				v.signOut()
				v.typePassword(me)
				v.see("Second step")
				v.clickText("Use a recovery code")
				v.write(`input[name=recovery_code]`, " "+strings.ToLower(codes[0]))
				v.submit(`input[name=recovery_code]`)
				if accepted {
					v.isIn()
					v.goTo("/profile/security")
					v.see("9 recovery codes left")
					continue
				}
				v.until(`document.querySelector('[role=alert]')`)
				if i == 1 {
					v.write(`input[name=recovery_code]`, codes[1])
					v.submit(`input[name=recovery_code]`)
					v.isIn()
				}
			}
		})
	}
}

func TestRecoveryCodes_AreReplaced(t *testing.T) {
	s := newServer(t)
	v := signedIn(t, s, desk, firstAdmin)
	v.withAuthenticator()
	v.goTo("/profile/security")
	first := v.addPasskey("My laptop")
	v.open("/healthz")
	s.stop()
	storetest.Tamper(t, filepath.Join(s.own.dir, "kontor.db"), `UPDATE recovery_codes SET used_at = 1 WHERE code_hash <> (SELECT min(code_hash) FROM recovery_codes)`)
	s.start()
	v.open("/profile/security")
	v.see("1 recovery code left")
	v.see("Few recovery codes are left")
	v.clickText("New codes")
	v.click(confirmation)
	second := v.keepCodes()
	v.see("10 recovery codes left")
	for _, code := range first {
		if strings.Contains(strings.Join(second, " "), code) {
			t.Errorf("the code %s is still in use", code)
		}
	}
	v.gone(`main .card .notice.warn`)
}

// makeStale lets the confirmations of all sessions be old, and opens a screen.
func (v *visitor) makeStale(path string) {
	v.t.Helper()
	v.open("/healthz")
	v.server.stop()
	storetest.Tamper(v.t, filepath.Join(v.server.own.dir, "kontor.db"), `UPDATE sessions SET authenticated_at = 0, factor_at = NULL`)
	v.server.start()
	v.open(path)
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
	v.see("Saved")
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
	v.see("Saved")
	v.until(`document.querySelectorAll('fieldset input:checked').length === 1`)
	v.closeToasts()
	v.eval(`document.querySelector('fieldset input:checked').click()`)
	save()
	v.see("Saved")
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

// Administrators remove the factors of a user who has lost their device.
func TestAdministrator_RemovesTheFactorOfAUser(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	v := signedIn(t, s, desk, me)
	v.expect("401") // The removal ends the sessions of the user, whose stream then connects again.
	v.goTo("/profile/security")
	v.addApp()
	admin := signedIn(t, s, desk, firstAdmin)
	admin.goTo("/admin/users/" + me.id)
	admin.until(`document.querySelector('button[aria-label="Remove Authenticator app"]') && !document.querySelector('button[aria-label="Rename Authenticator app"]')`)
	admin.until(`!document.querySelector('main').innerText.includes('Add passkey') && !document.querySelector('main').innerText.includes('New codes')`)
	admin.click(`button[aria-label="Remove Authenticator app"]`)
	admin.click(confirmation)
	admin.see("No second factor")
	if got := s.factors(s.token(firstAdmin), me); got != "" {
		t.Errorf("the user still has the factors %q", got)
	}
}

// Once an administrator has a second factor, the others need one. After the grace, they set it up before anything else.
func TestRequiredFactor_IsSetUpAndTheScreenContinues(t *testing.T) {
	s := newServer(t)
	me := s.newPerson("Administrator")
	first := signedIn(t, s, desk, firstAdmin)
	first.withAuthenticator()
	first.goTo("/profile/security")
	first.addPasskey("My laptop")
	first.open("/healthz") // The server stops below.

	v := signedIn(t, s, desk, me)
	v.expect("403")
	v.withAuthenticator()
	v.see("Set up a second factor")
	v.examine(view{name: "second factor due", drawn: `main > .notice.warn a[href="/profile/security"]`})
	v.open("/customers?new=1")
	v.write(`dialog[open] input[name=last_name]`, "Rochat")
	v.open("/healthz")
	s.stop()
	storetest.Tamper(t, filepath.Join(s.own.dir, "kontor.db"), `UPDATE factor_duties SET since = 1`)
	s.start()

	v.open("/customers?q=none")
	v.see("Your role requires a second factor")
	v.examine(view{name: "second factor required", drawn: `dialog[open] .row button`})
	v.addPasskey("Another laptop")
	v.until(`document.querySelector('h1')?.innerText === 'Customers' && document.querySelector('.empty') && location.search === '?q=none'`)
	v.gone(`main > .notice.warn`)
}

// Every view of second factors, wide and narrow, light and dark.
func TestFactorViews_AreAccessibleAndFit(t *testing.T) {
	for language, l := range map[string]look{"en": desk, "fr": {width: 360, height: 740, dark: true}} {
		t.Run(fmt.Sprint(l.width), func(t *testing.T) {
			s := sharedServer(t)
			me := s.newPerson("Customer")
			v := signedIn(t, s, l, me)
			v.expect("40")
			v.withAuthenticator()
			v.setLanguage(language)
			v.open("/profile/security")
			v.examine(view{name: "no factors", drawn: `main .empty`})
			v.examine(view{name: "new passkey", steps: []step{press("factors.add_passkey")}, drawn: form})
			v.click(`dialog[open] header button`)
			v.examine(view{name: "authenticator app", steps: []step{press("factors.add_totp")}, drawn: `dialog[open] .qr`})
			app := newTOTP(t, strings.ReplaceAll(ask[string](v, `document.querySelector('dialog[open] .secret .code').innerText`), " ", ""))
			v.examine(view{name: "authenticator app with a wrong code", steps: []step{write(`dialog[open] input[name=code]`, "000000"), func(v *visitor) { v.submit(`dialog[open] input[name=code]`) }}, drawn: `dialog[open] [aria-invalid=true]`})
			v.write(`dialog[open] input[name=code]`, app.code(0))
			v.submit(`dialog[open] input[name=code]`)
			v.examine(view{name: "recovery codes", drawn: `dialog[open] .codes li`})
			v.keepCodes()
			v.clickText(v.text("factors.add_passkey"))
			v.submit(`dialog[open] input[name=name]`)
			v.until(`document.querySelectorAll('.items .event').length === 3`)
			v.examine(view{name: "factors", drawn: `.items .event`})
			v.examine(view{name: "factor renaming", steps: []step{click(`.items .row button`)}, drawn: form})
			v.click(`dialog[open] header button`)
			v.examine(view{name: "factor removing", steps: []step{click(`.items .row button + button`)}, drawn: confirmation})
			v.click(`dialog[open] header button`)
			v.examine(view{name: "new recovery codes", steps: []step{press("codes.new")}, drawn: confirmation})
			v.click(`dialog[open] header button`)

			v.signOut()
			v.typePassword(me)
			v.examine(view{name: "second step: passkey", drawn: `.auth-links button`})
			v.examine(view{name: "second step: app", steps: []step{press("proof.use_totp")}, drawn: `input[name=code]`})
			v.examine(view{name: "second step: a wrong code", steps: []step{write(`input[name=code]`, "000000"), func(v *visitor) { v.submit(`input[name=code]`) }}, drawn: `[role=alert]`})
			v.examine(view{name: "second step: recovery code", steps: []step{press("proof.use_recovery_code")}, drawn: `input[name=recovery_code]`})
		})
	}
}
