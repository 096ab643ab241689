package tasks_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

// task is a task as clients decode it.
type task struct {
	ID              string     `json:"id"`
	Status          string     `json:"status"`
	Weight          int        `json:"weight"`
	PerformedWeight int        `json:"performed_weight"`
	Assignees       []assignee `json:"assignees"`
	Metadata        struct {
		Logs []struct {
			At, By, Action, From, To, Reason string
			Fields                           []string
		} `json:"logs"`
		Actions map[string]any `json:"actions"`
	} `json:"metadata"`
}

type assignee struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	TaskID        string `json:"task_id"`
	UserID        string `json:"user_id"`
	Status        string `json:"status"`
	Weight        int    `json:"weight"`
	TaskCompleted bool   `json:"task_completed"`
	AssignedAt    string `json:"assigned_at"`
}

type body = map[string]any

// contract returns the body of a minimal task with an assignee for each user.
func contract(assignees ...*servertest.Client) body {
	parts := []body{}
	for _, a := range assignees {
		parts = append(parts, body{"user_id": a.UserID, "name": "A. Muster", "weight": 2})
	}
	return body{"title": "Vertrag", "category": "sign", "assignees": parts}
}

func newCustomer(c *servertest.Client) string {
	return c.Create("/v1/customers", body{"first_name": "Ada", "last_name": "Muster", "email": "ada@example.ch"})
}

// newTask creates a task and returns it with its path.
func newTask(t testing.TB, as *servertest.Client, customerID string, data body) (task, string) {
	t.Helper()
	var made task
	as.Do("POST", "/v1/customers/"+customerID+"/tasks", data).Expect(t, http.StatusCreated).Into(t, &made)
	return made, "/v1/customers/" + customerID + "/tasks/" + made.ID
}

func get(t testing.TB, as *servertest.Client, path string) task {
	t.Helper()
	var got task
	as.Do("GET", path, nil).Expect(t, http.StatusOK).Into(t, &got)
	return got
}

func TestCreate_ReturnsTheWholeRecord(t *testing.T) {
	s := servertest.Start(t)
	advisor, customer := s.User(access.Advisor), s.User(access.Customer)
	data := contract(customer)
	for name, value := range map[string]any{"description": "Bitte\nlesen", "is_urgent": true, "weight": 7, "status": "completed", "created_by": customer.UserID, "id": "x",
		"metadata": body{"actions": body{"document": 1}, "logs": []string{"forged"}, "note": nil}} {
		data[name] = value
	}
	answer := advisor.Do("POST", "/v1/customers/"+newCustomer(advisor)+"/tasks", data).Expect(t, http.StatusCreated)
	for _, want := range []string{`"title":"Vertrag"`, `"category":"sign"`, `"description":"Bitte\nlesen"`, `"is_urgent":true`, `"status":"pending"`, `"weight":2`,
		`"performed_weight":0`, `"name":"A. Muster"`, `"status":"assigned"`, `"task_completed":false`, `"assigned_at":"2026-01-31T08:15:30.123Z"`,
		`"created_by":"` + advisor.UserID, `"created_at":"2026-01-31T08:15:30.123Z"`,
		`"metadata":{"actions":{"document":1},"note":null,"logs":[{"at":"2026-01-31T08:15:30.123Z","by":"` + advisor.UserID + `","action":"created"}]}`} {
		if !strings.Contains(answer.Body, want) {
			t.Errorf("%s lacks %s", answer.Body, want)
		}
	}
	if answer.Header.Get("ETag") != `"v1"` {
		t.Errorf("ETag is %s", answer.Header.Get("ETag"))
	}
}

