package browser_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// An administrator invites a person, who opens the link of the message, chooses a password and is signed in. The link does not
// work twice.
func TestInvitation_FromTheDialogToTheFirstSession(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	v := signedIn(t, s, desk, me)
	address := "invited-by-" + me.login
	v.goTo("/admin/users")
	v.clickText(v.text("invite.new"))
	v.write(`dialog input[name=email]`, address)
	v.write(`dialog input[name=display_name]`, "Ines Meier")
	v.until(`[...document.querySelectorAll('dialog label')].some((label) => label.innerText.includes('Advisor'))`)
	v.eval(`[...document.querySelectorAll('dialog label')].find((label) => label.innerText.includes('Advisor')).querySelector('input').click()`)
	v.picture("invite")
	v.click(`dialog button[type=submit]`)
	v.until(`[...document.querySelectorAll('main table.data bdi')].some((cell) => cell.innerText === '` + address + `')`)
	v.picture("invitations")

	guest := newVisitor(t, s, look{width: 390, height: 844})
	link := s.invitationLink(s.token(me), address)
	guest.open(link)
	guest.until(`document.querySelector('h1')?.innerText.includes('Ines Meier') && document.querySelector('input[name=email]').value === '` + address + `'`)
	guest.until(`location.hash === ''`) // the token does not stay in the address
	guest.picture("invitation")
	guest.write(`input[name=password]`, "violet paper boats 77")
	guest.click(`button[type=submit]`)
	guest.until(`document.querySelector('.figures, .home, main h1') && location.pathname === '/'`)

	late := newVisitor(t, s, desk)
	late.expect("404")
	late.open(link)
	late.until(`document.querySelector('a.button[href="/signin"]') && !document.querySelector('input[name=password]')`)
}

// invitationLink returns path and fragment of the link in the latest message to an address.
func (s *testServer) invitationLink(token, address string) string {
	s.t.Helper()
	rows := s.call(token, http.MethodGet, "/v1/notifications/deliveries?search.to="+address, nil)["data"].([]any)
	text := rows[0].(map[string]any)["text"].(string)
	at := strings.Index(text, "/invitation#")
	link, _, _ := strings.Cut(text[at:], "\n")
	return link
}

// Changes of the matrix are collected, saved with one request, and can be reached with the arrow keys.
func TestMatrix_CollectsChanges(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	role := s.call(token, http.MethodPost, "/v1/rbac/roles", map[string]any{"name": "Clerk " + me.login})["id"].(string)
	v := signedInAt(t, s, desk, me, "/admin/roles/"+role)
	v.until(`document.querySelector('.matrix tbody input')`)
	v.eval(`document.querySelector('.matrix tbody tr:nth-child(2) td input').focus()`)
	v.keys(kb.ArrowDown)
	v.keys(kb.ArrowRight)
	v.until(`document.activeElement === document.querySelectorAll('.matrix tbody tr:nth-child(3) td input')[1]`)
	v.keys(" ")
	v.eval(`document.querySelectorAll('.matrix tbody tr:nth-child(4) td input')[1].click()`)
	v.until(`document.querySelectorAll('.matrix .changed').length === 2`)
	v.picture("matrix")
	v.click(`.save-bar button:last-child`)
	v.until(`!document.querySelector('.save-bar') && document.querySelectorAll('.matrix input:checked').length === 2`)
	grants := s.call(token, http.MethodGet, "/v1/rbac/grants?limit=100&search.role_id="+role, nil)["data"].([]any)
	permissions := slices.DeleteFunc(grants, func(grant any) bool { return grant.(map[string]any)["endpoint"] != nil }) // the endpoints that they need
	if len(permissions) != 2 {
		t.Errorf("got %v", permissions)
	}

	v.eval(`document.querySelectorAll('.matrix tbody tr:nth-child(4) td input')[2].click()`)
	s.call(token, http.MethodPut, "/v1/rbac/roles/"+role+"/permissions", map[string]any{"types": []any{}})
	v.expect("412")
	v.eval(`document.querySelector('.save-bar button:last-child').click()`) // a message may cover it for a moment
	v.until(`document.querySelector('main [role=alert]')`)                  // another request has changed it
	v.clickText(v.text("matrix.undo"))
	v.until(`document.querySelectorAll('.matrix input:checked').length === 0`)
}

