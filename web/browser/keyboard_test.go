package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestKeyboard_ReachesEveryControl(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	v := newVisitor(t, s, desk)
	v.openSignedOut("/signin")
	v.until(`document.activeElement.name === 'login'`)
	v.keys(me.login + kb.Tab + me.password + kb.Enter)
	v.until(`document.querySelector('.shell h1')`)
	v.tabTo(`document.activeElement.classList.contains('skip')`)
	v.keys(kb.Enter)
	v.until(`document.activeElement.id === 'main'`) // The skip link moves the focus past the menu.
	v.tabTo(`document.activeElement.getAttribute('href') === '/customers'`)
	v.keys(kb.Enter)
	v.until(`document.querySelector('h1').innerText === 'Customers' && document.activeElement.tagName === 'H1'`)
	v.tabTo(`document.activeElement.innerText?.trim() === 'New customer'`)
	v.keys(kb.Enter)
	v.until(`document.querySelector('dialog[open]') && document.activeElement.name === 'first_name'`)
	v.keys("Reto" + kb.Tab + kb.Tab + "Favre" + kb.Tab + "reto@example.ch" + kb.Enter) // past the choice "One name only"
	v.until(`document.querySelector('h1').innerText === 'Reto Favre'`)
	v.tabTo(`document.activeElement.innerText?.trim() === 'Edit'`)
	v.keys(kb.Enter)
	v.until(`document.querySelector('dialog[open]')`)
	v.keys(kb.Escape)
	v.gone(`dialog`)
	v.until(`document.activeElement.innerText?.trim() === 'Edit'`) // The focus returns to the button.
}

// tabTo presses Tab until the focused element meets a condition.
func (v *visitor) tabTo(condition string) {
	v.t.Helper()
	for range 80 {
		v.keys(kb.Tab)
		if ask[bool](v, "Boolean("+condition+")") {
			return
		}
	}
	v.t.Fatalf("Tab never reached: %s\n%s", condition, v.page())
}

// Every dialog takes the focus, keeps it, and restores it when Escape closes the dialog.
func TestKeyboard_DialogsKeepAndRestoreTheFocus(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	views := s.views(me)
	v := signedIn(t, s, desk, me)
	v.expect("40")
	for _, one := range views {
		if one.narrow || !strings.Contains(one.drawn, "dialog") || len(one.steps) == 0 || one.name == "sign in again" {
			continue
		}
		v.leaveFor(one.path)
		for _, step := range one.steps {
			step(v)
		}
		v.until(fmt.Sprintf(`document.querySelector(%q)`, one.drawn))
		within := `document.querySelector('dialog[open]').contains(document.activeElement)`
		v.until(within)
		for range 3 { // Beyond the last control comes the browser's own interface, not the page.
			v.keys(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift))
			if !ask[bool](v, within+` || document.activeElement === document.body`) {
				t.Errorf("%s: the focus leaves the dialog for %s", one.name, ask[string](v, `document.activeElement.outerHTML.slice(0, 120)`))
			}
		}
		v.eval(`document.querySelector('dialog[open] article').querySelector('input, button')?.focus()`)
		v.escape()
		v.gone(`dialog`)
		v.until(`document.querySelector('main').contains(document.activeElement) || document.activeElement.matches('.palette-button')`)
	}
}

// escape closes the dialogs with Escape. The first one may close a list of suggestions. Where a view has typed something,
// the question about it is answered.
func (v *visitor) escape() {
	v.t.Helper()
	for range 3 {
		v.keys(kb.Escape)
		v.painted()
		if ask[bool](v, `document.querySelectorAll('dialog[open]').length > 1`) {
			v.clickText(v.text("discard.do"))
			v.painted()
		}
		if !ask[bool](v, `Boolean(document.querySelector('dialog[open]'))`) {
			return
		}
	}
}

