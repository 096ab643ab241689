package browser_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"kontor/store/testenv"
)

// answers records what the server answers to a visitor.
type answers struct {
	v     *visitor
	mutex sync.Mutex
	seen  []string // "403 /v1/…"
}

// record begins to record the answers to a visitor.
func record(v *visitor) *answers {
	v.t.Helper()
	a := &answers{v: v}
	if err := chromedp.Listen(v.ctx, func(event any) {
		if e, ok := event.(*network.EventResponseReceived); ok {
			a.mutex.Lock()
			defer a.mutex.Unlock()
			a.seen = append(a.seen, fmt.Sprintf("%d %s", int(e.Response.Status), strings.TrimPrefix(e.Response.URL, v.server.url(""))))
		}
	}); err != nil {
		v.t.Fatal(err)
	}
	return a
}

// complete waits until the answers that the page has got are recorded. The browser reports an answer when it likes, but one after the other.
func (a *answers) complete() {
	a.v.t.Helper()
	last := fmt.Sprintf("/healthz?%d", registered.Add(1))
	ask[string](a.v, `fetch('`+last+`').then((answer) => answer.text())`)
	testenv.Wait(a.v.t, "the browser to report its last answer", func() bool { return len(a.with("200 "+last)) > 0 })
}

// with returns the answers that begin with a text.
func (a *answers) with(prefix string) (found []string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, one := range a.seen {
		if strings.HasPrefix(one, prefix) {
			found = append(found, one)
		}
	}
	return found
}

// A user may open all that the menu offers: every entry of the menu opens without a 403, for a user who waits for the bank, a
// customer, an advisor and an administrator.
func TestMenu_CausesNoRejection(t *testing.T) {
	s := sharedServer(t)
	waiting := person{login: fmt.Sprintf("waiting-%d", registered.Add(1)), password: "four words in a row"}
	s.call("", http.MethodPost, "/v1/users/initiate-registration", map[string]any{"credential_type": "username", "credential_value": waiting.login,
		"password": waiting.password, "terms_accepted": true, "privacy_policy_accepted": true}, "X-API-Key", apiKey)
	for name, p := range map[string]person{"registrant": waiting, "customer": s.newPerson("Customer"), "advisor": s.newPerson("Advisor"),
		"administrator": s.newPerson("Administrator")} {
		t.Run(name, func(t *testing.T) {
			s := &testServer{t: t, address: s.address}
			v := newVisitor(t, s, desk)
			v.openSignedOut("/signin")
			seen := record(v)
			v.write(`input[name=login]`, p.login)
			v.write(`input[name=password]`, p.password)
			v.click(`button[type=submit]`)
			v.until(`document.querySelector('.side-menu nav a') || (location.pathname === '/' && document.querySelector('.auth-card button.quiet'))`)
			paths := ask[[]string](v, `[...document.querySelectorAll('.side .side-menu nav a[href], .side .account a')].map((a) => a.getAttribute('href'))`)
			for _, path := range paths {
				v.goTo(path)
				v.until(`document.querySelector('main h1') && !document.querySelector('main .skeleton')`)
				v.picture(strings.ReplaceAll(name, " ", "-") + strings.ReplaceAll(path, "/", "_"))
			}
			if name != "registrant" && len(paths) < 5 {
				t.Errorf("the menu has only %v", paths)
			}
			seen.complete()
			if rejected := seen.with("403"); len(rejected) > 0 {
				t.Errorf("looking around was rejected: %v", rejected)
			}
		})
	}
}

// streamWait is how long the first load of the chats waits for the stream, in milliseconds.
const streamWait = 1500

