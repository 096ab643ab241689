package tasks

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	staff, all := []string{access.Advisor}, []string{access.Advisor, access.Customer}
	rows := []endpoint.Endpoint{
		{Name: "tasks.create", Method: http.MethodPost, Path: "/v1/customers/{customer_id}/tasks", Subject: access.NoSubject("assignees read a task of the caller"), Roles: staff,
			Access: access.On(access.Tasks, access.Create), Summary: "Create a task.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "tasks.list", Method: http.MethodGet, Path: "/v1/customers/{customer_id}/tasks", Roles: all,
			Access: access.On(access.Tasks, access.Read), Summary: "List the tasks of a customer.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Doc: endpoint.Doc{Search: taskList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "tasks.mine", Method: http.MethodGet, Path: "/v1/tasks", Roles: all,
			Access: access.On(access.Tasks, access.Read), Summary: "List the caller's tasks, or all that the caller may read.",
			Doc:    endpoint.Doc{Search: taskList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.Mine)},
		{Name: "tasks.get", Method: http.MethodGet, Path: "/v1/customers/{customer_id}/tasks/{id}", Roles: all,
			Access: access.On(access.Tasks, access.Read), Summary: "Get a task.",
			Faults: []apierr.Kind{apierr.TaskNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "tasks.update", Method: http.MethodPut, Path: "/v1/customers/{customer_id}/tasks/{id}", Roles: all,
			Access: access.On(access.Tasks, access.Update), Summary: "Update a task.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.TaskInvalidTransition, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "tasks.delete", Method: http.MethodDelete, Path: "/v1/customers/{customer_id}/tasks/{id}", Roles: all,
			Access: access.On(access.Tasks, access.Delete), Summary: "Delete a task.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Delete)},
		{Name: "tasks.status", Method: http.MethodPatch, Path: "/v1/customers/{customer_id}/tasks/{id}/status", Roles: all,
			Access: access.On(access.Tasks, access.Update), Summary: "Set the status of a task.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.TaskInvalidTransition, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.SetStatus)},
		{Name: "tasks.assign", Method: http.MethodPost, Path: "/v1/customers/{customer_id}/tasks/{id}/assignees", Subject: access.NoSubject("callers give what they hold: reading the task"), Roles: all,
			Access: access.On(access.Tasks, access.Update), Summary: "Assign a user to a task.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.TaskAssigneeExists, apierr.TaskInvalidTransition, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusCreated, s.Assign)},
		{Name: "tasks.unassign", Method: http.MethodDelete, Path: "/v1/customers/{customer_id}/tasks/{id}/assignees/{assignee_id}", Subject: access.NoSubject("a task is work, not a right"), Roles: all,
			Access: access.On(access.Tasks, access.Update), Summary: "Remove an assignee from a task.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.TaskAssigneeNotFound, apierr.TaskInvalidTransition, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.Unassign)},
		{Name: "tasks.part", Method: http.MethodPatch, Path: "/v1/customers/{customer_id}/tasks/{id}/assignees/{assignee_id}", Subject: access.NoSubject("assignees report their own part"), Roles: all,
			Access: access.On(access.Tasks, access.Read), Summary: "Set the status of an assignee's part.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.TaskAssigneeNotFound, apierr.TaskInvalidTransition, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.SetAssigneeStatus)},
	}
	for i := range rows {
		if rows[i].Method != http.MethodGet && rows[i].Name != "tasks.delete" {
			rows[i].Faults = append(rows[i].Faults, apierr.RecordErased)
		}
		if rows[i].Name == "tasks.create" {
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Tag, rows[i].Limit = "Tasks", ratelimit.Private
	}
	return rows
}