// Escape does not close a dialog that must be answered.
func TestKeyboard_SigningInAgainCannotBeDismissed(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	v := signedIn(t, s, desk, me)
	v.expect("401")
	s.endSessions(me)
	v.goTo("/customers")
	v.until(`document.activeElement.name === 'password'`)
	for range 4 {
		v.keys(kb.Escape)
	}
	v.until(`document.querySelector('dialog[open]:modal')`)
	v.write(`dialog input[name=password]`, me.password)
	v.keys(kb.Enter)
	v.gone(`dialog`)
	v.until(`document.querySelector('table.data, .empty')`)
}

func TestKeyboard_MovesACardOfTheBoard(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	token := s.token(me)
	task := s.call(token, http.MethodPost, "/v1/customers/"+s.newCustomer(token, "Gian", "Caduff")+"/tasks", map[string]any{"title": "Send the card", "category": "approve"})["id"].(string)
	v := signedInAt(t, s, desk, me, "/tasks")
	v.until(`document.querySelector('.task select')`)
	v.tabTo(`document.activeElement.matches('.task select')`)
	v.keys(kb.ArrowDown) // opens the list without moving the card
	if got := ask[string](v, `document.querySelector('.task').closest('section').getAttribute('aria-label')`); got != "Pending" {
		t.Errorf("one key moved the card to %s", got)
	}
	v.keys(kb.ArrowDown + kb.ArrowDown + kb.Enter)
	v.until(`document.querySelector('.task').closest('section').getAttribute('aria-label') === 'Completed'`)
	v.until(fmt.Sprintf(`document.activeElement.getAttribute('href')?.endsWith(%q)`, task)) // The focus moves with the card.
	v.keys(kb.Enter)
	v.until(`document.querySelector('h1').innerText === 'Send the card'`)
}

// The menu of a narrow screen, and the ring around the focused element.
func TestKeyboard_MenuAndFocusRing(t *testing.T) {
	s := sharedServer(t)
	v := signedIn(t, s, look{width: 360, height: 740}, s.newPerson("Advisor"))
	v.tabTo(`document.activeElement.matches('.only-narrow')`)
	ring := `(() => { const style = getComputedStyle(document.activeElement); return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2; })()`
	v.until(ring)
	v.keys(kb.Enter)
	v.until(`document.querySelector('dialog[open].drawer').contains(document.activeElement)`)
	v.eval(`window.former = document.querySelector('dialog')`)
	v.keys(kb.Escape)
	v.gone(`dialog`)
	v.until(`document.activeElement.matches('.only-narrow')`)
	v.keys(kb.Enter)
	v.until(`document.querySelector('dialog[open].drawer')?.contains(document.activeElement)`)
	v.eval(`window.former.dispatchEvent(new Event('close'))`) // On a busy machine the browser sends it that late.
	v.tabTo(`document.activeElement.getAttribute('href') === '/tasks'`)
	v.until(ring)
	enter := kb.Encode('\r') // pressed, repeated, released
	v.key(enter[0])
	v.until(`location.pathname === '/tasks' && document.querySelector('main h1')?.innerText === 'Tasks' && !document.querySelector('dialog')`)
	v.eval(`document.querySelector('.only-narrow').focus()`) // as after the menu was closed
	v.key(enter[1])                                          // A key that is held does not open the menu again.
	v.key(enter[2])
	v.until(`document.activeElement.matches('.only-narrow') && !document.querySelector('dialog')`)
	v.keys(kb.Enter)
	v.until(`document.querySelector('dialog[open].drawer')`)

	// Every control that Tab reaches shows the focus ring.
	v.open("/customers?new=1")
	v.until(`document.querySelector('dialog[open]')`)
	for range 16 {
		bare := `(() => { const at = document.activeElement; return at === document.body || at.type === 'date' || ` + ring + ` ? '' : at.outerHTML.slice(0, 160); })()` // A date field shows the ring on its parts.
		if at := ask[string](v, bare); at != "" {
			t.Errorf("no ring on %s", at)
		}
		v.keys(kb.Tab)
	}
}
