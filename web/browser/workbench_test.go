package browser_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
)

// A record opens beside its list. J walks to the next one, the address and the Back button follow, and a narrower window keeps an open
// form with what was typed.
func TestWorkbench_ARecordOpensBesideItsList(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	token := s.token(me)
	last := fmt.Sprint("Werkbank", registered.Add(1))
	for _, first := range []string{"Anna", "Berta", "Carla"} {
		s.newCustomer(token, first, last)
	}
	v := signedInAt(t, s, desk, me, "/customers?q="+last+"")
	v.until(`document.querySelectorAll('.row-link').length === 3 && document.querySelector('main h1').innerText === 'Customers'`)
	name := `document.querySelector('.bench-record h1')?.innerText`
	current := `document.querySelector('.bench-list [aria-current=page]')?.innerText`
	v.eval(`document.querySelector('.row-link').click()`)
	v.until(`document.querySelectorAll('.bench-list .row-link').length === 3 && document.querySelectorAll('main h1').length === 1`)
	v.until(`document.querySelector('.bench-record .card') && ` + name + `.includes(` + current + `.trim())`)
	if height := ask[float64](v, `document.querySelector('.bench-list tbody tr').getBoundingClientRect().height`); height > 37 {
		t.Errorf("a row has %.0f pixels", height)
	}
	opened := ask[string](v, `location.pathname`)
	v.keys("j")
	v.until(fmt.Sprintf(`location.pathname !== %q && document.querySelector('.bench-record .card') && `, opened) + name + `.includes(` + current + `.trim())`)
	v.eval(`history.back()`)
	v.until(fmt.Sprintf(`location.pathname === %q && document.querySelector('.bench-record .card') && `, opened) + name + `.includes(` + current + `.trim())`)
	v.clickText(v.text("do.edit"))
	v.write(form+` input[name=first_name]`, "Typed")
	v.do(chromedp.EmulateViewport(768, 1000))
	v.until(`!document.querySelector('.bench.open')`)
	v.do(chromedp.EmulateViewport(desk.width, desk.height))
	v.until(`document.querySelector('.bench.open')`)
	if got := ask[string](v, `document.querySelector('dialog input[name=first_name]')?.value ?? ''`); got != "Typed" {
		t.Errorf("a change of the width left %q in the form", got)
	}
}

// A value is edited in place and can be restored; the stream of the customer has their tasks.
func TestWorkbench_EditsInPlaceAndShowsActivity(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	token := s.token(me)
	customer := s.newCustomer(token, "Luca", "Bernasconi")
	s.call(token, http.MethodPost, "/v1/customers/"+customer+"/tasks", map[string]any{"title": "Sign the contract", "category": "sign"})
	v := signedInAt(t, s, desk, me, "/customers/"+customer)
	v.until(`document.querySelector('.stream')?.innerText.includes('Sign the contract')`)
	v.holdTimers(undoTime)
	v.click(`.in-place button`)
	v.write(`.in-place-form input`, "Marco\r")
	v.until(`document.querySelector('main h1').innerText.includes('Marco Bernasconi')`)
	v.click(`.toast button.undo`)
	v.until(`document.querySelector('main h1').innerText.includes('Luca Bernasconi')`)

	// Another change after the edit is not undone with it.
	v.expect("412")
	v.click(`.in-place button`)
	v.write(`.in-place-form input`, "Marco\r")
	v.until(`document.querySelector('main h1').innerText.includes('Marco Bernasconi')`)
	s.call(token, http.MethodPut, "/v1/customers/"+customer, map[string]any{"first_name": "Mario"})
	v.until(`document.querySelector('main h1').innerText.includes('Mario Bernasconi')`)
	v.click(`.toast button.undo`)
	v.until(`document.querySelector('.toast.bad')`)
	if got := s.call(token, http.MethodGet, "/v1/customers/"+customer, nil)["first_name"]; got != "Mario" {
		t.Errorf("the undo has changed the first name to %v", got)
	}
}
