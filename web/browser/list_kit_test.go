package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// kitList opens the list of 45 customers with a name of their own.
func kitList(t *testing.T, l look, name string) (*visitor, *testServer, person) {
	t.Helper()
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	for i := range 45 {
		s.newCustomer(token, fmt.Sprintf("Kit %02d", i), name)
	}
	v := signedInAt(t, s, l, me, "/customers?sort=created_at&q="+name)
	v.until(`document.querySelectorAll('table.data tbody tr').length === 20`)
	return v, s, me
}

// inMenu opens a menu of the list's tools and waits for a condition in it. A screen that takes the focus late closes the menu; then it
// opens it again.
func (v *visitor) inMenu(name, condition string) {
	v.t.Helper()
	v.until(fmt.Sprintf(`(() => { const button = [...document.querySelectorAll('.menu > button')].find((one) => one.innerText.trim() === %q);
		if (button?.getAttribute('aria-expanded') === 'false') button.click();
		return Boolean(%s); })()`, name, condition))
}

// The columns, the rows of a page and the page are chosen with the keyboard too, and the first two are kept.
func TestListKit_ColumnsRowsAndPages(t *testing.T) {
	v, _, _ := kitList(t, desk, "Spalten")
	v.until(`document.querySelector('.pager').innerText.includes('of 3')`)
	v.write(`.pager input[type=number]`, "3")
	v.keys(kb.Enter)
	v.until(`document.querySelectorAll('table.data tbody tr').length === 5 && location.search.includes('offset=40')`)
	v.write(`.pager input[type=number]`, "99")
	v.keys(kb.Enter)
	v.until(`document.querySelector('.pager input').value === '3'`)
	v.choose(`.pager select`, "50")
	v.until(`document.querySelectorAll('table.data tbody tr').length === 45 && !location.search.includes('offset')`)
	v.inMenu("Columns", `document.querySelector('.menu-panel label')`)
	before := ask[int](v, `document.querySelectorAll('thead th').length`)
	v.eval(`[...document.querySelectorAll('.menu-panel label')].find((one) => one.innerText.trim() === 'Type').querySelector('input').click()`)
	v.until(fmt.Sprintf(`document.querySelectorAll('thead th').length === %d`, before-1))
	v.keys(kb.Escape)
	v.until(`!document.querySelector('.menu-panel:not([hidden])') && document.activeElement.innerText.trim() === 'Columns'`)
	v.do(chromedp.Reload())
	v.until(fmt.Sprintf(`document.querySelectorAll('thead th').length === %d && document.querySelectorAll('tbody tr').length === 45`, before-1))
}

// A view contains filters, columns and rows of a page, and follows the user to another browser.
func TestListKit_SavedViews(t *testing.T) {
	v, s, me := kitList(t, desk, "Ansicht")
	v.choose(`.pager select`, "50")
	v.until(`document.querySelectorAll('table.data tbody tr').length === 45`)
	v.inMenu("Views", `document.body.innerText.includes('No saved views yet.')`)
	v.write(`.menu-form input`, "My forty-five")
	v.keys(kb.Enter)
	v.inMenu("Views", `document.querySelector('.menu-panel li')?.innerText.includes('My forty-five')`)
	other := signedInAt(t, s, desk, me, "/customers")
	other.until(`document.querySelector('table.data')`)
	other.clickText("My forty-five") // the tab above the list
	other.until(`document.querySelectorAll('table.data tbody tr').length === 45 && location.search.includes('Ansicht')`)
	other.until(`document.querySelector('.tabs a[aria-current=page]')?.innerText.includes('My forty-five')`)
	other.inMenu("Views", `document.querySelector('.menu-panel li button[aria-label]')`)
	other.click(`.menu-panel li button[aria-label]`)
	other.inMenu("Views", `document.body.innerText.includes('No saved views yet.')`)
}

