package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// typedCustomer opens the form for a customer and types a name.
func typedCustomer(v *visitor, name string) {
	v.t.Helper()
	v.goTo("/customers")
	v.clickText("New customer")
	v.write(`input[name=first_name]`, name)
}

const firstName = `document.querySelector('input[name=first_name]')?.value`

// The Back button and a link ask before typed input is lost; the answer decides. A reload asks, too, and keeps the input.
func TestUnsaved_LeavingAsksAndAReloadKeepsTheInput(t *testing.T) {
	s := sharedServer(t)
	v := signedIn(t, s, desk, s.newPerson("Administrator"))
	typedCustomer(v, "Noëmi")

	v.eval(`history.back()`)
	v.see("Discard your input?")
	v.keys(kb.Escape) // It answers the question only.
	v.until(`document.querySelectorAll('dialog').length === 1 && location.search === '?new=1' && ` + firstName + ` === 'Noëmi'`)

	v.open("/customers?new=1")
	if v.questions() == 0 {
		t.Error("the browser did not ask before the page was left")
	}
	v.until(firstName + ` === 'Noëmi'`)
	v.see("Your input from before was kept.")

	v.keys(kb.Escape)
	v.see("Discard your input?")
	v.until(`document.activeElement.matches('.danger')`)
	v.keys(enter)
	v.gone(`dialog`)
	v.until(`Object.keys(sessionStorage).length === 0`)
	v.open("/customers?new=1")
	v.until(firstName + ` === ''`) // a discarded draft does not return
}

// Saved and discarded input leaves no draft, and secrets are none.
func TestUnsaved_NothingIsLeftAfterSavingOrDiscarding(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	v := signedIn(t, s, desk, me)
	typedCustomer(v, "Saved")
	v.write(`input[name=last_name]`, "Without-question")
	v.write(`input[name=email]`, "saved@example.ch")
	v.submit(`input[name=first_name]`)
	v.until(`location.pathname.startsWith('/customers/') && document.querySelector('h1')`)
	if stored := ask[string](v, `JSON.stringify(sessionStorage)`); stored != "{}" {
		t.Errorf("the tab has kept %s", stored)
	}
	v.goTo("/profile/security")
	v.write(`input[name=old_password]`, "not the password")
	v.eval(`document.querySelector('a[href="/"]').click()`)
	v.until(`location.pathname === '/'`) // secrets are no drafts
	typedCustomer(v, "Left behind")
	v.until(`Object.keys(sessionStorage).length === 1`)
	v.click(`dialog header button`)
	v.see("Discard your input?")
	v.clickText("Discard")
	v.until(`Object.keys(sessionStorage).length === 0`)
}

// Unsaved changes of the permission table are asked about, and survive a reload.
func TestUnsaved_ThePermissionTable(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	role := s.call(token, http.MethodPost, "/v1/rbac/roles", map[string]any{"name": "Unsaved " + me.login})["id"].(string)
	v := signedInAt(t, s, desk, me, "/admin/roles")
	v.until(`document.querySelector('main table')`)
	v.goTo("/admin/roles/" + role)
	v.click(`input[aria-label="Read: Customers"]`)
	v.until(`document.querySelector('.save-bar')`)
	v.eval(`document.querySelector('a[href="/customers"]').click()`)
	v.see("Discard your input?")
	v.clickText("Cancel")
	v.until(`location.pathname === '/admin/roles/` + role + `' && document.querySelector('input[aria-label="Read: Customers"]').checked`)
	v.open("/admin/roles/" + role)
	v.until(`document.querySelector('.save-bar') && document.querySelector('input[aria-label="Read: Customers"]').checked`)
}
