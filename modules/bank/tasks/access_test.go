package tasks_test

import (
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func TestLists_ReturnTheCallersTasksAndThoseOfACustomer(t *testing.T) {
	s := servertest.Start(t)
	advisor, colleague, customer := s.User(access.Advisor), s.User(access.Advisor), s.User(access.Customer)
	own, other := newCustomer(customer), newCustomer(advisor)
	made, _ := newTask(t, advisor, own, contract(customer))
	urgent := contract(colleague)
	urgent["is_urgent"], urgent["title"] = true, "Ärger"
	newTask(t, advisor, other, urgent)
	newTask(t, colleague, other, contract())
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "tasks of the creator", As: advisor, Method: "GET", Path: "/v1/tasks", Status: 200, Contains: []string{`"total":2,"total_unfiltered":2`}},
		{Name: "tasks of a creator who also is an assignee", As: colleague, Method: "GET", Path: "/v1/tasks", Status: 200, Contains: []string{`"total":2,`}},
		{Name: "tasks of an assignee", As: customer, Method: "GET", Path: "/v1/tasks", Status: 200, Contains: []string{`"total":1,`, made.ID}},
		{Name: "none for an administrator", As: s.Admin(), Method: "GET", Path: "/v1/tasks", Status: 200, Contains: []string{`"total":0,`}},
		{Name: "all tasks of a customer for an administrator", As: s.Admin(), Method: "GET", Path: "/v1/customers/" + other + "/tasks", Status: 200, Contains: []string{`"total":2,`}},
		{Name: "tasks of the own customer", As: customer, Method: "GET", Path: "/v1/customers/" + own + "/tasks", Status: 200, Contains: []string{`"total":1,`}},
		{Name: "another customer", As: customer, Method: "GET", Path: "/v1/customers/" + other + "/tasks", Status: 403},
		{Name: "unknown customer", As: advisor, Method: "GET", Path: "/v1/customers/" + store.NewID() + "/tasks", Status: 404, Contains: []string{`"customers.customer_not_found"`}},
		{Name: "case-insensitive filter", As: advisor, Method: "GET", Path: "/v1/tasks?search.title=%C3%A4rger&search.is_urgent=true", Status: 200, Contains: []string{`"total":1,"total_unfiltered":2`}},
		{Name: "sorted by a derived value", As: advisor, Method: "GET", Path: "/v1/tasks?sort=-weight&search.weight=2..&search.performed_weight=0", Status: 200, Contains: []string{`"total":2,`}},
		{Name: "in groups", As: advisor, Method: "GET", Path: "/v1/tasks?stack=status", Status: 200, Contains: []string{`"group_totals":{"pending":2}`}},
		{Name: "unknown filter", As: advisor, Method: "GET", Path: "/v1/tasks?search.logs=1", Status: 500, Contains: []string{`"query_m.invalid_search_field"`}},
	})
}

func TestList_ReturnsAssignedTasksOfAnyCustomer(t *testing.T) {
	s := servertest.Start(t)
	advisor, assigned, stranger := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	customer := newCustomer(advisor)
	assignedTask, _ := newTask(t, advisor, customer, contract(assigned))
	other, _ := newTask(t, advisor, customer, contract())
	tasks := "/v1/customers/" + customer + "/tasks"
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "assigned task", As: assigned, Method: "GET", Path: tasks, Status: 200, Contains: []string{`"total":1,"total_unfiltered":1`, assignedTask.ID}, Excludes: []string{other.ID}},
		{Name: "no match", As: assigned, Method: "GET", Path: tasks + "?search.status=completed", Status: 200, Contains: []string{`"total":0,"total_unfiltered":1`}},
		{Name: "the customer", As: assigned, Method: "GET", Path: "/v1/customers/" + customer, Status: 403},
		{Name: "another user", As: stranger, Method: "GET", Path: tasks, Status: 403},
		{Name: "another user with an unknown filter", As: stranger, Method: "GET", Path: tasks + "?search.logs=1", Status: 403},
	})
}