// Rows are selected one by one, as a range with Shift, and all of the page; actions change them after a question.
func TestListKit_SelectsRowsAndChangesThem(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	customer := s.newCustomer(token, "Viele", "Zahler")
	company := fmt.Sprintf("Kit %s AG", me.id[:8])
	for i := range 8 {
		s.call(token, http.MethodPost, "/v1/payers", map[string]any{"customer_id": customer, "name": fmt.Sprint("P", i), "company": company, "country": "CHE"})
	}
	v := signedInAt(t, s, desk, me, "/payers?q="+strings.ReplaceAll(company, " ", "+"))
	v.until(`document.querySelectorAll('table.data tbody tr').length === 8`)
	boxes := `[...document.querySelectorAll('tbody .select input')]`
	v.eval(boxes + `[1].click()`)
	v.eval(boxes + `[4].dispatchEvent(new MouseEvent('click', { shiftKey: true, bubbles: true, cancelable: true }))`)
	v.until(boxes + `.filter((one) => one.checked).length === 4 && document.querySelector('.bulk').innerText.includes('4 selected')`)
	v.until(`document.querySelector('thead .select input').indeterminate`)
	v.eval(boxes + `[0].focus()`)
	v.keys(" ")
	v.see("5 selected")
	v.clickText("Clear the selection")
	v.gone(`.bulk`)
	v.click(`thead .select input`)
	v.see("8 selected")
	v.click(`thead .select input`)
	v.gone(`.bulk`)
	v.eval(boxes + `[2].click(); ` + boxes + `[3].click()`)
	v.clickText("Deactivate")
	v.see("2 payers will be deactivated")
	v.click(confirmation)
	v.seeMessage("2 records changed")
	v.gone(`.bulk`)
	v.until(`[...document.querySelectorAll('tbody tr')].filter((row) => row.innerText.includes('Inactive')).length === 2`)
}

// Reviewers take selected customers into review with one request.
func TestListKit_TakesCustomersIntoReview(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	for i := range 3 {
		id := s.newCustomer(token, fmt.Sprint("Fall ", i), "Stapel"+me.id[:6])
		s.call(token, http.MethodPut, "/v1/customers/"+id+"/kyc", map[string]any{"documents": []any{map[string]any{"type": "passport", "number": fmt.Sprint("X", i), "expiry_date": "2099-01-01", "country": "CHE"}}})
	}
	v := signedInAt(t, s, desk, me, "/customers?q=Stapel"+me.id[:6])
	v.until(`document.querySelectorAll('table.data tbody tr').length === 3`)
	v.click(`thead .select input`)
	v.clickText("Take into review")
	v.seeMessage("3 records changed")
	v.until(`[...document.querySelectorAll('tbody tr')].filter((row) => row.innerText.includes('In review')).length === 3`)
}

// The export contains all rows that the filters select, not only those of the page.
func TestListKit_Exports(t *testing.T) {
	v, _, _ := kitList(t, desk, "Ausgabe")
	v.eval(`window.saved = null; URL.createObjectURL = (blob) => { blob.text().then((text) => (window.saved = text)); return 'blob:x'; };
		HTMLAnchorElement.prototype.click = function click() { window.savedName = this.download; }`)
	v.until(`(() => { const found = [...document.querySelectorAll('.list-tools button')].find((one) => one.innerText.trim() === 'Export');
		found?.dispatchEvent(new MouseEvent('click', { bubbles: true })); return Boolean(found); })()`)
	v.until(`window.saved`)
	if rows := ask[int](v, `window.saved.trim().split('\r\n').length`); rows != 46 {
		t.Errorf("the table has %d rows, want 45 and the header", rows)
	}
	if name := ask[string](v, `window.savedName`); !strings.HasPrefix(name, "customers-2") || !strings.HasSuffix(name, ".csv") {
		t.Errorf("the file is called %s", name)
	}
}

