package demo

import "net/http"

// errands are what there is to do, by category.
var errands = []struct{ category, title, description string }{
	{"sign", "Sign the framework agreement", "Two signatures are needed; the original stays with us."},
	{"approve", "Approve the credit limit", "The request is for CHF 25'000; see the assessment in the file."},
	{"update", "Bring the address up to date", "A letter came back from the post."},
	{"update", "Renew the proof of address", "The one on file is older than a year."},
	{"delete", "Remove the closed account", "All balances are zero; the customer has confirmed."},
	{"approve", "Confirm the beneficial owner", "Form A was handed in and has to be compared with the register."},
	{"sign", "Vertrag für das Schliessfach unterzeichnen", "Fach 114, Laufzeit ein Jahr."},
	{"approve", "Valider le plan de remboursement", "Six mensualités, première échéance à la fin du mois."},
	{"update", "Aggiornare il profilo di rischio", "Il colloquio annuale ha avuto luogo."},
}

// work gives out tasks and gets some of them done.
func (b *bank) work(day int) error {
	if day < 5 || day%2 == 1 {
		return nil
	}
	c, errand, owner := pick(b, b.customers), pick(b, errands), b.staff[day/2%len(b.staff)]
	var made struct {
		ID string `json:"id"`
	}
	path := "/v1/customers/" + c.id + "/tasks"
	if err := b.api.post(owner, path, object{"title": errand.title, "category": errand.category, "description": errand.description,
		"is_urgent": day%10 == 0, "weight": 1}, &made); err != nil {
		return err
	}
	path += "/" + made.ID
	assignees := map[*person]string{}
	for n, p := range []*person{b.staff[day%len(b.staff)], b.staff[(day+1)%len(b.staff)]} {
		var assigned assignment
		if err := b.api.post(owner, path+"/assignees", object{"user_id": p.id, "name": p.name, "weight": 2 + n*3}, &assigned); err != nil {
			return err
		}
		assignees[p] = assigned.find(p.id)
	}
	return b.proceed(owner, path, assignees, day)
}

// assignment is the answer to an assignment: the assignee, or the task with all of them.
type assignment struct {
	ID        string `json:"id"`
	UserID    string `json:"user_id"`
	Assignees []struct {
		ID     string `json:"id"`
		UserID string `json:"user_id"`
	} `json:"assignees"`
}

func (a assignment) find(userID string) string {
	for _, assignee := range a.Assignees {
		if assignee.UserID == userID {
			return assignee.ID
		}
	}
	return a.ID
}

// proceed lets a task end in one of the ways in which tasks end.
func (b *bank) proceed(owner *person, path string, assignees map[*person]string, day int) error {
	status := func(s string) error {
		return b.api.do(owner, http.MethodPatch, path+"/status", object{"status": s}, nil)
	}
	switch day / 2 % 6 {
	case 0: // nobody has begun
		return nil
	case 1:
		return status("canceled")
	case 2:
		return status("declined")
	}
	if err := status("in_progress"); err != nil {
		return err
	}
	for _, p := range b.staff { // in a fixed order
		id, assigned := assignees[p]
		if !assigned {
			continue
		}
		if err := b.api.do(p, http.MethodPatch, path+"/assignees/"+id, object{"status": "completed", "task_completed": true}, nil); err != nil {
			return err
		}
		if day/2%6 == 3 { // the other one is still at it
			return nil
		}
	}
	return nil
}
