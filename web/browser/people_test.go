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

// hostileName is what a customer calls somebody else.
const hostileName = "Mallory the Boss"

// plantNames makes a chat as a customer, and a task as an advisor, in which an administrator has another name. It returns
// their paths and the id of the customer record that the customer owns.
func plantNames(b *bank, mallory, victim person) (chat, task, customer string) {
	b.t.Helper()
	token := b.token(mallory)
	names := map[string]any{victim.id: hostileName, mallory.id: adminLogin, "constructor": map[string]any{"x": 1}}
	chat = "/chats/" + b.call(token, http.MethodPost, "/v1/chats", map[string]any{
		"participants": []string{victim.id}, "metadata": map[string]any{"names": names}})["id"].(string)
	b.call(token, http.MethodPost, "/v1"+chat+"/messages", map[string]any{"content": "Good morning"})
	customer = b.newCustomer(token, "Mallory", "Muster")
	made := b.call(b.token(b.newPerson("Advisor")), http.MethodPost, "/v1/customers/"+customer+"/tasks", map[string]any{"title": "Look here", "category": "approve",
		"assignees": []any{map[string]any{"user_id": victim.id, "name": hostileName}}})
	return chat, "/customers/" + customer + "/tasks/" + made["id"].(string), customer
}

// Names that a customer writes into a chat or a task appear there only, marked as somebody's words and beside what the
// user signs in with; the screens of the staff keep calling everybody by what they sign in with.
func TestNames_OfACustomerStayInTheirChatAndTask(t *testing.T) {
	b := sharedBank(t)
	victim, mallory := b.newPerson("Administrator"), b.newPerson("Customer")
	chat, task, customer := plantNames(b, mallory, victim)
	staff := b.token(victim)
	for _, status := range []string{"pending", "in_review", "rejected"} { // entries of the KYC history and of the audit trail
		b.call(staff, http.MethodPatch, "/v1/customers/"+customer+"/kyc/status", map[string]any{"kyc_status": status})
	}
	v := signedIn(t, b, desk, victim)
	// Chats and tasks first: the console must not learn anything there that it uses later.
	for _, path := range []string{chat, task} {
		v.goTo(path)
		v.until(fmt.Sprintf(`location.pathname === %q && document.querySelector('main h1, main h2') && !document.querySelector('.skeleton')`, path))
	}
	v.goTo("/tasks")
	v.see("Look here")
	for name, screen := range map[string]struct{ path, shows string }{
		"audit":          {"/admin/audit", victim.login},
		"administration": {"/admin/users/" + victim.id, victim.login},
		"users":          {"/admin/users", victim.login},
		"KYC history":    {"/customers/" + customer + "/kyc", victim.login},
		"overview":       {"/", ""},
	} {
		v.goTo(screen.path)
		v.until(fmt.Sprintf(`location.pathname + location.search === %q && !document.querySelector('.skeleton') && document.querySelector('main').innerText.includes(%q)`, screen.path, screen.shows))
		if text := ask[string](v, `document.documentElement.textContent`); strings.Contains(text, hostileName) {
			t.Errorf("%s shows the name that a customer chose", name)
		}
		v.picture("names-" + strings.ReplaceAll(name, " ", "-"))
	}
}

// In their own chat and task the names are in quotation marks, say to a screen reader whose words they are, and stand
// beside what the user signs in with.
func TestNames_AreMarkedInTheirChatAndTask(t *testing.T) {
	b := sharedBank(t)
	victim, second, mallory := b.newPerson("Administrator"), b.newPerson("Administrator"), b.newPerson("Customer")
	chat, task, _ := plantNames(b, mallory, victim)
	b.call(b.token(mallory), http.MethodPost, "/v1/chats", map[string]any{"participants": []string{second.id, victim.id},
		"metadata": map[string]any{"title": "System administration", "names": map[string]any{mallory.id: hostileName}}})
	v := signedIn(t, b, desk, second)
	for _, one := range []view{
		{name: "task", path: task, drawn: `main .items .said`},
		{name: "chats", path: "/chats", drawn: `.chat-list .said`},
	} {
		v.goTo(one.path)
		if one.path == task {
			v.until(fmt.Sprintf(`document.querySelector('main .items .person .login')?.innerText === %q`, victim.login))
		}
		v.examine(one)
		v.picture("names-marked-" + one.name)
	}
	v.click(`.chat-list a`)
	v.until(`document.querySelector('.thread h2 .said')`)
	v.examine(view{name: "thread", drawn: `.thread h2 .said`})
	v.picture("names-marked-thread")
	for _, said := range ask[[]string](v, `[...document.querySelectorAll('.said')].map((one) => one.textContent)`) {
		if !strings.Contains(said, "by whoever opened this conversation") {
			t.Errorf("a screen reader hears %q, which does not say whose words these are", said)
		}
	}
	who := ask[string](v, `document.querySelector('.thread header .two-lines > span').innerText`)
	if !strings.Contains(who, mallory.login) || !strings.Contains(who, victim.login) {
		t.Errorf("the participants are %q, without what they sign in with", who)
	}
	v.goTo(chat)
	v.until(`document.querySelector('.thread')`)
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
	b := sharedBank(t)
	owner, user, reviewer := b.newPerson("Customer"), b.newPerson("Customer"), b.newPerson("Advisor")
	token := b.token(owner)
	persona := b.call(token, http.MethodPost, "/v1/personas", map[string]any{"first_name": "Vreni", "last_name": "Zbinden", "date_of_birth": "1980-02-29"})["id"].(string)
	b.call(token, http.MethodPost, "/v1/personas/"+persona+"/users", map[string]any{"user_id": user.id})
	customer := b.newCustomer(token, "Vreni", "Zbinden")
	b.call(b.token(reviewer), http.MethodPut, "/v1/customers/"+customer+"/kyc", map[string]any{"verified_at": "2020-01-01T00:00:00Z",
		"documents": []any{map[string]any{"type": "passport", "number": "X123", "expiry_date": "2099-01-01", "country": "CHE"}}})
	b.call(token, http.MethodPut, "/v1/customers/"+customer, map[string]any{"last_name": "Moser", "nationality": "DEU"})

	v := signedIn(t, b, desk, user)
	v.open("/personas")
	v.see("Is this you?")
	v.examine(view{name: "offers", drawn: "main .items button"})
	v.picture("identity-offer")
	v.clickText("Yes, this is me")
	v.until(`!document.body.innerText.includes('Is this you?') && document.querySelector('main table')?.innerText.includes('Zbinden')`)

	v = signedIn(t, b, desk, reviewer)
	v.open("/customers/" + customer + "/kyc")
	v.see("Last name: “Zbinden” is now “Moser”")
	v.see("Nationality: “Switzerland” is now “Germany”")
	v.examine(view{name: "changed identity", drawn: ".timeline"})
	v.picture("identity-changed")
}
