package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Ctrl K opens the palette on every screen. Typing and Enter open a screen or a record; Escape restores the focus.
func TestCommandPalette_OpensScreensAndRecords(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	id := s.newCustomer(s.token(me), "Loredana", "Findling")
	v := signedIn(t, s, desk, me)
	v.keys("k", chromedp.KeyModifiers(kb.ModifierCtrl))
	v.until(`document.querySelector('dialog.palette[open]') && document.activeElement.getAttribute('role') === 'combobox'`)
	v.keys("findling")
	v.until(`document.querySelector('.palette [aria-selected=true]')?.innerText.includes('Loredana Findling')`)
	v.keys("k", chromedp.KeyModifiers(kb.ModifierCtrl)) // The palette is open already.
	v.keys(kb.Enter)
	v.until(`location.pathname === '/customers/` + id + `' && document.querySelector('h1').innerText === 'Loredana Findling' && !document.querySelector('dialog')`)

	v.click(`.palette-button`)
	v.until(`document.querySelector('dialog.palette[open]')`)
	v.keys("audit")
	v.until(`document.querySelector('.palette [aria-selected=true]')?.innerText === 'Audit trail'`)
	v.keys(kb.Escape)
	v.gone(`dialog`)
	v.until(`document.activeElement.classList.contains('palette-button')`)
}

// A customer's country is shown by its name in the user's language, not by its code.
func TestCustomer_ShowsCountriesByName(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	v := signedInAt(t, s, desk, me, "/customers/"+s.newCustomer(s.token(me), "Anna", "Müller"))
	v.see("Switzerland")
	v.choose(`select.language`, "it")
	v.see("Svizzera")
	if text := ask[string](v, `document.querySelector('main').innerText`); strings.Contains(text, "CHE") {
		t.Errorf("a code is shown: %s", text)
	}
}

// The overview groups the messages of one chat and names their author.
func TestOverview_GroupsMessagesByChat(t *testing.T) {
	s := sharedServer(t)
	me, other := s.newPerson("Administrator"), s.newPerson("Advisor")
	s.setName(other, "Rahel Zbinden")
	token := s.token(other)
	chat := s.call(token, http.MethodPost, "/v1/chats", map[string]any{"participants": []string{me.id}})["id"].(string)
	for _, words := range []string{"Good morning", "Is the file complete?"} {
		s.call(token, http.MethodPost, "/v1/chats/"+chat+"/messages", map[string]any{"content": words})
	}
	v := signedIn(t, s, desk, me)
	v.until(`document.querySelector('.activity')?.innerText.includes('2 new messages from Rahel Zbinden')`)
	v.until(`document.querySelector('.activity a.plain').getAttribute('href') === '/chats/` + chat + `'`)
}

// The names that one user saw are deleted at sign-out. Staff see what others sign in with; customers must not.
func TestSignOut_ForgetsPeople(t *testing.T) {
	s := sharedServer(t)
	staff, customer, rahel := s.newPerson("Advisor"), s.newPerson("Customer"), s.newPerson("Advisor")
	token := s.token(rahel)
	for _, p := range []person{staff, customer} {
		s.call(token, http.MethodPost, "/v1/chats", map[string]any{"participants": []string{p.id}})
	}
	v := signedIn(t, s, desk, staff)
	v.click(`nav a[href="/chats"]`)
	v.see(rahel.login)
	v.pressSignOut()
	v.until(`location.pathname === '/signin'`)
	v.write(`input[name=login]`, customer.login)
	v.write(`input[name=password]`, customer.password)
	v.click(`button[type=submit]`)
	v.click(`nav a[href="/chats"]`)
	v.until(`document.querySelector('.chats .row-link .person')?.innerText.startsWith('Unnamed user')`)
}

// Users without a role see an explanation and can sign out.
func TestRegistrant_SeesAnExplanation(t *testing.T) {
	s := sharedServer(t)
	v := newVisitor(t, s, desk)
	v.expect("403")
	v.open("/healthz")
	p := person{login: "waiting-for-a-role", password: "four words in a row"}
	s.call("", http.MethodPost, "/v1/users/initiate-registration", map[string]any{"credential_type": "username", "credential_value": p.login, "password": p.password,
		"terms_accepted": true, "privacy_policy_accepted": true}, "X-API-Key", apiKey)
	v.openSignedOut("/signin")
	v.write(`input[name=login]`, p.login)
	v.write(`input[name=password]`, p.password)
	v.click(`button[type=submit]`)
	v.see("when the bank has assigned you a role")
	v.clickText("Sign out")
	v.until(`location.pathname === '/signin' && document.querySelector('input[name=login]')`)
}

// The finder finds a customer by any spelling, marks what matched, runs commands, and says that nothing fits only if nothing exists.
func TestFinder_FindsRecordsAndRunsCommands(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	id := s.newCustomer(s.token(me), "Ursina", "Züllig")
	for _, size := range []look{desk, {width: 360, height: 740}} {
		v := signedIn(t, s, size, me)
		show := func() {
			v.click(`.palette-button`)
			v.until(`document.activeElement?.matches('dialog.palette[open] input') && document.activeElement.value === ''`) // not the former one
		}
		show()
		v.keys("zuellig URSINA")
		v.until(`document.querySelector('.palette [role=group] [aria-selected=true]')?.innerText.includes('Ursina Züllig')`)
		v.until(`[...document.querySelectorAll('.palette mark')].map((one) => one.innerText).join() === 'Ursina,Züllig'`)
		v.until(`document.querySelector('.palette-group').innerText === 'Customers'`)
		v.until(`document.documentElement.scrollWidth <= innerWidth && document.querySelector('.palette > article').getBoundingClientRect().right <= innerWidth`)
		v.keys(kb.Enter)
		v.until(`location.pathname === '/customers/` + id + `'`)

		show()
		v.keys("xyzzyx")
		v.until(`document.querySelector('.palette [role=status]')?.innerText === 'Nothing matches “xyzzyx”.'`)
		v.keys(kb.Escape)
		v.gone(`dialog`)

		show()
		v.keys("dark")
		v.until(`document.querySelector('.palette [aria-selected=true]')?.innerText === 'Appearance: Dark'`)
		v.keys(kb.Enter)
		v.until(`document.documentElement.dataset.theme === 'dark' && !document.querySelector('dialog')`)
		show()
		v.keys("light")
		v.until(`document.querySelector('.palette [aria-selected=true]')?.innerText === 'Appearance: Light'`)
		v.keys(kb.Enter)
		v.until(`document.documentElement.dataset.theme === 'light'`)

		show()
		v.keys("new cust")
		v.until(`document.querySelector('.palette [aria-selected=true]')?.innerText === 'New customer'`)
		v.keys(kb.Enter)
		v.until(`location.pathname === '/customers' && document.querySelector('dialog[open] form')`)
	}
}
