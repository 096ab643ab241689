package tasks_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"kontor/server/access"
	"kontor/server/servertest"
)

// The clock of the tests shows 2026-01-31, 08:15:30 in UTC.
const (
	longAgo   = "2026-01-20"
	yesterday = "2026-01-30"
	today     = "2026-01-31"
	tomorrow  = "2026-02-01"
	later     = "2026-03-01"
)

func dueOn(day string, assignees ...*servertest.Client) body {
	data := contract(assignees...)
	data["title"], data["due_on"] = "due "+day, day
	return data
}

func TestDueOn_IsADayOrNull(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	customer := newCustomer(advisor)
	at := "/v1/customers/" + customer + "/tasks"
	_, path := newTask(t, advisor, customer, dueOn(tomorrow))
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "as given", As: advisor, Method: "GET", Path: path, Status: 200, Contains: []string{`"due_on":"2026-02-01"`}},
		{Name: "no such day", As: advisor, Method: "POST", Path: at, Body: dueOn("2026-02-29"), Status: 400, Contains: []string{`"due_on"`}},
		{Name: "not a day", As: advisor, Method: "PUT", Path: path, Body: body{"due_on": "soon"}, Status: 400, Contains: []string{`"due_on"`}},
		{Name: "kept", As: advisor, Method: "PUT", Path: path, Body: body{"title": "Other"}, Status: 200, Contains: []string{`"due_on":"2026-02-01"`}},
		{Name: "changed", As: advisor, Method: "PUT", Path: path, Body: body{"due_on": later}, Status: 200, Contains: []string{`"due_on":"2026-03-01"`, `"fields":["due_on"]`}},
		{Name: "removed", As: advisor, Method: "PUT", Path: path, Body: body{"due_on": nil}, Status: 200, Contains: []string{`"due_on":null`}},
		{Name: "none", As: advisor, Method: "POST", Path: at, Body: contract(), Status: 201, Contains: []string{`"due_on":null`}},
	})
}

// titles returns the titles of a list, joined.
func titles(t *testing.T, as *servertest.Client, query string) string {
	t.Helper()
	var page struct{ Data []struct{ Title string } }
	as.Do("GET", "/v1/tasks?limit=100&"+query, nil).Expect(t, http.StatusOK).Into(t, &page)
	all := make([]string, len(page.Data))
	for i, one := range page.Data {
		all[i] = strings.TrimPrefix(one.Title, "due ")
	}
	return strings.Join(all, " ")
}

func TestList_ScopeAssigneeAndDueDate(t *testing.T) {
	s := servertest.Start(t)
	anna, beat, outsider := s.User(access.Advisor), s.User(access.Advisor), s.User(access.Customer)
	customer := newCustomer(anna)
	newTask(t, anna, customer, dueOn(later, beat))
	newTask(t, anna, customer, dueOn(yesterday))
	newTask(t, beat, customer, dueOn(today, beat, outsider))
	_, closed := newTask(t, beat, customer, dueOn(longAgo))
	beat.Do("PATCH", closed+"/status", body{"status": "canceled"}).Expect(t, http.StatusOK)
	newTask(t, beat, customer, contract())
	for _, c := range []struct {
		as          *servertest.Client
		query, want string
	}{
		{anna, "sort=due", yesterday + " " + later},
		{anna, "scope=mine&sort=-due", later + " " + yesterday},
		{anna, "scope=all&sort=due", longAgo + " " + yesterday + " " + today + " " + later + " Vertrag"},
		{outsider, "scope=all", today},
		{anna, "scope=all&overdue=true", yesterday},
		{beat, "overdue=true", ""},
		{anna, "scope=all&assignee_id=" + beat.UserID + "&sort=due", today + " " + later},
		{beat, "assignee_id=" + beat.UserID + "&sort=due", today + " " + later},
		{anna, "scope=all&assignee_id=" + anna.UserID, ""}, // the creator of a task has no part of it
		{anna, "scope=all&search.due_on=.." + today + "&sort=due", longAgo + " " + yesterday + " " + today},
		{anna, "scope=all&search.due_on=null", "Vertrag"},
		{anna, "scope=all&search.status=pending&search.due_on=" + tomorrow + "..", later},
	} {
		if got := titles(t, c.as, c.query); got != c.want {
			t.Errorf("%s: got %q, want %q", c.query, got, c.want)
		}
	}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "exact counts by status", As: anna, Method: "GET", Path: "/v1/tasks?scope=all&stack=status&limit=1", Status: 200,
			Contains: []string{`"group_totals":{"canceled":1,"pending":4}`}},
		{Name: "of a customer", As: anna, Method: "GET", Path: "/v1/customers/" + customer + "/tasks?overdue=true", Status: 200, Contains: []string{`"total":1`, "due " + yesterday}},
		{Name: "an unknown scope", As: anna, Method: "GET", Path: "/v1/tasks?scope=team", Status: 400, Contains: []string{`"scope"`}},
		{Name: "an invalid assignee", As: anna, Method: "GET", Path: "/v1/tasks?assignee_id=x", Status: 400, Contains: []string{`"assignee_id"`}},
	})
}