// One load of the page fetches the chats once, on any screen.
func TestChats_AreLoadedOnceForAPage(t *testing.T) {
	s := sharedServer(t)
	me, other := s.newPerson("Advisor"), s.newPerson("Advisor")
	chat := s.call(s.token(me), http.MethodPost, "/v1/chats", map[string]any{"participants": []any{other.id}})["id"].(string)
	s.call(s.token(other), http.MethodPost, "/v1/chats/"+chat+"/messages", map[string]any{"content": "Grüezi"})
	v := newVisitor(t, s, desk)
	v.holdNextTimers(streamWait) // The first load waits for the stream, however late it opens.
	v.open("/healthz")
	v.enter(me)
	v.until(`document.querySelector('.side a[href="/chats"] .count') && document.querySelector('.connection.live')`)
	unread := 1
	for _, path := range []string{"/", "/chats", "/tasks"} {
		seen := record(v)
		v.open(path)
		v.until(`document.querySelector('main h1') && !document.querySelector('main .skeleton') && document.querySelector('.side a[href="/chats"] .count') && document.querySelector('.connection.live')`)
		s.call(s.token(other), http.MethodPost, "/v1/chats/"+chat+"/messages", map[string]any{"content": "Are you there?"})
		unread++
		v.until(fmt.Sprintf(`document.querySelector('.side a[href="/chats"] .count').innerText.startsWith('%d')`, unread))
		seen.complete()
		if n := len(seen.with("200 /v1/chats")); n != 1 {
			t.Errorf("%s: the chats were loaded %d times, want once: %v", path, n, seen.with("200 /v1/"))
		}
	}
}

// All notifications are marked as read by one request, in both tabs.
func TestNotifications_AreMarkedAsReadAtOnce(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Customer")
	advisor := s.token(s.newPerson("Advisor"))
	customer := s.newCustomer(advisor, "Luca", "Bernasconi")
	for i := range 30 {
		s.call(advisor, http.MethodPost, "/v1/customers/"+customer+"/notify", map[string]any{"text": fmt.Sprint("Message ", i), "user_ids": []any{me.id}})
	}
	v := signedInAt(t, s, desk, me, "/notifications")
	second := v.secondTab()
	second.open("/notifications")
	second.until(`document.querySelector('.side a[href="/notifications"] .count')`)
	seen := record(v)
	v.clickText(v.text("notifications.mark_all"))
	for _, tab := range []*visitor{v, second} {
		tab.until(`!document.querySelector('.side a[href="/notifications"] .count') && !document.querySelector('.inbox .unread')`)
	}
	seen.complete()
	if n := len(seen.with("200 /v1/notifications/read-all")); n != 1 {
		t.Errorf("%d requests marked all as read", n)
	}
}

// Selected notifications are marked as read by one request; the others stay unread.
func TestNotifications_SelectedAreMarkedAsRead(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	advisor := s.token(s.newPerson("Advisor"))
	customer := s.newCustomer(advisor, "Luca", "Bernasconi")
	for i := range 5 {
		s.call(advisor, http.MethodPost, "/v1/customers/"+customer+"/notify", map[string]any{"text": fmt.Sprint("Message ", i), "user_ids": []any{me.id}})
	}
	v := signedInAt(t, s, desk, me, "/notifications")
	v.until(`document.querySelectorAll('.inbox .unread').length >= 5`)
	before := ask[int](v, `document.querySelectorAll('.inbox .unread').length`)
	boxes := `[...document.querySelectorAll('.inbox .pick input')]`
	v.eval(boxes + `[0].click()`)
	v.eval(boxes + `[2].dispatchEvent(new MouseEvent('click', { shiftKey: true, bubbles: true, cancelable: true }))`)
	v.see("3 selected")
	v.until(`document.querySelector('.select-all input').indeterminate`)
	v.picture("notifications-selected")
	seen := record(v)
	v.eval(`[...document.querySelectorAll('.bulk button')].find((one) => one.innerText.trim() === 'Mark as read').click()`)
	v.until(fmt.Sprintf(`!document.querySelector('.bulk') && document.querySelectorAll('.inbox .unread').length === %d`, before-3))
	seen.complete()
	if n := len(seen.with("200 /v1/notifications/read-all")); n != 1 {
		t.Errorf("%d requests marked the selected ones as read", n)
	}
	v.click(`.select-all input`)
	v.until(fmt.Sprintf(boxes+`.every((one) => one.checked) && document.querySelectorAll('.inbox .unread').length === %d`, before-3))
}

