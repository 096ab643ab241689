package demo

import (
	"fmt"
	"net/http"
)

// errand is something there is to do for a customer.
type errand struct{ category, title, description string }

// errands are what there is to do.
var errands = []errand{
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

const (
	untouched = iota
	begun
	halfway
	completed
	declined
	canceled
)

// work gives out a task every few days. What is older has come to an end, what is recent is under way.
func (b *bank) work(day int) error {
	if day < 20 || day%5 != 0 {
		return nil
	}
	n := day / 5
	end := []int{completed, completed, completed, declined, completed, completed, canceled}[n%7]
	if day > days-55 {
		end = []int{halfway, untouched, begun, completed, untouched, halfway}[n%6]
	}
	owner := b.staff[n%len(b.staff)]
	others := []*person{b.staff[0], b.staff[1+n%3]}
	if n%3 == 0 {
		others[1] = b.admin
	}
	return b.give(owner, others, errands[n%len(errands)], n%6 == 1, end)
}

// give makes a task for some customer, assigns it, and takes it as far as it has come.
func (b *bank) give(owner *person, to []*person, what errand, urgent bool, end int) error {
	var made idOf
	path := "/v1/customers/" + pick(b, b.customers).id + "/tasks"
	if err := b.api.post(owner, path, object{"title": what.title, "category": what.category, "description": what.description,
		"is_urgent": urgent, "weight": 1}, &made); err != nil {
		return err
	}
	path += "/" + made.ID
	parts := make([]string, len(to))
	for n, p := range to {
		var assigned assignment
		if err := b.api.post(owner, path+"/assignees", object{"user_id": p.id, "name": p.name, "weight": 2 + n*3}, &assigned); err != nil {
			return err
		}
		parts[n] = path + "/assignees/" + assigned.find(p.id)
	}
	return b.proceed(owner, path, to, parts, end)
}

// assignment is the answer to an assignment: the assignee, or the task with all of them.
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

// proceed lets a task come as far as it has come; parts are the assignments, one for each of the people.
func (b *bank) proceed(owner *person, path string, people []*person, parts []string, end int) error {
	status := func(s string) error {
		return b.api.do(owner, http.MethodPatch, path+"/status", object{"status": s}, nil)
	}
	part := func(n int, s string) error {
		return b.api.do(people[n], http.MethodPatch, parts[n], object{"status": s, "task_completed": s == "completed"}, nil)
	}
	switch end {
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
	switch end {
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
