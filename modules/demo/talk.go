package demo

import "net/http"

// thread is a chat and who takes part in it.
type thread struct {
	id     string
	people []*person
	lines  []string
}

var conversations = [][]string{
	{"Guten Morgen! Hast du die Unterlagen von Frau Hürlimann gesehen?", "Ja, der Pass ist gut lesbar. Der Adressnachweis fehlt noch.", "Danke, ich frage nach.",
		"Sie bringt ihn am Donnerstag vorbei.", "Perfekt, dann schliessen wir es diese Woche ab."},
	{"Bonjour Lena, as-tu un moment pour le dossier du vignoble?", "Bien sûr. Il manque la signature du second associé.", "Il passe demain à l'agence.", "Très bien, je réserve la salle 2."},
	{"Ciao! Il cliente di Locarno chiede il nuovo contratto.", "Lo preparo oggi e te lo mando per la verifica.", "Grazie, è urgente: parte in vacanza venerdì."},
	{"The four-eyes check for the Zug account is still open.", "On it. The beneficial owner form is complete.", "Great, please approve the task then.", "Done. That was the last one for this quarter."},
}

// talk opens the chats in the first weeks and lets them go on until today.
func (b *bank) talk(day int) error {
	if day == 10 {
		if err := b.openChats(); err != nil {
			return err
		}
	}
	for i := range b.threads {
		t := &b.threads[i]
		if (day+i*3)%7 != 0 && day < days-3 {
			continue
		}
		if err := b.say(t, day+i); err != nil {
			return err
		}
	}
	return nil
}

func (b *bank) openChats() error {
	s := b.staff
	for n, t := range []struct {
		people   []*person
		metadata object
	}{
		{[]*person{s[0], s[1]}, object{}},
		{[]*person{s[1], s[0]}, object{}}, // the same two: the API answers with the first
		{[]*person{s[0], s[2], s[3]}, object{"title": "Onboarding"}},
		{[]*person{s[0], s[1], s[2], s[3]}, object{"title": "Team Zürich"}},
		{[]*person{b.customer, s[0]}, object{"support": true, "title": "Support"}},
		{[]*person{s[3], s[0]}, object{}},
	} {
		var ids []string
		for _, p := range t.people[1:] {
			ids = append(ids, p.id)
		}
		var made idOf
		if err := b.api.post(t.people[0], "/v1/chats", object{"participants": ids, "metadata": t.metadata}, &made); err != nil {
			return err
		}
		b.threads = append(b.threads, thread{id: made.ID, people: t.people, lines: conversations[n%len(conversations)]})
	}
	return nil
}

// say writes a few lines, each by the next in the round. All but the last reader have read them, until the last days.
func (b *bank) say(t *thread, seed int) error {
	for n := range 2 + seed%3 {
		author := t.people[(seed+n)%len(t.people)]
		if err := b.api.post(author, "/v1/chats/"+t.id+"/messages", object{"content": t.lines[(seed+n)%len(t.lines)]}, nil); err != nil {
			return err
		}
	}
	for i, p := range t.people {
		if i == seed%len(t.people) {
			continue
		}
		if err := b.api.do(p, http.MethodPost, "/v1/chats/"+t.id+"/read", object{}, nil); err != nil {
			return err
		}
	}
	return nil
}
