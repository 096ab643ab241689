package browser_test

import (
	"regexp"
	"testing"
)

// Codes in the outbox are masked until the administrator has confirmed their identity. The message then shows in place.
func TestOutbox_ShowsCodesAfterThePassword(t *testing.T) {
	s := newServer(t)
	admin := s.token(firstAdmin)
	const address = "second@example.ch"
	me := s.call(admin, "GET", "/v1/users/me", nil)["id"].(string)
	s.call(admin, "POST", "/v1/users/"+me+"/credentials", map[string]any{"credential_type": "email", "credential_value": address, "password": firstAdmin.password})
	v := signedIn(t, s, desk, firstAdmin)
	v.makeStale("/admin/deliveries")
	v.see(address)
	v.click(`tbody tr .what`)
	v.see("********")
	v.picture("outbox-masked")
	const text = `[...document.querySelectorAll('dialog[open] pre')].map((p) => p.innerText).join(' ')`
	code := regexp.MustCompile(`\b\d{6}\b`)
	if shown := ask[string](v, text); code.MatchString(shown) {
		t.Errorf("the code shows before the password: %s", shown)
	}
	v.clickText("Confirm your identity to see the text")
	v.see("Please confirm that it is you")
	v.write(`dialog input[name=password]`, firstAdmin.password)
	v.submit(`dialog input[name=password]`)
	v.gone(`dialog input[name=password]`)
	v.until(`/\b\d{6}\b/.test(` + text + `)`)
	v.until(`![...document.querySelectorAll('dialog[open] button')].some((b) => b.innerText.startsWith('Confirm your identity'))`)
	v.picture("outbox-shown")
}
