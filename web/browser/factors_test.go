package browser_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

func TestAuthenticatorApp_IsTheSecondStep(t *testing.T) {
	for name, l := range map[string]look{"light": desk, "dark": {width: 360, height: 740, dark: true}} {
		t.Run(name, func(t *testing.T) {
			s := sharedServer(t)
			me := s.newPerson("Customer")
			v := signedInAt(t, s, l, me, "/profile/security")
			v.expect("40")
			v.clickText("Add authenticator app")
			v.examine(view{name: "proof of a change", drawn: `dialog[open] input[name=password]`})
			v.write(`dialog[open] input[name=password]`, "not the right one")
			v.submit(`dialog[open] input[name=password]`)
			v.until(`document.querySelector('dialog[open] input[name=password][aria-invalid=true]')`)
			v.prove()
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
	v.changeDatabase(`UPDATE recovery_codes SET used_at = 1 WHERE code_hash <> (SELECT min(code_hash) FROM recovery_codes)`)
	v.open("/profile/security")
	v.see("1 recovery code left")
	v.see("Few recovery codes are left")
	v.clickText("New codes")
	v.click(confirmation)
	v.prove()
	second := v.keepCodes()
	v.see("10 recovery codes left")
	for _, code := range first {
		if strings.Contains(strings.Join(second, " "), code) {
			t.Errorf("the code %s is still in use", code)
		}
	}
	v.gone(`main .card .notice.warn`)
}

// Administrators remove the factors of a user who has lost their device.
func TestAdministrator_RemovesTheFactorOfAUser(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	v := signedInAt(t, s, desk, me, "/profile/security")
	v.expect("401") // The removal ends the sessions of the user, whose stream then connects again.
	v.addApp()
	admin := signedInAt(t, s, desk, firstAdmin, "/admin/users/"+me.id)
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
	v.changeDatabase(`UPDATE factor_duties SET since = 1`)

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
			v.examine(view{name: "authenticator app", steps: []step{press("factors.add_totp"), (*visitor).prove}, drawn: `dialog[open] .qr`})
			app := newTOTP(t, strings.ReplaceAll(ask[string](v, `document.querySelector('dialog[open] .secret .code').innerText`), " ", ""))
			v.examine(view{name: "authenticator app with a wrong code", steps: []step{write(`dialog[open] input[name=code]`, "000000"), func(v *visitor) { v.submit(`dialog[open] input[name=code]`) }}, drawn: `dialog[open] [aria-invalid=true]`})
			v.write(`dialog[open] input[name=code]`, app.code(0))
			v.submit(`dialog[open] input[name=code]`)
			v.examine(view{name: "recovery codes", drawn: `dialog[open] .codes li`})
			v.keepCodes()
			v.clickText(v.text("factors.add_passkey"))
			v.submit(`dialog[open] input[name=name]`)
			v.prove()
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