// reminders returns how many reminders a user has.
func reminders(t *testing.T, c *servertest.Client) int {
	t.Helper()
	var page struct{ Total int }
	c.Do("GET", "/v1/notifications?limit=-1&search.event=task_due&search.user_id="+c.UserID, nil).Expect(t, http.StatusOK).Into(t, &page)
	return page.Total
}

func TestRemind_OncePerTaskAndDay(t *testing.T) {
	s := servertest.Start(t)
	owner, doing, done := s.User(access.Advisor), s.User(access.Advisor), s.User(access.Advisor)
	customer := newCustomer(owner)
	both, path := newTask(t, owner, customer, dueOn(yesterday, doing, done))
	done.Do("PATCH", path+"/assignees/"+both.Assignees[1].ID, body{"status": "completed"}).Expect(t, http.StatusOK)
	newTask(t, owner, customer, dueOn(tomorrow)) // the creator does it
	newTask(t, owner, customer, dueOn(longAgo, doing))
	newTask(t, owner, customer, dueOn(later, doing))
	_, ended := newTask(t, owner, customer, dueOn(today, doing))
	owner.Do("PATCH", ended+"/status", body{"status": "completed"}).Expect(t, http.StatusOK)

	before := owner.Do("GET", path, nil).Header.Get("ETag")
	s.Tasks.ReminderHour = 9
	remind(t, s)
	if n := reminders(t, doing); n != 0 {
		t.Errorf("before the hour there are %d reminders", n)
	}
	s.Tasks.ReminderHour = 8
	for range 3 {
		remind(t, s)
	}
	for who, want := range map[*servertest.Client]int{owner: 1, doing: 1, done: 0} {
		if n := reminders(t, who); n != want {
			t.Errorf("%s has %d reminders, want %d", who.UserID, n, want)
		}
	}
	if after := owner.Do("GET", path, nil).Header.Get("ETag"); after != before {
		t.Errorf("a reminder changed the task: %s, then %s", before, after)
	}
	owner.Do("PUT", path, body{"due_on": today}).Expect(t, http.StatusOK)
	remind(t, s)
	if n := reminders(t, doing); n != 1 {
		t.Errorf("another day of the same task: %d reminders today, want 1", n)
	}
	s.Clock.Set(time.Date(2026, 2, 1, 8, 0, 0, 0, time.UTC))
	remind(t, s)
	doing = s.SignIn(doing.UserID, "a long enough password 42")
	if n := reminders(t, doing); n != 2 {
		t.Errorf("on the next day there are %d reminders, want 2", n)
	}
	german := doing.With("Accept-Language", "de").Do("GET", "/v1/notifications?search.event=task_due", nil).Expect(t, http.StatusOK)
	if !strings.Contains(german.Body, `Die Aufgabe «due 2026-01-30» ist am 30.01.2026 fällig`) {
		t.Errorf("got %s", german.Body)
	}
}

func remind(t *testing.T, s *servertest.Server) {
	t.Helper()
	if err := s.Tasks.Remind(t.Context()); err != nil {
		t.Fatal(err)
	}
}
