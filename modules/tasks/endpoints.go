package tasks

import (
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// Endpoints are the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	staff, all := []string{access.Advisor}, []string{access.Advisor, access.Customer}
	rows := []endpoint.Endpoint{
		{Name: "tasks.create", Method: http.MethodPost, Path: "/v1/customers/{customer_id}/tasks", Roles: staff,
			Access: access.On(access.Tasks, access.Create), Summary: "Make a task about a customer.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusCreated, s.Create)},
		{Name: "tasks.list", Method: http.MethodGet, Path: "/v1/customers/{customer_id}/tasks", Roles: all,
			Access: access.On(access.Tasks, access.Read), Summary: "List the tasks of a customer that the caller may see.",
			Faults: []apierr.Kind{apierr.CustomerNotFound}, Doc: endpoint.Doc{Search: taskList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "tasks.mine", Method: http.MethodGet, Path: "/v1/tasks", Roles: all,
			Access: access.On(access.Tasks, access.Read), Summary: "List the tasks that the caller has made or is assigned to.",
			Doc:    endpoint.Doc{Search: taskList.Search()},
			Handle: endpoint.JSON(http.StatusOK, s.Mine)},
		{Name: "tasks.get", Method: http.MethodGet, Path: "/v1/customers/{customer_id}/tasks/{id}", Roles: all,
			Access: access.On(access.Tasks, access.Read), Summary: "Give one task.",
			Faults: []apierr.Kind{apierr.TaskNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
		{Name: "tasks.update", Method: http.MethodPut, Path: "/v1/customers/{customer_id}/tasks/{id}", Roles: all,
			Access: access.On(access.Tasks, access.Update), Summary: "Replace the given data of a task.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.TaskInvalidTransition, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Update)},
		{Name: "tasks.delete", Method: http.MethodDelete, Path: "/v1/customers/{customer_id}/tasks/{id}", Roles: all,
			Access: access.On(access.Tasks, access.Delete), Summary: "Delete a task.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.Delete)},
		{Name: "tasks.status", Method: http.MethodPatch, Path: "/v1/customers/{customer_id}/tasks/{id}/status", Roles: all,
			Access: access.On(access.Tasks, access.Update), Summary: "Move a task to its next state.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.TaskInvalidTransition, apierr.PreconditionFailed}, Handle: endpoint.JSON(http.StatusOK, s.SetStatus)},
		{Name: "tasks.assign", Method: http.MethodPost, Path: "/v1/customers/{customer_id}/tasks/{id}/assignees", Roles: all,
			Access: access.On(access.Tasks, access.Update), Summary: "Give a user a part of a task.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.TaskAssigneeExists, apierr.TaskInvalidTransition, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusCreated, s.Assign)},
		{Name: "tasks.unassign", Method: http.MethodDelete, Path: "/v1/customers/{customer_id}/tasks/{id}/assignees/{assignee_id}", Roles: all,
			Access: access.On(access.Tasks, access.Update), Summary: "Take a part of a task away from a user.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.TaskAssigneeNotFound, apierr.TaskInvalidTransition, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.Unassign)},
		{Name: "tasks.part", Method: http.MethodPatch, Path: "/v1/customers/{customer_id}/tasks/{id}/assignees/{assignee_id}", Roles: all,
			Access: access.On(access.Tasks, access.Read), Summary: "Say how far an assignee's part of a task is.",
			Faults: []apierr.Kind{apierr.TaskNotFound, apierr.TaskAssigneeNotFound, apierr.TaskInvalidTransition, apierr.PreconditionFailed},
			Handle: endpoint.JSON(http.StatusOK, s.SetPart)},
	}
	for i := range rows {
		if rows[i].Name == "tasks.create" {
			rows[i].Faults = append(rows[i].Faults, apierr.QuotaExceeded)
		}
		rows[i].Tag, rows[i].Limit = "Tasks", ratelimit.Private
	}
	return rows
}