// Tasks are selected in the list, assigned to a user and closed together; the board has them afterwards.
func TestTasks_SelectedAreAssignedAndClosed(t *testing.T) {
	s := sharedServer(t)
	me, other := s.newPerson("Advisor"), s.newPerson("Advisor")
	token := s.token(me)
	customer := s.newCustomer(token, "Luca", "Bernasconi")
	for i := range 4 {
		s.call(token, http.MethodPost, "/v1/customers/"+customer+"/tasks", map[string]any{"title": fmt.Sprint("Bulk ", i), "category": "sign"})
	}
	v := signedInAt(t, s, desk, me, "/tasks")
	v.clickText("As a list")
	v.until(`location.search.includes('view=list') && document.querySelectorAll('table.data tbody tr').length === 4`)
	boxes := `[...document.querySelectorAll('tbody .select input')]`
	action := func(label string) {
		v.eval(fmt.Sprintf(`[...document.querySelectorAll('.bulk button')].find((one) => one.innerText.trim() === %q).click()`, label))
	}
	v.eval(boxes + `[0].click(); ` + boxes + `[1].click()`)
	v.see("2 selected")
	action("Assign to a user")
	v.choosePerson(form, other)
	v.picture("tasks-assign-selected")
	v.click(form + ` button[type=submit]`)
	v.seeMessage("2 records changed")
	v.until(`!document.querySelector('.bulk') && !document.querySelector('dialog[open]')`)
	for _, task := range s.call(token, http.MethodGet, "/v1/tasks?sort=-created_at", nil)["data"].([]any) {
		n, want := len(task.(map[string]any)["assignees"].([]any)), 0
		if title := task.(map[string]any)["title"]; title == "Bulk 3" || title == "Bulk 2" {
			want = 1
		}
		if n != want {
			t.Errorf("%v has %d assignees", task.(map[string]any)["title"], n)
		}
	}
	v.holdTimers(undoTime)
	v.eval(boxes + `[2].click(); ` + boxes + `[3].click()`)
	v.picture("tasks-selected")
	action("Complete")
	v.see("2 tasks become “Completed”")
	v.click(`.toast button.undo`)
	v.until(`!document.querySelector('.toast button.undo')`)
	v.eval(boxes + `[2].click(); ` + boxes + `[3].click()`)
	action("Complete")
	v.see("2 tasks become “Completed”")
	v.until(`![...document.querySelectorAll('tbody tr')].some((row) => row.innerText.includes('Completed'))`)
	v.open("/healthz") // what waits is sent when the page closes
	testenv.Wait(t, "the tasks to be completed", func() bool {
		return s.call(token, http.MethodGet, "/v1/tasks?search.status=completed", nil)["total"] == 2.0
	})
	v.open("/tasks?view=list")
	v.until(`[...document.querySelectorAll('tbody tr')].filter((row) => row.innerText.includes('Completed')).length === 2`)
	v.click(`thead .select input`)
	v.until(`document.querySelector('.bulk') && !document.querySelector('.bulk').innerText.includes('Complete')`)
	v.clickText("As a board")
	v.until(`document.querySelectorAll('.lane.completed .task').length === 2 && document.querySelectorAll('.lane.pending .task, .lane.in_progress .task').length === 2`)
}

// A status that ends a task waits ten seconds, on the page of the task and on the board, which shows it already. Undo takes it back, and
// leaving the page sends it.
func TestTasks_ClosingOneCanBeUndone(t *testing.T) {
	s := sharedServer(t)
	me := s.newPerson("Advisor")
	token := s.token(me)
	customer := s.newCustomer(token, "Luca", "Bernasconi")
	task := "/customers/" + customer + "/tasks/" + s.call(token, http.MethodPost, "/v1/customers/"+customer+"/tasks", map[string]any{"title": "Call back", "category": "sign"})["id"].(string)
	status := func() any { return s.call(token, http.MethodGet, "/v1"+task, nil)["status"] }
	v := signedInAt(t, s, desk, me, task)
	v.holdTimers(undoTime)
	v.clickText("Complete")
	v.see("Call back: Completed")
	v.until(`[...document.querySelectorAll('.page-actions button')].some((one) => one.innerText === 'Complete' && one.disabled)`)
	v.click(`.toast button.undo`)
	v.until(`[...document.querySelectorAll('.page-actions button')].some((one) => one.innerText === 'Complete' && !one.disabled)`)
	if got := status(); got != "pending" {
		t.Errorf("the task is %v, want pending after the undo", got)
	}
	v.goTo("/tasks")
	move := `(() => { const s = document.querySelector('.move select'); s.value = 'completed'; s.dispatchEvent(new Event('change', { bubbles: true })) })()`
	v.until(`document.querySelector('.lane.pending .task')`)
	v.eval(move)
	v.until(`document.querySelector('.lane.completed .task') && !document.querySelector('.lane.pending .task')`)
	v.click(`.toast button.undo`)
	v.until(`document.querySelector('.lane.pending .task') && !document.querySelector('.lane.completed .task')`)
	v.eval(move)
	v.until(`document.querySelector('.lane.completed .task')`)
	if got := status(); got != "pending" {
		t.Errorf("the task is %v, want pending while the change can be undone", got)
	}
	v.open("/healthz") // what waits is sent when the page closes
	testenv.Wait(t, "the task to be completed", func() bool { return status() == "completed" })
	v.open("/tasks")
	v.until(`document.querySelector('.lane.completed .task')`)
}