func TestCreate_KeepsTheGivenWeightWithoutAssignees(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	customer := newCustomer(advisor)
	if got, _ := newTask(t, advisor, customer, contract()); got.Weight != 1 || got.PerformedWeight != 0 || got.Assignees == nil || got.Metadata.Actions == nil {
		t.Errorf("got %+v", got)
	}
	data := contract()
	data["weight"] = 5
	got, path := newTask(t, advisor, customer, data)
	if got.Weight != 5 {
		t.Errorf("got weight %d, want 5", got.Weight)
	}
	advisor.Do("PATCH", path+"/status", body{"status": "completed"}).Expect(t, http.StatusOK)
	if got := get(t, advisor, path); got.Weight != 5 || got.PerformedWeight != 0 {
		t.Errorf("got %d of %d, want none performed without assignees", got.PerformedWeight, got.Weight)
	}
}

func TestCreate_ReportsAllInvalidFields(t *testing.T) {
	s := servertest.Start(t)
	advisor, disabled := s.User(access.Advisor), s.User(access.Customer)
	s.Admin().Do("PATCH", "/v1/users/"+disabled.UserID, body{"status": "disabled"}).Expect(t, http.StatusOK)
	path := "/v1/customers/" + newCustomer(advisor) + "/tasks"
	answer := advisor.With("Accept-Language", "de").Do("POST", path, body{
		"title": " ", "category": "read", "description": "a\u0000", "is_urgent": "yes", "weight": -1, "metadata": body{"actions": 1},
		"assignees": []body{{"user_id": "no user", "weight": 2_000_000}, {"name": "a\nb"}, {"user_id": advisor.UserID}, {"user_id": strings.ToUpper(advisor.UserID)}},
	}).Expect(t, http.StatusBadRequest)
	details := answer.JSON(t)["details"].(map[string]any)
	for _, field := range []string{"title", "category", "description", "is_urgent", "weight", "metadata.actions", "assignees.0.user_id", "assignees.0.weight",
		"assignees.1.user_id", "assignees.1.name", "assignees.3.user_id"} {
		if text, _ := details[field].(string); text == "" || strings.HasPrefix(text, "invalid.") || strings.HasPrefix(text, "tasks.") {
			t.Errorf("details of %s: %q", field, text)
		}
	}
	if len(details) != 11 {
		t.Errorf("got %v", details)
	}
	unknown := contract()
	unknown["assignees"] = []body{{"user_id": store.NewID()}, {"user_id": advisor.UserID}, {"user_id": disabled.UserID}}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "unknown or inactive assignees", As: advisor, Method: "POST", Path: path, Body: unknown, Status: 400,
			Contains: []string{`"assignees.0.user_id"`, `"assignees.2.user_id"`}, Excludes: []string{`"assignees.1.user_id"`}},
		{Name: "no task was created", As: advisor, Method: "GET", Path: path, Status: 200, Contains: []string{`"total":0`}},
	})
}

func TestCreate_IsIdempotent(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	customer := newCustomer(advisor)
	keyed := advisor.With("Idempotency-Key", "one")
	first, path := newTask(t, keyed, customer, contract())
	if again, _ := newTask(t, keyed, customer, contract()); again.ID != first.ID {
		t.Errorf("got tasks %s and %s", first.ID, again.ID)
	}
	var one, two assignee
	part := body{"user_id": advisor.UserID}
	keyed.Do("POST", path+"/assignees", part).Expect(t, http.StatusCreated).Into(t, &one)
	keyed.Do("POST", path+"/assignees", part).Expect(t, http.StatusCreated).Into(t, &two)
	if one != two {
		t.Errorf("got assignees %+v and %+v", one, two)
	}
}

