package browser_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// hostileName is the name that a customer writes for another user into a chat and a task.
const hostileName = "Mallory the Boss"

// userList is the list of users. Another table above it has the invitations, also those of other tests on the shared server.
const userList = `section[aria-label="Users"] table`

// setName sets a user's display name.
func (s *testServer) setName(p person, name string) {
	s.t.Helper()
	s.call(s.token(p), http.MethodPatch, "/v1/users/"+p.id, map[string]any{"display_name": name})
}

// plantNames creates a chat as a customer and a task as an advisor, both with another name for an administrator. It returns
// their paths and the id of the customer record that the customer owns.
func plantNames(s *testServer, mallory, victim person) (chat, task, customer string) {
	s.t.Helper()
	token := s.token(mallory)
	names := map[string]any{victim.id: hostileName, mallory.id: adminLogin, "constructor": map[string]any{"x": 1}}
	chat = "/chats/" + s.call(token, http.MethodPost, "/v1/chats", map[string]any{
		"participants": []string{victim.id}, "metadata": map[string]any{"names": names}})["id"].(string)
	s.call(token, http.MethodPost, "/v1"+chat+"/messages", map[string]any{"content": "Good morning"})
	customer = s.newCustomer(token, "Mallory", "Muster")
	made := s.call(s.token(s.newPerson("Advisor")), http.MethodPost, "/v1/customers/"+customer+"/tasks", map[string]any{"title": "Look here", "category": "approve",
		"assignees": []any{map[string]any{"user_id": victim.id, "name": hostileName}}})
	return chat, "/customers/" + customer + "/tasks/" + made["id"].(string), customer
}

// The console names users by their display names only, never by metadata of a chat or a task. Where trust depends on it,
// the sign-in name and the mark for staff stand beside the name.
func TestPeople_AreNamedByTheirDisplayNames(t *testing.T) {
	s := sharedServer(t)
	victim, mallory := s.newPerson("Administrator"), s.newPerson("Customer")
	s.setName(victim, "Petra Amsler")
	s.setName(mallory, "Malvina Muster")
	chat, task, customer := plantNames(s, mallory, victim)
	staff := s.token(victim)
	for _, status := range []string{"pending", "in_review", "rejected"} { // entries of the KYC history and of the audit trail
		s.call(staff, http.MethodPatch, "/v1/customers/"+customer+"/kyc/status", map[string]any{"kyc_status": status})
	}
	v := signedIn(t, s, desk, victim)
	for _, one := range []struct {
		name, path, within string
		shows              []string
	}{
		{"audit", "/admin/audit?actor=" + victim.id, ".notice.good ~ section table", []string{"Petra Amsler", victim.login, "Staff"}},
		{"chat", chat, ".page-head", []string{"Malvina Muster"}},
		{"task", task, "main .items", []string{"Petra Amsler", "Staff"}},
		{"tasks", "/tasks", ".board", []string{"Look here"}},
		{"administration", "/admin/users/" + mallory.id, ".page-head h1", []string{"Malvina Muster", mallory.login}},
		{"users", "/admin/users?q=amsler", userList, []string{"Petra Amsler", victim.login, "Staff"}},
		{"KYC history", "/customers/" + customer + "/kyc", ".kyc-head ~ .grid-main .timeline", []string{"Petra Amsler", victim.login, "Staff"}},
		{"overview", "/", ".figures ~ .grid-main", []string{"Malvina Muster"}},
	} {
		v.goTo(one.path)
		for _, text := range one.shows {
			v.until(fmt.Sprintf(`document.querySelector(%q)?.innerText.includes(%q) && !document.querySelector('.skeleton')`, one.within, text))
		}
		if text := ask[string](v, `document.documentElement.textContent`); strings.Contains(text, hostileName) {
			t.Errorf("%s shows the name that a customer chose for another user", one.name)
		}
		v.picture("people-" + strings.ReplaceAll(one.name, " ", "-"))
	}
	v.goTo("/admin/users/" + mallory.id)
	v.clickText("Disable")
	v.until(fmt.Sprintf(`['Malvina Muster', %q].every((part) => document.querySelector('dialog[open]')?.innerText.includes(part))`, mallory.login))
	v.picture("people-disable")
}