// Counts come from the server, and the lanes of the board load more.
func TestBoard_CountsAndLoadsMore(t *testing.T) {
	s := sharedServer(t)
	me, other := s.newPerson("Advisor"), s.newPerson("Advisor")
	token := s.token(me)
	customer := s.newCustomer(token, "Luca", "Bernasconi")
	create := func(title, due string, assignees ...any) {
		s.call(token, http.MethodPost, "/v1/customers/"+customer+"/tasks", map[string]any{"title": title, "category": "sign", "due_on": due, "assignees": assignees})
	}
	const open = 120
	for i := range open - 1 {
		create(fmt.Sprint("Task ", i), "2099-01-01")
	}
	create("Late", "2020-01-01", map[string]any{"user_id": other.id})
	v := signedIn(t, s, desk, me)
	v.until(fmt.Sprintf(`document.querySelector('a.figure[href="/tasks"] .figure-value')?.innerText === '%d'`, open))
	v.see("1 overdue")
	v.goTo("/tasks")
	v.until(fmt.Sprintf(`document.querySelector('.lane.pending header .num')?.innerText === '%d' && document.querySelectorAll('.lane.pending .task').length === 20`, open))
	v.click(".lane.pending .lane-more")
	v.until(`document.querySelectorAll('.lane.pending .task').length === 40`)
	v.picture("board")
	v.goTo("/tasks?due=overdue")
	v.until(`document.querySelectorAll('.task').length === 1 && document.querySelector('.task .due.late')`)
	v.goTo("/tasks?scope=all&assignee=" + other.id)
	v.until(`document.querySelectorAll('.task').length === 1`)
	v.goTo("/tasks?customer=" + customer + "&status=pending&due=week")
	v.see(v.text("list.no_match"))
}

// A task is created with its assignees and its day in one dialog.
func TestTask_IsCreatedInOneDialog(t *testing.T) {
	s := sharedServer(t)
	me, other := s.newPerson("Advisor"), s.newPerson("Advisor")
	s.setName(other, fmt.Sprint("Zita Assigned ", registered.Add(1)))
	name := s.call(s.token(other), http.MethodGet, "/v1/users/me", nil)["display_name"].(string)
	customer := s.newCustomer(s.token(me), "Luca", "Bernasconi")
	v := signedInAt(t, s, desk, me, "/customers/"+customer+"/tasks")
	v.clickText(v.text("tasks.new"))
	v.write(form+` input[name=title]`, "Sign together")
	v.choosePerson(form, other)
	v.until(`document.querySelector('dialog .chip')`)
	v.write(form+` input[name=due_on]`, "2020-02-01")
	v.picture("new-task")
	v.clickText(v.text("tasks.create"))
	v.gone("dialog[open]")
	v.until(`document.querySelector('table.data .due.late')`)
	v.clickText("Sign together")
	v.see(name)
}