// The dialog names the users who may see a record with their reasons; callers without the right have no button.
func TestWhoSees_NamesTheReasons(t *testing.T) {
	s := sharedServer(t)
	me, other := s.newPerson("Administrator"), s.newPerson("Customer")
	const name = "Nora Beglinger"
	s.call(s.token(other), http.MethodPatch, "/v1/users/"+other.id, map[string]any{"display_name": name})
	customer := s.newCustomer(s.token(other), "Nora", "Frei")
	v := signedInAt(t, s, desk, me, "/customers/"+customer)
	v.clickText(v.text("access.who_sees"))
	v.write(`dialog input[type=search]`, "no such name")
	v.until(`document.querySelector('dialog').innerText.includes(` + strconv.Quote(v.text("who.nobody")) + `)`)
	v.eval(`(() => { const field = document.querySelector('dialog input[type=search]'); field.value = ''; field.dispatchEvent(new Event('input', { bubbles: true })); })()`)
	v.until(`document.querySelectorAll('dialog .holders > li').length > 1`)
	v.picture("who-sees")
	v.choose(`dialog select`, "delete")
	v.write(`dialog input[type=search]`, name) // The administrators of other tests may fill the page.
	v.until(`document.querySelector('dialog').innerText.includes(` + strconv.Quote(v.text("who.relation_creator")) + `)`)

	v.goTo("/admin/users/" + other.id)
	v.write(`input[name=rec_id]`, unknownID)
	v.clickText(v.text("access.check"))
	v.until(`document.body.innerText.includes(` + strconv.Quote(v.text("access.missing")) + `)`)
	v.write(`input[name=rec_id]`, customer)
	v.clickText(v.text("access.check"))
	v.until(`document.querySelector('.reasons')?.innerText.includes(` + strconv.Quote(v.text("who.relation_creator")) + `)`)

	visitor := signedInAt(t, s, desk, other, "/customers/"+customer)
	visitor.until(`document.querySelector('main h1')?.innerText.includes('Frei')`)
	if ask[bool](visitor, `document.body.innerText.includes(`+strconv.Quote(v.text("access.who_sees"))+`)`) {
		t.Error("a customer has the button")
	}
}

// An auditor follows a record and a person, and sees what changed.
// A role that is chosen while the console loads the user again, after a change was saved, stays chosen.
func TestUser_KeepsAChoiceWhileTheRecordIsLoaded(t *testing.T) {
	p := newProxy(t, sharedServer(t))
	me, other := p.newPerson("Administrator"), p.newPerson("Customer")
	v := signedInAt(t, p.testServer, desk, me, "/admin/users/"+other.id)
	box := func(role string) string {
		return fmt.Sprintf(`[...document.querySelectorAll('fieldset .field.check')].find((one) => one.innerText.startsWith(%q))?.querySelector('input')`, role)
	}
	save := func() {
		v.until(`document.querySelector('fieldset ~ .actions button:not(:disabled)')`)
		v.eval(`document.querySelector('fieldset ~ .actions button').click()`) // a message may cover it
	}
	v.until(box("Advisor") + ` && !document.querySelector('.skeleton')`)
	v.eval(box("Advisor") + `.click()`)
	loading, release := make(chan struct{}), make(chan struct{})
	p.onNext(http.MethodGet, "/v1/users/"+other.id, delayResponse(loading, release))
	save()
	v.seeMessage("Saved")
	happens(t, "the user to be loaded again", loading)
	v.eval(box("Customer") + `.click()`)
	v.until(`!` + box("Customer") + `.checked`)
	close(release)
	save()
	v.seeMessage("Saved")
	v.until(box("Advisor") + `.checked && !` + box("Customer") + `.checked`)
	if roles := fmt.Sprint(p.call(p.token(me), http.MethodGet, "/v1/users/"+other.id, nil)["roles"]); roles != "[Advisor]" {
		t.Errorf("the user has the roles %s", roles)
	}
}

func TestAudit_ShowsChangedFields(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Administrator")
	token := s.token(me)
	customer := s.newCustomer(token, "Nora", "Frei")
	s.call(token, http.MethodPut, "/v1/customers/"+customer, map[string]any{"last_name": "Frei-Kunz"})
	v := signedInAt(t, s, desk, me, "/admin/audit?q="+customer)
	v.until(`document.querySelectorAll('main tbody tr').length === 2 && document.querySelector('main tbody a[href="/customers/` + customer + `"]')`)
	v.until(`document.querySelector('main tbody a[href="/customers/` + customer + `"]').innerText === 'Nora Frei-Kunz'`)
	v.until(`/\d\d:\d\d:\d\d \S/.test(document.querySelector('main tbody time').innerText)`) // with seconds and the zone
	v.eval(`document.querySelector('main tbody button.link').click()`)
	v.until(`document.querySelector('dialog table.changes')?.innerText.includes('Frei-Kunz')`)
	v.picture("changed-fields")
	v.clickText(v.text("audit.by_actor"))
	v.until(`location.search.includes('actor=` + me.id + `') && document.querySelector('.chosen') && !document.querySelector('dialog')`)
	v.picture("audit")
}

// The health screen draws what it has measured, and says it in words.
func TestHealth_DrawsItsHistory(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, desk, s.newPerson("Administrator"), "/admin/health")
	v.until(`document.querySelectorAll('.tile').length >= 8`)
	v.goTo("/admin/roles")
	v.until(`document.querySelector('table.data')`)
	v.goTo("/admin/health") // a second measurement
	v.until(`document.querySelector('.spark polyline') && document.querySelector('.spark').getAttribute('aria-label').includes('2') || document.querySelectorAll('.spark polyline').length > 2`)
	v.picture("health")
}

// The events of a webhook are chosen from a list.
func TestWebhook_EventsAreChosen(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, desk, s.newPerson("Administrator"), "/admin/webhooks")
	v.clickText(v.text("webhooks.new"))
	v.until(`document.querySelectorAll('dialog[open] .event-types details').length > 5`)
	v.eval(`[...document.querySelectorAll('dialog[open] .event-types label')].find((one) => one.innerText.includes('customers.created') ||
		one.textContent.includes('customers.created')).querySelector('input').click()`)
	v.until(`document.querySelector('dialog[open] .event-types [role=status]').innerText.startsWith('1 ')`)
}
