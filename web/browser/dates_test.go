package browser_test

import (
	"net/http"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Dates are typed in the user's format or as ISO 8601, or chosen in a calendar, in the user's language.
func TestDates_AreTypedAndShownInOneForm(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	token := s.token(me)
	customer := s.newCustomer(token, "Dora", "Datum")
	const field = `dialog input[name=date_of_birth]`
	valueIs := func(v *visitor, want string) {
		v.t.Helper()
		v.until(`document.querySelector('` + field + `').value === '` + want + `'`)
	}

	v := signedIn(t, s, desk, me)
	v.expect("40")
	v.setLanguage("de")
	s.call(token, http.MethodPatch, "/v1/users/"+me.id, map[string]any{"language": "de"})
	v.open("/customers/" + customer)
	v.see("29.02.1980")
	v.clickText(v.text("do.edit"))
	valueIs(v, "29.02.1980")
	v.until(`!document.querySelector('input[type=date], input[type=datetime-local]') && document.querySelector('` + field + `').placeholder === 'TT.MM.JJJJ'`)

	v.write(field, "31.02.1980")
	v.click(`dialog button[type=submit]`)
	v.see("Geben Sie ein Datum wie 31.12.2026 ein.")
	v.until(`document.activeElement === document.querySelector('` + field + `')`)
	v.picture("date_invalid")

	v.write(field, "1981-03-01")
	v.keys(kb.Tab)
	valueIs(v, "01.03.1981")
	v.keys(kb.Enter)
	v.until(`document.querySelector('.calendar:popover-open')?.contains(document.activeElement) && document.activeElement.getAttribute('aria-label') === '1. März 1981'`)
	v.examine(view{name: "calendar", drawn: `.calendar td button`})
	v.picture("calendar")
	v.keys(kb.ArrowDown + kb.ArrowRight)
	v.until(`document.activeElement.getAttribute('aria-label') === '9. März 1981'`)
	v.keys(kb.PageDown + kb.Enter)
	v.until(`!document.querySelector('.calendar') && document.querySelector('dialog')`)
	valueIs(v, "09.04.1981")
	v.keys(kb.Tab + kb.Enter)
	v.until(`document.querySelector('.calendar:popover-open')`)
	v.keys(kb.Escape)
	v.until(`!document.querySelector('.calendar') && document.querySelector('dialog')`)
	v.click(`dialog button[type=submit]`)
	v.gone(`dialog`)
	if got := s.call(token, http.MethodGet, "/v1/customers/"+customer, nil)["date_of_birth"]; got != "1981-04-09" {
		t.Errorf("the customer was born on %v", got)
	}
	v.see("09.04.1981")

	v.setLanguage("en")
	s.call(token, http.MethodPatch, "/v1/users/"+me.id, map[string]any{"language": "en"})
	v.open("/customers/" + customer)
	v.see("1981-04-09")
	v.clickText(v.text("do.edit"))
	v.write(field, "27.04.1948")
	v.keys(kb.Tab)
	valueIs(v, "1948-04-27")
}

// A right can end at a day and a time, and text that is neither is not saved.
func TestDates_WithATime(t *testing.T) {
	s := sharedServer(t)
	me, holder := s.newPerson("Administrator"), s.newPerson("Customer")
	v := signedInAt(t, s, desk, me, "/admin/users/"+holder.id)
	const field = `fieldset .date-field input`
	v.write(field, "2099-01-31, 25:00")
	v.keys(kb.Tab)
	v.see("Enter a date such as 2026-12-31, 08:00.")
	v.until(`[...document.querySelectorAll('button')].find((one) => one.innerText === 'Save' && one.closest('.card').querySelector('fieldset .date-field')).disabled`)
	v.write(field, "31.01.2099 8:05")
	v.keys(kb.Tab)
	v.until(`document.querySelector('` + field + `').value === '2099-01-31, 08:05' && !document.querySelector('.field-error')`)
}