// Another person's change of the open record appears at once, and unsaved input is kept.
func TestCustomer_FollowsOtherPeoplesChanges(t *testing.T) {
	s := sharedServer(t)
	me, other := s.newPerson("Advisor"), s.newPerson("Advisor")
	token := s.token(other)
	customer := s.newCustomer(token, "Luca", "Bernasconi")
	v := signedInAt(t, s, desk, me, "/customers/"+customer)
	v.see("Bernasconi")
	change := func(last string) {
		s.call(token, http.MethodPut, "/v1/customers/"+customer, map[string]any{"last_name": last})
	}
	change("Rossi")
	v.until(`document.querySelector('main h1').innerText.includes('Rossi')`)
	v.clickText(v.text("do.edit"))
	v.write(form+` input[name=first_name]`, "Mario")
	change("Bianchi")
	v.until(`document.querySelector('dialog [role=alert]')`)
	v.picture("newer-values")
	if got := ask[string](v, `document.querySelector('dialog input[name=first_name]').value`); got != "Mario" {
		t.Errorf("the change of another person replaced what was typed by %q", got)
	}
	v.clickText(v.text("conflict.merge"))
	v.until(`document.querySelector('dialog input[name=last_name]').value === 'Bianchi'`)
	v.clickText(v.text("do.save"))
	v.until(`document.querySelector('main h1').innerText.includes('Mario Bianchi')`)
}

// A customer sees their own screens, adds a document, and keeps a bill. Staff who are customers too keep the staff console.
func TestHome_IsForCustomers(t *testing.T) {
	s := sharedServer(t)
	for name, l := range map[string]look{"wide": desk, "narrow": {width: 360, height: 740, dark: true}} {
		me := s.newPerson("Customer")
		s.newCustomer(s.token(me), "Nina", "Keller")
		v := signedIn(t, s, l, me)
		v.until(`document.querySelector('.needs li')`)
		v.picture("home-" + name)
		v.goTo("/me/data")
		v.see("Seestrasse 1")
		v.picture("data-" + name)
		v.goTo("/me/documents")
		v.until(`document.querySelector('.standing')`)
		v.clickText(v.text("home.add_document"))
		v.write(form+` input[name=number]`, "X1234567")
		v.eval(`(() => { const field = document.querySelector('dialog input[name=expiry_date]'); field.value = '2099-02-01'; field.dispatchEvent(new Event('input', { bubbles: true })) })()`)
		v.choosePicture(form + ` .photos input[type=file]`)
		v.see("passport.png")
		v.click(form + ` button[type=submit]`)
		v.gone("dialog[open]")
		v.see("X1234567")
		v.picture("documents-" + name)
		v.goTo("/invoices")
		see(`.drop`)(v)
		upload(`input[type=file]`, "formats-b57-06.png")(v)
		v.until(`document.querySelector('.paper') && document.querySelector('main .items button.link')`)
		v.picture("bills-" + name)
		v.click("main .items button.bare")
		v.click(confirmation)
		v.gone("main .items button.link")
		if words := ask[string](v, `document.querySelector('.side').textContent`); strings.Contains(words, "Personas") || strings.Contains(words, "Payers") {
			t.Errorf("the menu of a customer has words of the bank: %s", words)
		}
	}
	both := s.newPerson("Customer")
	s.call(s.token(firstAdmin), http.MethodPut, "/v1/users/"+both.id+"/roles", map[string]any{"roles": []string{"Customer", "Advisor"}})
	v := signedIn(t, s, desk, both)
	v.until(`document.querySelector('.figures') && document.querySelector('.side a[href="/customers"]')`)
}

// The form for the own data is not that of the staff: it has its own title, the e-mail address is there, and what the bank needs is
// marked and asked for before the form is sent.
func TestMyData_HasAFormOfItsOwn(t *testing.T) {
	s := sharedServer(t)
	v := signedInAt(t, s, look{width: 360, height: 740}, s.newPerson("Customer"), "/me/data?new=1")
	v.until(fmt.Sprintf(`document.querySelector('dialog[open] h2')?.innerText === %q`, v.text("home.begin")))
	v.until(`document.querySelectorAll('dialog[open] .needed').length === 9 && !document.querySelector('dialog[open] [name=type]')`)
	v.click(form + ` button[type=submit]`)
	v.until(`document.querySelectorAll('dialog[open] .field-error').length >= 8`)
	v.goTo("/notifications")
	v.until(`document.querySelector('main h1') && !document.querySelector('main .skeleton')`)
	if ask[bool](v, `Boolean(document.querySelector('main .list-tools, main input[type=checkbox]'))`) {
		t.Error("a customer has the tools of lists")
	}
}
