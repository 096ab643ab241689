package browser_test

import (
	"net/http"
	"path/filepath"
	"strings"

	"kontor/store/storetest"
)

// addPasskey enrols a passkey on the open screen and returns the recovery codes that come with a first factor.
func (v *visitor) addPasskey(name string) []string {
	v.t.Helper()
	v.clickText(v.text("factors.add_passkey"))
	v.write(`dialog[open] input[name=name]`, name)
	v.submit(`dialog[open] input[name=name]`)
	v.prove()
	return v.keepCodes()
}

// prove enters the password in the dialog that asks for a proof of a change.
func (v *visitor) prove() {
	v.t.Helper()
	v.expect("403") // the request without a proof
	v.see(v.text("reauthenticate.method_text"))
	v.write(`dialog[open] input[name=password]`, v.me.password)
	v.submit(`dialog[open] input[name=password]`)
	v.gone(`dialog[open] input[name=password]`)
}

// addApp enrols an authenticator app and returns it with the recovery codes that come with a first factor.
func (v *visitor) addApp() (totp, []string) {
	v.t.Helper()
	v.clickText(v.text("factors.add_totp"))
	v.prove()
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

// makeStale lets all factors and the confirmations of all sessions be old, and opens a screen.
func (v *visitor) makeStale(path string) {
	v.t.Helper()
	v.changeDatabase(`UPDATE sessions SET authenticated_at = 0, factor_at = NULL; UPDATE factors SET trusted_from = 0`)
	v.open(path)
}

// changeDatabase leaves the console, and runs a statement on the database while the server is stopped.
func (v *visitor) changeDatabase(statement string) {
	v.t.Helper()
	v.open("/healthz")
	v.server.stop()
	storetest.Tamper(v.t, filepath.Join(v.server.own.dir, "kontor.db"), statement)
	v.server.start()
}
