package demo

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

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
		var assigned assignment
		if err := b.api.post(ctx, owner, path+"/assignees", object{"user_id": p.id, "name": p.name, "weight": 2 + n*3}, &assigned); err != nil {
			return err
		}
		parts[n] = path + "/assignees/" + assigned.find(p.id)
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

// assignment is the response to an assignment: the assignee, or the task with all assignees.
type assignment struct {
	ID        string `json:"id"`
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