// A customer sees names without sign-in names, and the mark for staff.
func TestPeople_AreShownToCustomersWithoutSignInNames(t *testing.T) {
	s := sharedServer(t)
	me, advisor, other := s.newPerson("Customer"), s.newPerson("Advisor"), s.newPerson("Customer")
	s.setName(advisor, "Ruth Aebi")
	s.call(s.token(advisor), http.MethodPost, "/v1/chats", map[string]any{"participants": []string{me.id, other.id}, "metadata": map[string]any{"title": "System administration"}})
	v := signedInAt(t, s, desk, me, "/chats")
	v.click(`.chats .row-link`)
	v.until(`document.querySelector('.bench-record .page-head')?.innerText.includes('Ruth Aebi Staff')`)
	v.until(`document.querySelector('.bench-record .page-head').innerText.includes('Unnamed user ')`)
	v.examine(view{name: "thread", drawn: `.page-head h1 .quoted`})
	v.picture("people-thread")
	if text := ask[string](v, `document.querySelector('.page-head h1 .quoted').textContent`); !strings.Contains(text, "chosen by the creator") {
		t.Errorf("the title is announced as %q, without its author", text)
	}
	text := ask[string](v, `document.documentElement.textContent`)
	if strings.Contains(text, advisor.login) || strings.Contains(text, other.login) {
		t.Error("a customer sees what others sign in with")
	}
}

// A name as long as the server allows does not widen the page, and its direction does not affect the text around it.
func TestPeople_LongAndRightToLeftNamesStayInTheirPlace(t *testing.T) {
	s := sharedServer(t)
	me, long, rtl := s.newPerson("Administrator"), s.newPerson("Customer"), s.newPerson("Customer")
	s.setName(long, strings.Repeat("W", 100))
	s.setName(rtl, "שרה לוי")
	chat := s.call(s.token(me), http.MethodPost, "/v1/chats", map[string]any{"participants": []string{long.id, rtl.id}})["id"].(string)
	s.call(s.token(long), http.MethodPost, "/v1/chats/"+chat+"/messages", map[string]any{"content": "Good morning"})
	tasks := "/customers/" + s.newCustomer(s.token(me), "Vreni", "Zbinden") + "/tasks"
	task := s.call(s.token(me), http.MethodPost, "/v1"+tasks, map[string]any{"title": "Sign", "category": "sign", "assignees": []any{map[string]any{"user_id": long.id}}})
	assignee := task["assignees"].([]any)[0].(map[string]any)["id"].(string)
	s.call(s.token(me), http.MethodDelete, "/v1"+tasks+"/"+task["id"].(string)+"/assignees/"+assignee, nil) // an entry of the log with the long name
	for _, l := range []look{desk, {width: 390, height: 800}} {
		v := signedIn(t, s, l, me)
		for i, one := range []struct{ path, within string }{
			{"/chats", ".chats .row-link"}, {"/chats/" + chat, ".thread .message"}, {tasks + "/" + task["id"].(string), ".timeline"}, {"/admin/users/" + rtl.id, ".page-head h1"}, {"/admin/users?q=WW", userList}, {"/admin/users/" + long.id, ".page-head h1"},
		} {
			v.goTo(one.path)
			v.until(fmt.Sprintf(`location.pathname + location.search === %q && document.querySelector(%q)?.querySelector('.person-name') && !document.querySelector('.skeleton')`, one.path, one.within))
			v.fits(one.path)
			for _, box := range []string{".thread", ".messages", ".table-box"} { // they hide what exceeds them
				if ask[bool](v, fmt.Sprintf(`document.querySelector(%[1]q)?.scrollWidth > document.querySelector(%[1]q)?.clientWidth`, box)) {
					t.Errorf("%s: a name makes %s wider than its place", one.path, box)
				}
			}
			v.picture(fmt.Sprintf("people-long-%d-%d", l.width, i))
		}
		v.until(`document.querySelector('h1 .person-name').innerText.startsWith('WWW')`)
		v.clickText("Disable")
		v.until(`document.querySelector('dialog[open]')`)
		v.fits("the question before disabling")
		if !ask[bool](v, `[...document.querySelectorAll('.person-name')].every((one) => one.tagName === 'BDI')`) {
			t.Error("a name is not isolated from the text around it")
		}
	}
}

