package browser_test

import (
	"net/http"
	"regexp"
	"testing"
)

// The link in the message about a new second factor removes it after a question, and once. The address does not keep its token.
func TestUndo_RemovesANewFactor(t *testing.T) {
	for language, l := range map[string]look{"en": desk, "de": {width: 360, height: 740, dark: true}} {
		t.Run(language, func(t *testing.T) {
			s := sharedServer(t)
			me := s.newPerson("Customer")
			v := signedIn(t, s, l, me)
			v.expect("40")
			v.setLanguage(language)
			v.open("/profile/security")
			v.addApp()
			v.until(`document.querySelectorAll('.factors .badge').length === 2`)
			admin := s.token(firstAdmin)
			sent := s.call(admin, http.MethodGet, "/v1/notifications/deliveries?sort=-created_at&limit=1&search.user_id="+me.id, nil)
			text := sent["data"].([]any)[0].(map[string]any)["text"].(string)
			link := regexp.MustCompile(`/undo#[A-Za-z0-9_-]{22}`).FindString(text)
			if link == "" {
				t.Fatalf("the message has no link: %s", text)
			}
			for _, used := range []bool{false, true} {
				v.open("/healthz")
				v.open(link)
				v.examine(view{name: "undo", drawn: `button.danger`})
				v.until(`location.pathname === '/undo' && location.hash === ''`)
				if got := s.factors(admin, me); (got == "") != used {
					t.Errorf("the user has the factors %q", got)
				}
				v.clickText(v.text("undo.do"))
				if used {
					v.see(v.text("undo.invalid_text"))
				} else {
					v.see(v.text("undo.done_text"))
				}
				v.examine(view{name: "undone", drawn: `a.button[href="/recover"]`})
			}
		})
	}
}

// Users delete an address of their own without a proof. The link in the message restores it after a question.
func TestUndo_RestoresADeletedAddress(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	admin := s.token(firstAdmin)
	s.call(admin, http.MethodPost, "/v1/users/"+me.id+"/credentials", map[string]any{"credential_type": "username", "credential_value": "n" + me.id[24:]})
	v := signedInAt(t, s, desk, me, "/profile/security")
	v.click(`button[aria-label*="` + me.login + `"]`)
	v.click(`dialog button.danger`)
	v.until(`!document.querySelector('button[aria-label*="` + me.login + `"]')`)
	sent := s.call(admin, http.MethodGet, "/v1/notifications/deliveries?sort=-created_at&limit=1&search.user_id="+me.id, nil)
	text := sent["data"].([]any)[0].(map[string]any)["text"].(string)
	link := regexp.MustCompile(`/undo\?restore#[A-Za-z0-9_-]{22}`).FindString(text)
	if link == "" {
		t.Fatalf("the message has no link: %s", text)
	}
	v.expect("40")
	v.open("/healthz")
	v.open(link)
	v.see(v.text("undo.restore_text"))
	v.until(`location.pathname === '/undo' && location.search === '' && location.hash === ''`)
	v.picture("undo-restore")
	v.clickText(v.text("undo.restore_do"))
	v.see(v.text("undo.restored"))
	if got := s.signIn(me)["access_token"]; got == nil {
		t.Error("the restored address does not sign in")
	}
}
