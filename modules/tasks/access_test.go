package tasks_test

import (
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/servertest"
	"kontor/store"
)

func TestLists_ShowMineAndThoseOfACustomer(t *testing.T) {
	s := servertest.Start(t)
	advisor, colleague, customer := s.User(access.Advisor), s.User(access.Advisor), s.User(access.Customer)
	own, other := newCustomer(customer), newCustomer(advisor)
	made, _ := newTask(t, advisor, own, contract(customer))
	urgent := contract(colleague)
	urgent["is_urgent"], urgent["title"] = true, "Ärger"
	newTask(t, advisor, other, urgent)
	newTask(t, colleague, other, contract())
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "what I made", As: advisor, Method: "GET", Path: "/v1/tasks", Status: 200, Contains: []string{`"total":2,"total_unfiltered":2`}},
		{Name: "what I made or am assigned to", As: colleague, Method: "GET", Path: "/v1/tasks", Status: 200, Contains: []string{`"total":2,`}},
		{Name: "what I am assigned to", As: customer, Method: "GET", Path: "/v1/tasks", Status: 200, Contains: []string{`"total":1,`, made.ID}},
		{Name: "nothing for who reads all", As: s.Admin(), Method: "GET", Path: "/v1/tasks", Status: 200, Contains: []string{`"total":0,`}},
		{Name: "all of a customer for staff", As: s.Admin(), Method: "GET", Path: "/v1/customers/" + other + "/tasks", Status: 200, Contains: []string{`"total":2,`}},
		{Name: "what he may see for the customer", As: customer, Method: "GET", Path: "/v1/customers/" + own + "/tasks", Status: 200, Contains: []string{`"total":1,`}},
		{Name: "nothing of another customer", As: customer, Method: "GET", Path: "/v1/customers/" + other + "/tasks", Status: 403},
		{Name: "no customer", As: advisor, Method: "GET", Path: "/v1/customers/" + store.NewID() + "/tasks", Status: 404, Contains: []string{`"customers.customer_not_found"`}},
		{Name: "filtered without regard to case", As: advisor, Method: "GET", Path: "/v1/tasks?search.title=%C3%A4rger&search.is_urgent=true", Status: 200, Contains: []string{`"total":1,"total_unfiltered":2`}},
		{Name: "sorted by what is derived", As: advisor, Method: "GET", Path: "/v1/tasks?sort=-weight&search.weight=2..&search.performed_weight=0", Status: 200, Contains: []string{`"total":2,`}},
		{Name: "in groups", As: advisor, Method: "GET", Path: "/v1/tasks?stack=status", Status: 200, Contains: []string{`"group_totals":{"pending":2}`}},
		{Name: "an unknown filter", As: advisor, Method: "GET", Path: "/v1/tasks?search.logs=1", Status: 500, Contains: []string{`"query_m.invalid_search_field"`}},
	})
}

func TestList_ShowsAnAssigneeHisTasksOfAnyCustomer(t *testing.T) {
	s := servertest.Start(t)
	advisor, assigned, stranger := s.User(access.Advisor), s.User(access.Customer), s.User(access.Customer)
	customer := newCustomer(advisor)
	his, _ := newTask(t, advisor, customer, contract(assigned))
	other, _ := newTask(t, advisor, customer, contract())
	tasks := "/v1/customers/" + customer + "/tasks"
	servertest.Run(t, s, []servertest.Scenario{
		{Name: "his own", As: assigned, Method: "GET", Path: tasks, Status: 200, Contains: []string{`"total":1,"total_unfiltered":1`, his.ID}, Excludes: []string{other.ID}},
		{Name: "also when none matches", As: assigned, Method: "GET", Path: tasks + "?search.status=completed", Status: 200, Contains: []string{`"total":0,"total_unfiltered":1`}},
		{Name: "not the customer", As: assigned, Method: "GET", Path: "/v1/customers/" + customer, Status: 403},
		{Name: "nothing for a stranger", As: stranger, Method: "GET", Path: tasks, Status: 403},
		{Name: "nor by a wrong filter", As: stranger, Method: "GET", Path: tasks + "?search.logs=1", Status: 403},
	})
}

func TestRecords_AreForCreatorAssigneesAndStaff(t *testing.T) {
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
		"nobody":        {s.Anonymous(), 401, 401, 401, 401, 401, 401, 401, 401, 401},
	} {
		t.Run(name, func(t *testing.T) {
			third := s.User(access.Customer)
			made, path := newTask(t, creator, customer, contract(assigned, third))
			servertest.Run(t, s, []servertest.Scenario{
				{Name: "creates", As: c.as, Method: "POST", Path: "/v1/customers/" + customer + "/tasks", Body: contract(), Status: c.create},
				{Name: "reads", As: c.as, Method: "GET", Path: path, Status: c.get},
				{Name: "changes", As: c.as, Method: "PUT", Path: path, Body: body{"title": "Neu"}, Status: c.put},
				{Name: "moves", As: c.as, Method: "PATCH", Path: path + "/status", Body: body{"status": "in_progress"}, Status: c.status},
				{Name: "assigns", As: c.as, Method: "POST", Path: path + "/assignees", Body: body{"user_id": other.UserID}, Status: c.assign},
				{Name: "accepts the assignee's part", As: c.as, Method: "PATCH", Path: path + "/assignees/" + made.Assignees[0].ID, Body: body{"status": "accepted"}, Status: c.ownPart},
				{Name: "accepts another's part", As: c.as, Method: "PATCH", Path: path + "/assignees/" + made.Assignees[1].ID, Body: body{"status": "accepted"}, Status: c.part},
				{Name: "takes a part away", As: c.as, Method: "DELETE", Path: path + "/assignees/" + made.Assignees[1].ID, Status: c.unassign},
				{Name: "deletes", As: c.as, Method: "DELETE", Path: path, Status: c.remove},
			})
			if answer := c.as.Do("GET", path, nil); c.get == 403 && (answer.Status != 403 || strings.Contains(answer.Body, "Vertrag")) {
				t.Errorf("the refusal shows the task: %s", answer.Body)
			} else if c.remove == 200 && answer.Status != 404 {
				t.Errorf("the deleted task is still there: %d %s", answer.Status, answer.Body)
			}
		})
	}
}

func TestRecords_BelongToTheirCustomer(t *testing.T) {
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
		{Name: "no task without a customer", As: advisor, Method: "POST", Path: "/v1/customers/" + store.NewID() + "/tasks", Body: contract(), Status: 404,
			Contains: []string{`"customers.customer_not_found"`}},
		{Name: "an id must be one", As: advisor, Method: "GET", Path: "/v1/customers/1/tasks/2", Status: 400, Contains: []string{`"customer_id"`, `"id"`}},
	})
}

func TestStandings_AgreeWithWhatHappens(t *testing.T) {
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