// A display name can be given at registration, changed in the profile, and changed by an administrator.
func TestDisplayName_IsSetInEveryForm(t *testing.T) {
	s := sharedServer(t)
	v := newVisitor(t, s, desk)
	v.expect("409")
	v.openSignedOut("/register#key=" + apiKey)
	v.write(`input[name=credential_value]`, "display-name@example.ch")
	v.write(`input[name=display_name]`, "Anna First")
	v.write(`input[name=password]`, "four words in a row")
	v.click(`input[name=terms_accepted]`)
	v.click(`input[name=privacy_policy_accepted]`)
	v.click(`button[type=submit]`)
	v.see("Enter the code")
	v.write(`input[name=otp]`, s.code(s.token(firstAdmin), "display-name@example.ch"))
	v.click(`button[type=submit]`)
	v.until(`document.querySelector('.account .me')?.innerText.includes('Anna First')`)

	v.goTo("/profile")
	v.until(`document.querySelector('input[name=display_name]')?.value === 'Anna First'`)
	v.write(`input[name=display_name]`, "Anna Second")
	v.eval(`document.querySelector('input[name=display_name]').form.requestSubmit()`)
	v.until(`document.querySelector('.account .me').innerText.includes('Anna Second')`)
	v.write(`input[name=display_name]`, "Kontor Support")
	v.eval(`document.querySelector('input[name=display_name]').form.requestSubmit()`)
	v.until(`document.querySelector('input[name=display_name][aria-invalid=true]')`) // A reserved word is rejected beside the field.

	admin := signedInAt(t, s, desk, firstAdmin, "/admin/users?q=Anna+Second")
	admin.until(`document.querySelector('` + userList + `')?.innerText.includes('display-name@example.ch')`) // the sign-in name beside it
	admin.click(userList + ` .row-link`)
	admin.until(`document.querySelector('h1').innerText.includes('Anna Second') && document.querySelector('h1 .sign-in-name') && document.querySelector('input[name=display_name]')`)
	admin.write(`input[name=display_name]`, "Anna Third")
	admin.eval(`document.querySelector('input[name=display_name]').form.requestSubmit()`)
	admin.until(`document.querySelector('h1').innerText.includes('Anna Third') && document.title.startsWith('Anna Third')`)
}

// picture writes a screenshot to the directory KONTOR_PICTURES, if that is set.
func (v *visitor) picture(name string) {
	v.t.Helper()
	dir := os.Getenv("KONTOR_PICTURES")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(v.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		v.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// A user who was linked to a persona sees its data before accepting the link. A reviewer sees what changed of a verified
// identity.
func TestIdentity_IsConfirmedByTheUserAndReviewedAgain(t *testing.T) {
	s := sharedServer(t)
	owner, user, reviewer := s.newPerson("Customer"), s.newPerson("Customer"), s.newPerson("Advisor")
	token := s.token(owner)
	persona := s.call(token, http.MethodPost, "/v1/personas", map[string]any{"first_name": "Vreni", "last_name": "Zbinden", "date_of_birth": "1980-02-29"})["id"].(string)
	s.call(token, http.MethodPost, "/v1/personas/"+persona+"/users", map[string]any{"user_id": user.id})
	customer := s.newCustomer(token, "Vreni", "Zbinden")
	s.call(s.token(reviewer), http.MethodPut, "/v1/customers/"+customer+"/kyc", map[string]any{"verified_at": "2020-01-01T00:00:00Z",
		"documents": []any{map[string]any{"type": "passport", "number": "X123", "expiry_date": "2099-01-01", "country": "CHE"}}})
	s.call(token, http.MethodPut, "/v1/customers/"+customer, map[string]any{"last_name": "Moser", "nationality": "DEU"})

	v := signedInAt(t, s, desk, user, "/personas")
	v.see("Is this you?")
	v.examine(view{name: "offers", drawn: "main .items button"})
	v.picture("identity-offer")
	v.clickText("Yes, this is me")
	v.until(`!document.body.innerText.includes('Is this you?') && document.querySelector('main table')?.innerText.includes('Zbinden')`)

	v = signedIn(t, s, desk, reviewer)
	v.open("/customers/" + customer + "/kyc")
	v.see("Last name: “Zbinden” is now “Moser”")
	v.see("Nationality: “Switzerland” is now “Germany”")
	v.examine(view{name: "changed identity", drawn: ".timeline"})
	v.picture("identity-changed")
}
