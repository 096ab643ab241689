package tasks_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func TestAssignees_CompleteATask(t *testing.T) {
	s := servertest.Start(t)
	advisor, one, two := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	made, path := newTask(t, advisor, newCustomer(advisor), contract(one, two))
	first, second := path+"/assignees/"+made.Assignees[0].ID, path+"/assignees/"+made.Assignees[1].ID
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "accept", As: one, Method: "PATCH", Path: first, Body: body{"status": "accepted"}, Status: 200, Contains: []string{`"status":"accepted"`, `"task_completed":false`}},
		{Name: "the same status again", As: one, Method: "PATCH", Path: first, Body: body{"status": "accepted"}, Status: 200},
		{Name: "a status that may not follow", As: one, Method: "PATCH", Path: first, Body: body{"status": "assigned"}, Status: 409,
			Contains: []string{`"tasks.invalid_transition"`, `"allowed":["completed","declined"]`}},
		{Name: "done", As: one, Method: "PATCH", Path: first, Body: body{"task_completed": true}, Status: 200, Contains: []string{`"status":"completed"`, `"task_completed":true`}},
		{Name: "not done", As: one, Method: "PATCH", Path: first, Body: body{"task_completed": false}, Status: 200, Contains: []string{`"status":"accepted"`}},
		{Name: "a contradiction", As: one, Method: "PATCH", Path: first, Body: body{"status": "declined", "task_completed": true}, Status: 400, Contains: []string{`"task_completed"`}},
		{Name: "neither member", As: one, Method: "PATCH", Path: first, Body: body{}, Status: 400, Contains: []string{`"status"`}},
		{Name: "unknown status", As: one, Method: "PATCH", Path: first, Body: body{"status": "done"}, Status: 400, Contains: []string{`"status"`}},
		{Name: "done by both members", As: one, Method: "PATCH", Path: first, Body: body{"status": "completed", "task_completed": true}, Status: 200},
		{Name: "the other assignee declines", As: two, Method: "PATCH", Path: second, Body: body{"status": "declined"}, Status: 200},
		{Name: "half of the weight is performed", As: two, Method: "GET", Path: path, Status: 200, Contains: []string{`"performed_weight":2`, `"weight":4`, `"status":"pending"`}},
		{Name: "the other assignee accepts", As: two, Method: "PATCH", Path: second, Body: body{"status": "accepted"}, Status: 200},
		{Name: "and completes", As: two, Method: "PATCH", Path: second, Body: body{"status": "completed"}, Status: 200},
		{Name: "the task is completed", As: two, Method: "GET", Path: path, Status: 200, Contains: []string{`"performed_weight":4`, `"from":"pending","to":"completed"`}},
		{Name: "a change after the end", As: two, Method: "PATCH", Path: second, Body: body{"task_completed": false}, Status: 409, Contains: []string{`"allowed":[]`}},
		{Name: "removing an assignee after the end", As: advisor, Method: "DELETE", Path: second, Status: 409},
		{Name: "assigning after the end", As: advisor, Method: "POST", Path: path + "/assignees", Body: body{"user_id": advisor.UserID}, Status: 409},
	})
	if got := get(t, advisor, path); got.Status != "completed" {
		t.Errorf("the task is %s", got.Status)
	}
}

func TestAssignees_AreAddedAndRemoved(t *testing.T) {
	s := servertest.Start(t)
	advisor, one, two := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	made, path := newTask(t, advisor, newCustomer(advisor), contract(one))
	tag := advisor.Do("GET", path, nil).Header.Get("ETag")
	answer := advisor.With("If-Match", tag).Do("POST", path+"/assignees", body{"user_id": strings.ToUpper(two.UserID)}).Expect(t, http.StatusCreated)
	var added assignee
	answer.Into(t, &added)
	want := assignee{ID: added.ID, TaskID: made.ID, UserID: two.UserID, Status: "assigned", Weight: 1, AssignedAt: "2026-01-31T08:15:30.123Z"}
	if added != want || answer.Header.Get("ETag") != `"v2"` {
		t.Errorf("got %+v with %s, want %+v with the version of the task", added, answer.Header.Get("ETag"), want)
	}
	if got := get(t, two, path); got.Weight != 3 || len(got.Assignees) != 2 || got.Assignees[1] != added {
		t.Errorf("got %+v", got)
	}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "twice", As: advisor, Method: "POST", Path: path + "/assignees", Body: body{"user_id": two.UserID}, Status: 409, Contains: []string{`"tasks.assignee_exists"`}},
		{Name: "no user", As: advisor, Method: "POST", Path: path + "/assignees", Body: body{}, Status: 400, Contains: []string{`"user_id"`}},
		{Name: "unknown user", As: advisor, Method: "POST", Path: path + "/assignees", Body: body{"user_id": store.NewID()}, Status: 400, Contains: []string{`"user_id"`}},
		{Name: "weight too large", As: advisor, Method: "POST", Path: path + "/assignees", Body: body{"user_id": advisor.UserID, "weight": 1_000_001}, Status: 400, Contains: []string{`"weight"`}},
		{Name: "unknown assignee", As: advisor, Method: "PATCH", Path: path + "/assignees/" + store.NewID(), Body: body{"status": "accepted"}, Status: 404,
			Contains: []string{`"tasks.assignee_not_found"`}},
		{Name: "removing an unknown assignee", As: advisor, Method: "DELETE", Path: path + "/assignees/" + store.NewID(), Status: 404, Contains: []string{`"tasks.assignee_not_found"`}},
		{Name: "a stale ETag", As: one.With("If-Match", tag), Method: "PATCH", Path: path + "/assignees/" + made.Assignees[0].ID, Body: body{"status": "accepted"}, Status: 412},
		{Name: "the first assignee completes", As: one, Method: "PATCH", Path: path + "/assignees/" + made.Assignees[0].ID, Body: body{"status": "completed"}, Status: 200},
		{Name: "removing the second completes the task", As: advisor.With("Accept-Language", "it"), Method: "DELETE", Path: path + "/assignees/" + added.ID, Status: 200,
			Contains: []string{"Il compito non è più assegnato all’utente."}},
		{Name: "the second has lost access", As: two, Method: "GET", Path: path, Status: 403},
	})
	if got := get(t, advisor, path); got.Status != "completed" || got.PerformedWeight != 2 || got.Weight != 2 {
		t.Errorf("got %+v", got)
	}
}

func TestAssignees_CompleteInParallel(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	var users []*servertest.Client
	for range 16 {
		users = append(users, s.User(access.Customer))
	}
	made, path := newTask(t, advisor, newCustomer(advisor), contract(users...))
	var wait sync.WaitGroup
	for _, user := range users {
		part := made.Assignees[slices.IndexFunc(made.Assignees, func(a assignee) bool { return a.UserID == user.UserID })]
		wait.Go(func() {
			user.Do("PATCH", path+"/assignees/"+part.ID, body{"task_completed": true}).Expect(t, http.StatusOK)
		})
	}
	wait.Wait()
	got := get(t, advisor, path)
	if got.Status != "completed" || got.PerformedWeight != 32 || got.Weight != 32 || len(got.Metadata.Logs) != 1+16+1 {
		t.Errorf("got %s with %d of %d and %d logs", got.Status, got.PerformedWeight, got.Weight, len(got.Metadata.Logs))
	}
}
