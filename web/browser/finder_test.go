package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// Ctrl K opens the finder from anywhere; typing and Enter lead to a record, and Escape gives the focus back.
func TestFinder_LeadsToScreensAndRecords(t *testing.T) {
	b := openBank(t)
	id := b.newCustomer(b.signIn(adminLogin, adminPassword), "Luca", "Bernasconi")
	v := signedIn(t, b, desk, adminLogin, adminPassword)
	v.eval(`document.querySelector('.finder').focus()`)
	v.press("k")
	v.until(`document.querySelector('dialog.palette[open]') && document.activeElement.getAttribute('role') === 'combobox'`)
	v.keys("bernasc")
	v.until(`document.querySelector('.palette [aria-selected=true]')?.innerText.includes('Luca Bernasconi')`)
	v.examineHere("finder")
	v.press("k")
	v.until(`document.querySelector('dialog.palette[open] input').value === 'bernasc'`) // It is open already.
	v.keys(kb.Enter)
	v.until(`location.pathname === '/customers/` + id + `' && document.querySelector('h1').innerText === 'Luca Bernasconi' && !document.querySelector('dialog')`)

	v.click(`.finder`)
	v.until(`document.querySelector('dialog.palette[open]')`)
	v.keys("audit")
	v.until(`document.querySelector('.palette [aria-selected=true]')?.innerText === 'Audit trail'`)
	v.keys(kb.Escape)
	v.gone(`dialog`)
	v.until(`document.activeElement.classList.contains('finder')`)
	v.click(`.finder`)
	v.until(`document.querySelector('dialog.palette[open]')`)
	v.keys("zzzz")
	v.see("Nothing fits.")
}

// Codes are for machines: a customer's country is shown by its name, in the language of the reader.
func TestCustomer_ShowsCountriesByName(t *testing.T) {
	b := openBank(t)
	id := b.newCustomer(b.signIn(adminLogin, adminPassword), "Anna", "Müller")
	v := signedIn(t, b, desk, adminLogin, adminPassword)
	v.open("/customers/" + id)
	v.see("Switzerland")
	v.choose(`select.language`, "it")
	v.see("Svizzera")
	if text := ask[string](v, `document.querySelector('main').innerText`); strings.Contains(text, "CHE") {
		t.Errorf("a code is shown: %s", text)
	}
}

// The names that chats and tasks brought along belong to whoever was signed in.
func TestSignOut_ForgetsTheNamesOfOthers(t *testing.T) {
	b := openBank(t)
	const email, password = "rahel@example.ch", "another four good words"
	rahel := b.newUser(email, password, "Advisor")
	admin := b.signIn(adminLogin, adminPassword)
	b.call(admin, "POST", "/v1/chats", map[string]any{"participants": []string{rahel}, "metadata": map[string]any{"names": map[string]any{rahel: "Rahel Zbinden"}}})
	v := signedIn(t, b, desk, adminLogin, adminPassword)
	v.open("/chats")
	v.see("Rahel Zbinden")
	v.click(`.top button[title]:last-of-type`)
	v.until(`location.pathname === '/signin'`)
	other := b.newUser("other@example.ch", password, "Advisor")
	b.call(admin, "POST", "/v1/chats", map[string]any{"participants": []string{rahel, other}, "metadata": map[string]any{"title": "Without names"}})
	v.enter("other@example.ch", password)
	v.click(`a[href="/chats"]`)
	v.click(`.chat-list a`)
	v.see("Unnamed user")
	if text := ask[string](v, `document.body.innerText`); strings.Contains(text, "Zbinden") {
		t.Errorf("what somebody else was told is shown: %s", text)
	}
}
