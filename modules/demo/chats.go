package demo

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// thread is a chat with its participants and its script.
type thread struct {
	id     string
	people []*person // of a chat with the bank: the customer, and who answers in the inbox without taking part
	script []exchange
	bank   bool
}

// by returns the path below which a participant writes, and whether they read there: staff answer a customer in the inbox.
func (t *thread) by(p *person) (path string, takesPart bool) {
	if t.bank && p != t.people[0] {
		return "/v1/inbox/" + t.id, false
	}
	return "/v1/chats/" + t.id, true
}

// exchange is the messages of one day.
type exchange struct {
	daysAgo int
	lines   []line
}

// line is a message. Its author is an index into the people of the thread.
type line struct {
	by   int
	text string
}

// scripts are the messages of the chats.
var scripts = map[string][]exchange{
	"team": {
		{62, []line{{0, "Guten Morgen zusammen. Ab heute gilt die neue Checkliste für Firmenkunden."}, {1, "Merci, je l'ai lue. La partie sur les ayants droit est plus claire."},
			{2, "Perfetto, la uso già per la prossima apertura."}}},
		{33, []line{{3, "I'm out until Thursday. Lena covers the Zug mandates."}, {0, "Mache ich. Die Unterlagen liegen bei den Aufgaben."}}},
		{12, []line{{1, "Quelqu'un a-t-il le formulaire A de la fondation?"}, {0, "Liegt im Dossier, seit gestern auch unterschrieben."}, {1, "Super, merci!"}}},
		{4, []line{{2, "Domani sono a Bellinzona, raggiungibile dalle 14."}, {3, "Noted, I'll take your calls."}}},
	},
	"onboarding": {
		{20, []line{{0, "Three applications came in overnight. Two have complete documents."}, {1, "I'll take the one from Lugano."}, {2, "Then I do the company. The register extract is already here."}}},
		{8, []line{{2, "The extract lists two signatories, the form only one."}, {0, "Please set it to “action required” and ask for the second signature."}, {2, "Done, they will come by on Monday."}}},
		{2, []line{{1, "The residence permit is readable now, I moved the review on."}, {0, "Thank you. Four eyes: I check it this afternoon."}, {0, "Checked and verified."}}},
	},
	"marc": {
		{15, []line{{1, "Bonjour Lena, as-tu un moment pour le dossier du vignoble?"}, {0, "Bien sûr. Il manque la signature du second associé."}, {1, "Il passe demain à l'agence."}, {0, "Très bien, je réserve la salle 2."}}},
		{3, []line{{1, "La signature est là, je t'ai assigné la validation."}, {0, "Merci, je m'en occupe."}}},
	},
	"tom": {
		{9, []line{{1, "The four-eyes check for the Zug account is still open."}, {0, "On it. The beneficial owner form is complete."}, {1, "Great, please approve the task then."}}},
		{1, []line{{1, "Could you look at the expiring passports this week? There are five."}, {0, "Yes, I have written to all of them."}}},
	},
	"support": {
		{6, []line{{0, "Guten Tag, ich ziehe im Januar nach Winterthur. Was brauchen Sie von mir?"}, {1, "Guten Tag Frau Keller. Ein neuer Adressnachweis genügt, zum Beispiel die Anmeldebestätigung der Gemeinde."},
			{0, "Danke, die sende ich Ihnen, sobald ich sie habe."}}},
	},
	"access": {
		{26, []line{{1, "Hello Claire, our new colleague needs the role Advisor from Monday."}, {0, "He registers first, then I give him the role. Please send him the link."}, {1, "Sent, thank you."}}},
		{5, []line{{0, "The quarterly review of rights is due. Your list is attached to the task."}, {1, "Looks right. Giulia no longer needs the export."}, {0, "Taken away, it is in the audit trail."}}},
	},
	"compliance": {
		{11, []line{{0, "Five verifications have been in review for more than a week."}, {1, "Two wait for a translation, I will chase the others."}, {2, "Mine are done today."}}},
	},
}

