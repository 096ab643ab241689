package demo

import (
	"context"
	"net/http"
	"time"
)

// thread is a chat with its participants and its script.
type thread struct {
	id     string
	people []*person
	script []exchange
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

// scripts are the messages of the chats. Those of today are in recent.go.
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
		if t.script == "support" {
			metadata["support"] = true
		}
		var created record
		if err := b.api.post(ctx, t.people[0], "/v1/chats", object{"participants": ids, "metadata": metadata}, &created); err != nil {
			return err
		}
		b.threads = append(b.threads, thread{id: created.ID, people: t.people, script: scripts[t.script]})
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
		if err := b.api.post(ctx, author, "/v1/chats/"+t.id+"/messages", object{"content": l.text}, nil); err != nil {
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
	return b.api.do(ctx, p, http.MethodPost, "/v1/chats/"+t.id+"/read", object{}, nil)
}
