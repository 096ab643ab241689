package browser_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Escape and the button that closes a dialog ask before they discard what the user has typed. An untouched form closes at once.
func TestDialogs_AskBeforeTheyDiscardInput(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, desk, s.newPerson("Administrator"), "/customers?new=1")
	v.until(`document.activeElement.name === 'first_name'`)
	v.keys(kb.Escape)
	v.gone(`dialog`)
	v.open("/customers?new=1")
	v.write(`input[name=first_name]`, "Noëmi")
	v.keys(kb.Escape)
	v.see("Discard your input?")
	v.keys(kb.Escape) // It answers the question only.
	v.until(`document.querySelectorAll('dialog').length === 1 && document.querySelector('input[name=first_name]').value === 'Noëmi'`)
	v.click(`dialog header button`)
	v.see("Discard your input?")
	v.clickText("Discard")
	v.gone(`dialog`)
}

// The way back to a list leads to the same filters, page and position.
func TestBack_RestoresTheList(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	for i := range 45 {
		s.newCustomer(token, fmt.Sprintf("Back %02d", i), "Rückweg")
	}
	v := signedIn(t, s, look{width: 1280, height: 500}, me)
	const list = "/customers?q=R%C3%BCckweg&sort=last_name&offset=20"
	const shown = `document.querySelectorAll('table.data tbody tr').length === 20 && scrollY > 250`
	for _, back := range []string{`a.back`, ""} {
		v.goTo(list)
		v.until(`document.querySelectorAll('table.data tbody tr').length === 20`)
		v.eval(`scrollTo(0, 300)`)
		v.until(`scrollY > 250`)
		v.eval(`document.querySelectorAll('table.data a.row-link')[9].click()`)
		v.until(`document.querySelector('h1')?.innerText.endsWith('Rückweg') && scrollY === 0`)
		if back == "" {
			v.eval(`history.back()`)
		} else {
			v.click(back)
		}
		v.until(`location.search.includes('offset=20') && location.search.includes('ckweg')`)
		v.until(shown)
	}
}

// A page beyond the end leads to the last page.
func TestLists_APageBeyondTheEndLeadsToTheLast(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	for i := range 23 {
		s.newCustomer(token, fmt.Sprintf("Ende %02d", i), "Jenseits")
	}
	v := signedInAt(t, s, desk, me, "/customers?q=Jenseits&offset=4000")
	v.until(`location.search.includes('offset=20') && document.querySelectorAll('table.data tbody tr').length === 3`)
}

// A browser gets the console's page for an address that does not exist, with 404; programs and the API get JSON.
func TestNowhere_IsAPageForBrowsers(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, desk, s.newPerson("Advisor"), "/nowhere")
	v.expect("404")
	v.see("This page does not exist")
	for path, media := range map[string]string{"/nowhere": "text/html; charset=utf-8", "/v1/nowhere": "application/json", "/v1": "application/json"} {
		request, err := http.NewRequest(http.MethodGet, s.url(path), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		answer, err := apiClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusNotFound || answer.Header.Get("Content-Type") != media {
			t.Errorf("%s: got %d %s, want 404 %s", path, answer.StatusCode, answer.Header.Get("Content-Type"), media)
		}
	}
}

// An empty sign-in marks both fields. Browsers must not send passwords to a spelling service.
func TestSignIn_MarksEveryEmptyField(t *testing.T) {
	s := sharedServer(t)
	v := newVisitor(t, s, desk)
	v.expect("400")
	v.openSignedOut("/signin")
	v.click(`button[type=submit]`)
	v.until(`document.querySelectorAll('form [aria-invalid=true]').length === 2 && document.activeElement.name === 'login'`)
	if ask[bool](v, `document.querySelector('input[name=password]').spellcheck || document.querySelector('input[name=login]').spellcheck`) {
		t.Error("the spelling of credentials is checked")
	}
}