// continueChats creates the chats, and sends the messages of a day by their scripts.
func (b *builder) continueChats(ctx context.Context, day int) error {
	if day == days-70 {
		if err := b.createChats(ctx); err != nil {
			return err
		}
	}
	for i := range b.threads {
		for _, e := range b.threads[i].script {
			if e.daysAgo == days-day {
				if err := b.sendMessages(ctx, &b.threads[i], e.lines); err != nil {
					return err
				}
				if err := b.markRead(ctx, &b.threads[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// createChats creates the chats.
func (b *builder) createChats(ctx context.Context) error {
	s := b.staff
	for _, t := range []struct {
		script, title string
		people        []*person
	}{
		{"team", "Team Zürich", []*person{s[0], s[1], s[2], s[3], b.admin}},
		{"onboarding", "Onboarding", []*person{s[0], s[2], s[3]}},
		{"marc", "", []*person{s[0], s[1]}},
		{"tom", "", []*person{s[0], s[3]}},
		{"support", "", []*person{b.customer, s[0]}},
		{"access", "", []*person{b.admin, s[0]}},
		{"compliance", "Compliance", []*person{b.admin, s[0], s[1]}},
	} {
		var ids []string
		for _, p := range t.people[1:] {
			ids = append(ids, p.id)
		}
		metadata := object{}
		if t.title != "" {
			metadata["title"] = t.title
		}
		path, body := "/v1/chats", object{"participants": ids, "metadata": metadata}
		bank := t.script == "support"
		if bank {
			path, body = "/v1/chats/bank", nil
		}
		var created record
		if err := b.api.post(ctx, t.people[0], path, body, &created); err != nil {
			return err
		}
		b.threads = append(b.threads, thread{id: created.ID, people: t.people, script: scripts[t.script], bank: bank})
	}
	return nil
}

// sendMessages sends messages at intervals of one to two minutes. Authors read the chat before they write.
func (b *builder) sendMessages(ctx context.Context, t *thread, lines []line) error {
	for i, l := range lines {
		if i > 0 {
			b.advanceClock(time.Duration(50+b.random.IntN(90)) * time.Second)
		}
		author := t.people[l.by]
		if err := b.markReadAs(ctx, t, author); err != nil {
			return err
		}
		path, _ := t.by(author)
		if err := b.api.post(ctx, author, path+"/messages", object{"content": l.text}, nil); err != nil {
			return err
		}
	}
	return nil
}

// markRead marks a chat as read by all participants.
func (b *builder) markRead(ctx context.Context, t *thread) error {
	for _, p := range t.people {
		if err := b.markReadAs(ctx, t, p); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) markReadAs(ctx context.Context, t *thread, p *person) error {
	path, takesPart := t.by(p)
	if !takesPart {
		return nil
	}
	return b.api.do(ctx, p, http.MethodPost, path+"/read", object{}, nil)
}

// taskTemplate is the text of a task.
type taskTemplate struct{ category, title, description string }

// taskTemplates are the texts of the tasks.
var taskTemplates = []taskTemplate{
	{"sign", "Sign the framework agreement", "Two signatures are needed; the original stays with us."},
	{"approve", "Approve the credit limit", "The request is for CHF 25'000; see the assessment in the file."},
	{"update", "Bring the address up to date", "A letter came back from the post."},
	{"update", "Renew the proof of address", "The one on file is older than a year."},
	{"delete", "Remove the closed account", "All balances are zero; the customer has confirmed."},
	{"approve", "Confirm the beneficial owner", "Form A was handed in and has to be compared with the register."},
	{"sign", "Vertrag für das Schliessfach unterzeichnen", "Fach 114, Laufzeit ein Jahr."},
	{"approve", "Valider le plan de remboursement", "Six mensualités, première échéance à la fin du mois."},
	{"update", "Aggiornare il profilo di rischio", "Il colloquio annuale ha avuto luogo."},
	{"approve", "Four-eyes check of the account opening", "Prepared yesterday; all documents are in the file."},
	{"update", "Ask for the renewed passport", "The present one expires within three months."},
	{"sign", "Countersign the power of attorney", "For the daughter, limited to payments up to CHF 5'000."},
	{"approve", "Release the blocked card order", "The customer has been reached and confirms the order."},
	{"delete", "Delete the duplicate entry", "The same person was entered twice after the merger of two branches."},
	{"update", "Record the new employer", "Payslip received by post."},
	{"sign", "Sign the mortgage extension", "Five years fixed; the offer is valid until the end of the month."},
}

// The states that the tasks of the demo reach.
const (
	untouched = iota
	begun
	halfway
	completed
	declined
	canceled
)

// createTasks creates a task on every fifth day. Old tasks are closed, recent ones are open.
func (b *builder) createTasks(ctx context.Context, day int) error {
	if day < 20 || day%5 != 0 {
		return nil
	}
	n := day / 5
	state := []int{completed, completed, completed, declined, completed, completed, canceled}[n%7]
	if day > days-55 {
		state = []int{halfway, untouched, begun, completed, untouched, halfway}[n%6]
	}
	owner := b.staff[n%len(b.staff)]
	others := []*person{b.staff[0], b.staff[1+n%3]}
	if n%3 == 0 {
		others[1] = b.admin
	}
	return b.createTask(ctx, owner, others, pick(b, b.customers), taskTemplates[n%len(taskTemplates)], n%6 == 1, state)
}

// createTask creates a task for a customer, assigns it, and brings it to a state.
func (b *builder) createTask(ctx context.Context, owner *person, to []*person, of customer, what taskTemplate, urgent bool, state int) error {
	var created record
	path := "/v1/customers/" + of.id + "/tasks"
	if err := b.api.post(ctx, owner, path, object{"title": what.title, "category": what.category, "description": what.description,
		"is_urgent": urgent, "weight": 1, "due_on": b.dueOn()}, &created); err != nil {
		return err
	}
	path += "/" + created.ID
	parts := make([]string, len(to))
	for n, p := range to {
		var assigned record
		if err := b.api.post(ctx, owner, path+"/assignees", object{"user_id": p.id, "name": p.name, "weight": 2 + n*3}, &assigned); err != nil {
			return err
		}
		parts[n] = path + "/assignees/" + assigned.ID
	}
	return b.advanceTask(ctx, owner, path, to, parts, state)
}

// dueOn returns the day by which a new task should be done, or nothing for every fourth task.
func (b *builder) dueOn() any {
	if b.random.IntN(4) == 0 {
		return nil
	}
	return b.today().AddDate(0, 0, 5+b.random.IntN(40)).Format(time.DateOnly)
}

// advanceTask brings a task to a state. parts are the paths of the assignments, one per person.
func (b *builder) advanceTask(ctx context.Context, owner *person, path string, people []*person, parts []string, state int) error {
	status := func(s string) error {
		return b.api.do(ctx, owner, http.MethodPatch, path+"/status", object{"status": s}, nil)
	}
	part := func(n int, s string) error {
		return b.api.do(ctx, people[n], http.MethodPatch, parts[n], object{"status": s, "task_completed": s == "completed"}, nil)
	}
	switch state {
	case untouched:
		return nil
	case declined:
		return status("declined")
	case canceled:
		return status("canceled")
	}
	if err := status("in_progress"); err != nil {
		return err
	}
	switch state {
	case begun:
		return part(0, "accepted")
	case halfway:
		return part(0, "completed")
	}
	for n := range people {
		if err := part(n, "completed"); err != nil {
			return fmt.Errorf("part %d: %w", n, err)
		}
	}
	return nil
}

// inbox is a page of a user's notifications.
type inbox struct {
	Data []record `json:"data"`
	More bool     `json:"has_more"`
}

// readNotifications marks all notifications of a user as read.
func (b *builder) readNotifications(ctx context.Context, p *person) error {
	for {
		var page inbox
		if err := b.api.get(ctx, p, "/v1/notifications?limit=100&search.read=false&search.user_id="+p.id, &page); err != nil {
			return err
		}
		for _, notification := range page.Data {
			if err := b.api.do(ctx, p, http.MethodPatch, "/v1/notifications/"+notification.ID+"/read", object{"read": true}, nil); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
	}
}

// createRecentEvents marks all notifications as read, and creates the events of today, which stay unread.
func (b *builder) createRecentEvents(ctx context.Context) error {
	b.setTimeAgo(9 * time.Hour)
	if err := b.Customers.RunExpiry(ctx); err != nil {
		return err
	}
	for _, p := range append([]*person{b.admin, b.customer}, b.staff...) {
		if err := b.readNotifications(ctx, p); err != nil {
			return err
		}
	}
	s := b.staff
	team, onboarding, support, access := &b.threads[0], &b.threads[1], &b.threads[4], &b.threads[5]
	for _, event := range []struct {
		ago time.Duration
		do  func() error
	}{
		{420 * time.Minute, func() error { return b.loadWatchList(ctx) }},
		{405 * time.Minute, func() error { return b.createCustomer(ctx, days, b.randomIdentity(), s[0]) }},
		{350 * time.Minute, func() error {
			return b.createTask(ctx, s[1], []*person{b.admin, s[0]}, pick(b, b.customers), taskTemplate{"approve", "Approve the new fee schedule", "Valid from January; the committee has agreed."}, true, untouched)
		}},
		{290 * time.Minute, func() error {
			return b.sendAndMarkRead(ctx, team, []line{{3, "Good morning. The quarterly figures go out at noon, please check your verifications."}, {1, "Les miennes sont à jour."}, {0, "Meine auch, zwei sind noch in Prüfung."}})
		}},
		{235 * time.Minute, func() error { return b.decideNewestPending(ctx, "in_review") }},
		{180 * time.Minute, func() error {
			return b.sendAndMarkRead(ctx, onboarding, []line{{1, "The translation of the Ticino deed has arrived."}, {0, "Perfect. Can you attach it and move the review on?"}, {1, "Done. It waits for your approval now."}})
		}},
		{142 * time.Minute, func() error {
			return b.createTask(ctx, s[2], []*person{s[0], b.admin}, pick(b, b.customers), taskTemplate{"sign", "Countersign the Ticino deed", "The certified translation is attached to the verification."}, false, begun)
		}},
		{118 * time.Minute, func() error {
			return b.createTask(ctx, s[0], []*person{b.customer, s[0]}, b.ownCustomer(), taskTemplate{"sign", "Sign the change of address", "Sign once at the branch or in the app; the new proof of address is still needed."}, false, untouched)
		}},
		{95 * time.Minute, func() error { return b.createCustomer(ctx, days, b.randomIdentity(), b.admin) }},
		{64 * time.Minute, func() error {
			return b.sendMessages(ctx, access, []line{{0, "Lena, an API key for the new website is ready. Who should get it?"}, {1, "Tom takes it over. He is back at two."}})
		}},
		{41 * time.Minute, func() error {
			return b.createTask(ctx, s[3], []*person{s[0], b.admin}, pick(b, b.customers), taskTemplate{"approve", "Release the first payment of the foundation", "Above the usual limit; two approvals are needed."}, true, halfway)
		}},
		{22 * time.Minute, func() error {
			return b.sendMessages(ctx, onboarding, []line{{2, "One more for today: a company from Zug, complete."}, {2, "I have put it at the top of the list."}})
		}},
		{9 * time.Minute, func() error {
			return b.sendMessages(ctx, support, []line{{0, "Guten Tag, die Anmeldebestätigung ist da. Ich habe sie eben hochgeladen."}})
		}},
	} {
		b.setTimeAgo(event.ago)
		if err := event.do(); err != nil {
			return fmt.Errorf("%s ago: %w", event.ago, err)
		}
	}
	return nil
}

// ownCustomer returns the customer record of the user Nina Keller.
func (b *builder) ownCustomer() customer {
	for _, c := range b.customers {
		if c.advisor == b.customer {
			return c
		}
	}
	return b.customers[0]
}

func (b *builder) sendAndMarkRead(ctx context.Context, t *thread, lines []line) error {
	if err := b.sendMessages(ctx, t, lines); err != nil {
		return err
	}
	return b.markRead(ctx, t)
}

// decideNewestPending sets the status of the newest pending verification. The customer of today has none.
func (b *builder) decideNewestPending(ctx context.Context, status string) error {
	for _, c := range slices.Backward(b.customers) {
		var found struct {
			Status string `json:"kyc_status"`
		}
		if err := b.api.get(ctx, b.staff[0], "/v1/customers/"+c.id, &found); err != nil {
			return err
		}
		if found.Status == "pending" && c.advisor != b.customer {
			return b.decide(ctx, &c, status, "")
		}
	}
	return nil
}