func TestUpdate_KeepsMissingMembers(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	data := contract()
	data["metadata"], data["weight"] = body{"actions": body{"a": 1}}, 4
	_, path := newTask(t, advisor, newCustomer(advisor), data)
	tag := advisor.Do("GET", path, nil).Header.Get("ETag")
	got := advisor.Do("PUT", path, body{"title": "Neu", "is_urgent": true, "status": "completed", "metadata": body{"b": 2}}).Expect(t, http.StatusOK)
	for _, want := range []string{`"title":"Neu"`, `"category":"sign"`, `"is_urgent":true`, `"status":"pending"`, `"weight":4`, `"actions":{}`, `"b":2`,
		`"action":"created"`, `"action":"updated","fields":["title","is_urgent","metadata"]`} {
		if !strings.Contains(got.Body, want) {
			t.Errorf("%s lacks %s", got.Body, want)
		}
	}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "an invalid value", As: advisor, Method: "PUT", Path: path, Body: body{"title": nil, "category": "x"}, Status: 400, Contains: []string{`"title"`, `"category"`}},
		{Name: "a stale ETag", As: advisor.With("If-Match", tag), Method: "PUT", Path: path, Body: body{"title": "x"}, Status: 412},
		{Name: "a stale ETag, status", As: advisor.With("If-Match", tag), Method: "PATCH", Path: path + "/status", Body: body{"status": "canceled"}, Status: 412},
		{Name: "a stale ETag, delete", As: advisor.With("If-Match", tag), Method: "DELETE", Path: path, Status: 412},
		{Name: "the current ETag", As: advisor.With("If-Match", got.Header.Get("ETag")), Method: "PUT", Path: path, Body: body{"weight": nil}, Status: 200, Contains: []string{`"weight":1`}},
		{Name: "an unchanged task", As: advisor.With("If-None-Match", `"v3"`), Method: "GET", Path: path, Status: 304},
	})
	advisor.Do("PATCH", path+"/status", body{"status": "canceled"}).Expect(t, http.StatusOK)
	if late := advisor.Do("PUT", path, body{"title": "x"}); late.Status != 409 || !strings.Contains(late.Body, `"allowed":[]`) {
		t.Errorf("a change after the end got %d %s", late.Status, late.Body)
	}
}

func TestSetStatus_FollowsTheTransitions(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	customer := newCustomer(advisor)
	all := []string{"pending", "in_progress", "completed", "canceled", "declined"}
	next := map[string][]string{"pending": all[1:], "in_progress": all[2:]}
	for _, from := range all {
		for _, to := range all {
			t.Run(from+" to "+to, func(t *testing.T) {
				_, path := newTask(t, advisor, customer, contract())
				if from != "pending" {
					advisor.Do("PATCH", path+"/status", body{"status": from}).Expect(t, http.StatusOK)
				}
				answer := advisor.Do("PATCH", path+"/status", body{"status": to, "reason": "so"})
				if slices.Contains(next[from], to) {
					logs := get(t, advisor, path).Metadata.Logs
					last := logs[len(logs)-1]
					if answer.Status != 200 || last.From != from || last.To != to || last.Reason != "so" || last.By != advisor.UserID {
						t.Errorf("got %d %s with the last log %+v", answer.Status, answer.Body, last)
					}
					return
				}
				allowed := `"allowed":[]`
				if n := next[from]; n != nil {
					allowed = `"allowed":["` + strings.Join(n, `","`) + `"]`
				}
				if answer.Status != 409 || !strings.Contains(answer.Body, `"tasks.invalid_transition"`) || !strings.Contains(answer.Body, allowed) {
					t.Errorf("got %d %s, want 409 with %s", answer.Status, answer.Body, allowed)
				}
			})
		}
	}
	_, path := newTask(t, advisor, customer, contract())
	for _, status := range []any{"done", "", nil, 1} {
		advisor.Do("PATCH", path+"/status", body{"status": status}).Expect(t, http.StatusBadRequest)
	}
}

func TestLogs_KeepTheLast100(t *testing.T) {
	s := servertest.Start(t)
	advisor := s.User(access.Advisor)
	_, path := newTask(t, advisor, newCustomer(advisor), contract())
	for i := range 105 {
		advisor.Do("PUT", path, body{"title": fmt.Sprint(i)}).Expect(t, http.StatusOK)
	}
	logs := get(t, advisor, path).Metadata.Logs
	if len(logs) != 100 || logs[0].Action != "updated" || logs[99].By != advisor.UserID || logs[99].At == "" {
		t.Errorf("got %d logs from %+v to %+v", len(logs), logs[0], logs[len(logs)-1])
	}
}