func TestAccess_IsForCreatorAssigneesAndStaff(t *testing.T) {
	s := servertest.Start(t)
	creator, assigned, other, colleague := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer), s.User(access.Advisor)
	customer := newCustomer(creator)
	for name, c := range map[string]struct {
		as                                                                *servertest.Client
		create, get, put, status, assign, unassign, ownPart, part, remove int
	}{
		"creator":       {creator, 201, 200, 200, 200, 201, 200, 200, 200, 200},
		"assignee":      {assigned, 403, 200, 403, 403, 403, 403, 200, 403, 403},
		"another user":  {other, 403, 403, 403, 403, 403, 403, 403, 403, 403},
		"an advisor":    {colleague, 201, 200, 200, 200, 201, 200, 200, 200, 403},
		"administrator": {s.Admin(), 201, 200, 200, 200, 201, 200, 200, 200, 200},
		"a registrant":  {s.User(access.Registrant), 403, 403, 403, 403, 403, 403, 403, 403, 403},
		"no user":       {s.Anonymous(), 401, 401, 401, 401, 401, 401, 401, 401, 401},
	} {
		t.Run(name, func(t *testing.T) {
			third := s.User(access.Customer)
			made, path := newTask(t, creator, customer, contract(assigned, third))
			servertest.Run(t, s, []servertest.Scenario{
				{Name: "creates", As: c.as, Method: "POST", Path: "/v1/customers/" + customer + "/tasks", Body: contract(), Status: c.create},
				{Name: "reads", As: c.as, Method: "GET", Path: path, Status: c.get},
				{Name: "changes", As: c.as, Method: "PUT", Path: path, Body: body{"title": "Neu"}, Status: c.put},
				{Name: "sets the status", As: c.as, Method: "PATCH", Path: path + "/status", Body: body{"status": "in_progress"}, Status: c.status},
				{Name: "assigns", As: c.as, Method: "POST", Path: path + "/assignees", Body: body{"user_id": other.UserID}, Status: c.assign},
				{Name: "accepts the assignee's part", As: c.as, Method: "PATCH", Path: path + "/assignees/" + made.Assignees[0].ID, Body: body{"status": "accepted"}, Status: c.ownPart},
				{Name: "accepts the part of another", As: c.as, Method: "PATCH", Path: path + "/assignees/" + made.Assignees[1].ID, Body: body{"status": "accepted"}, Status: c.part},
				{Name: "removes an assignee", As: c.as, Method: "DELETE", Path: path + "/assignees/" + made.Assignees[1].ID, Status: c.unassign},
				{Name: "deletes", As: c.as, Method: "DELETE", Path: path, Status: c.remove},
			})
			if answer := c.as.Do("GET", path, nil); c.get == 403 && (answer.Status != 403 || strings.Contains(answer.Body, "Vertrag")) {
				t.Errorf("the error shows the task: %s", answer.Body)
			} else if c.remove == 200 && answer.Status != 404 {
				t.Errorf("the task was not deleted: %d %s", answer.Status, answer.Body)
			}
		})
	}
}

func TestTasks_AreFoundUnderTheirCustomerOnly(t *testing.T) {
	s := servertest.Start(t)
	advisor, stranger := s.User(access.Advisor), s.User(access.Customer)
	one, other := newCustomer(advisor), newCustomer(advisor)
	made, _ := newTask(t, advisor, one, contract(advisor))
	for _, as := range []*servertest.Client{advisor, stranger} {
		for _, path := range []string{"/v1/customers/" + other + "/tasks/" + made.ID, "/v1/customers/" + store.NewID() + "/tasks/" + made.ID, "/v1/customers/" + one + "/tasks/" + store.NewID()} {
			for _, verb := range [][2]string{{"GET", ""}, {"PUT", ""}, {"DELETE", ""}, {"PATCH", "/status"}, {"POST", "/assignees"},
				{"PATCH", "/assignees/" + made.Assignees[0].ID}, {"DELETE", "/assignees/" + made.Assignees[0].ID}} {
				answer := as.Do(verb[0], path+verb[1], body{"status": "completed", "user_id": stranger.UserID})
				if answer.Status != 404 || answer.JSON(t)["code"] != "tasks.task_not_found" || answer.JSON(t)["message"] != "Task not found" {
					t.Errorf("%s %s: got %d %s", verb[0], path+verb[1], answer.Status, answer.Body)
				}
			}
		}
	}
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "unknown customer", As: advisor, Method: "POST", Path: "/v1/customers/" + store.NewID() + "/tasks", Body: contract(), Status: 404,
			Contains: []string{`"customers.customer_not_found"`}},
		{Name: "invalid ids", As: advisor, Method: "GET", Path: "/v1/customers/1/tasks/2", Status: 400, Contains: []string{`"customer_id"`, `"id"`}},
	})
}

func TestRelations_AgreeWithAccess(t *testing.T) {
	s := servertest.Start(t)
	creator, assigned := s.User(access.Advisor), s.User(access.Customer)
	made, _ := newTask(t, creator, newCustomer(creator), contract(assigned))
	check := func(permission string) body {
		return body{"rec_type": "tasks", "permission": permission, "rec_id": made.ID}
	}
	checks := body{"checks": []body{check("read"), check("update"), check("delete")}}
	owner := `{"allowed":true,"source":"owner","source_id":"` + made.ID + `"}`
	no := `{"allowed":false,"source":"","source_id":"` + store.NilID + `"}`
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "creator", As: creator, Method: "POST", Path: "/v1/rbac/check", Body: checks, Status: 200, Contains: []string{"[" + owner + "," + owner + "," + owner + "]"}},
		{Name: "assignee", As: assigned, Method: "POST", Path: "/v1/rbac/check", Body: checks, Status: 200, Contains: []string{"[" + owner + "," + no + "," + no + "]"}},
	})
}