// The head of a table stays in view; on paper there is only the table.
func TestListKit_StickyHeadAndPaper(t *testing.T) {
	v, _, _ := kitList(t, look{width: 1440, height: 700}, "Papier")
	v.choose(`.pager select`, "50")
	v.until(`document.querySelectorAll('table.data tbody tr').length === 45`)
	v.eval(`scrollTo(0, 900)`)
	v.until(`scrollY > 800 && Math.abs(document.querySelector('thead th').getBoundingClientRect().top - document.querySelector('.top').getBoundingClientRect().bottom) < 3`)
	v.do(func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"})
		return chromedp.Void{}, err
	})
	for _, hidden := range []string{".side", ".top", ".filters", ".list-tools", ".pager"} {
		v.until(fmt.Sprintf(`getComputedStyle(document.querySelector(%q)).display === 'none'`, hidden))
	}
	v.do(chromedp.EmulateViewport(paperWidth, 1000))
	v.until(`getComputedStyle(document.querySelector('table.data')).display === 'table' &&
		getComputedStyle(document.querySelector('table.data tbody tr')).display === 'table-row'`)
	v.until(fmt.Sprintf(`document.documentElement.scrollWidth <= %d`, paperWidth))
	v.until(`document.querySelector('.printed').innerText.includes(String(new Date().getFullYear()))`)
	v.picture("paper")
}

// paperWidth is the width of A4 between its margins of 15 mm, in CSS pixels.
const paperWidth = 680

// Countries are found by a part of their name in the user's language; codes are accepted, too.
func TestCountryField_FindsByName(t *testing.T) {
	s := sharedServer(t)
	v := signedIn(t, s, desk, s.newPerson("Administrator"))
	v.setLanguage("fr")
	v.open("/customers?new=1")
	v.write(`input[name=first_name]`, "Elsa")
	v.write(`input[name=last_name]`, "Pays")
	v.write(`input[name=email]`, "elsa@example.ch")
	v.write(`input[name=nationality]`, "etats")
	v.until(`document.querySelector('dialog [role=option][aria-selected=true]')?.innerText.includes('États-Unis')`)
	v.click(`dialog [role=option][aria-selected=true]`)
	v.until(`document.querySelector('input[name=nationality]').value === 'États-Unis'`)
	v.write(`input[name="address.city"]`, "Aoste")
	v.write(`input[name="address.country"]`, "it")
	v.keys(kb.Escape)
	v.click(`dialog button[type=submit]`)
	v.until(`document.querySelector('h1')?.innerText === 'Elsa Pays'`)
	v.see("États-Unis")
	v.see("Italie")
}

// A list says that rows have arrived, and leaves those on the screen where they are until the user asks for the new ones. Rows that its
// filters leave out are not counted.
func TestLists_SayThatRowsHaveArrived(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	s.newCustomer(token, "Old", "Ankunft")
	v := signedInAt(t, s, desk, me, "/profile")
	v.until(`document.querySelector('main .segments')`)
	v.eval(`const plain = window.fetch; window.fetch = async (...all) => { const answer = await plain(...all);
		if (String(all[0]?.url ?? all[0]).includes('/v1/events?')) window.followed = true; return answer }`)
	v.goTo("/customers?q=Ankunft")
	v.until(`window.followed && document.querySelectorAll('table.data tbody tr').length === 1`)
	for _, name := range []string{"First", "Second", "Third"} {
		s.newCustomer(token, name, "Ankunft")
		s.newCustomer(token, name, "Anderswo")
	}
	v.see("Show 3 new")
	if n := ask[int](v, `document.querySelectorAll('table.data tbody tr').length`); n != 1 {
		t.Errorf("%d rows before the user asked, want one", n)
	}
	v.picture("list-new-rows")
	v.clickText("Show 3 new")
	v.until(`document.querySelectorAll('table.data tbody tr').length === 4`)
	v.gone(`.new-rows button`)
}
