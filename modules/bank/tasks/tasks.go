// Package tasks keeps tasks about customers: to sign, approve, update or delete something.
//
// A task belongs to one customer and does not change it. Its status goes from pending, optionally by way of in_progress, to an
// end: completed, canceled or declined. A task that has ended cannot be changed, but its creator may delete it. Each assignee
// has a part with a weight. The progress of the task is the sum of the weights of completed parts out of all. Assignees set
// the status of their own parts; users who may update the task may set any. When all parts are completed, so is the task.
//
// A task may have a day by which it should be done. It is overdue while it has not ended after that day, in UTC. A job of the leader
// reminds the assignees whose parts are open, or the creator of a task without assignees: once a day, from the day before until a
// week after. The module keeps the last day of a reminder beside the task; it is no part of the record.
//
// The metadata belong to the client, except for two members: actions is an object of the client's, and logs is kept here. It
// has the last hundred changes; the audit trail has all. The name of an assignee is a note by the user who assigned them. Answers
// name users in the member people.
package tasks

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/attachment"
	"kontor/modules/kit/event"
	"kontor/modules/kit/find"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Task is a task as the API shows it.
type Task struct {
	ID              string         `json:"id"`
	Title           string         `json:"title"`
	Category        string         `json:"category" enum:"sign,approve,update,delete"`
	Description     string         `json:"description"`
	IsUrgent        bool           `json:"is_urgent"`
	Status          Status         `json:"status" enum:"pending,in_progress,completed,canceled,declined"`
	Weight          int64          `json:"weight" doc:"Sum of the weights of all assignees; the given weight while there are none."`
	PerformedWeight int64          `json:"performed_weight" example:"0" doc:"Sum of the weights of completed parts."`
	CustomerID      string         `json:"customer_id"`
	DueOn           types.Date     `json:"due_on" doc:"The day by which the task should be done; null for none."`
	Assignees       Assignees      `json:"assignees" doc:"In the order of their assignment."`
	CreatedAt       store.Time     `json:"created_at"`
	CreatedBy       string         `json:"created_by"`
	Metadata        jsontext.Value `json:"metadata" doc:"logs holds the last 100 changes; all other members are the client's."`
	ErasedAt        *store.Time    `json:"erased_at,omitzero" doc:"When the personal data was erased; missing from all other tasks."`

	givenWeight int64
	// Decoded from Assignees and Metadata while the task is created or changed:
	assignees      []Assignee
	logs           []logEntry
	clientMetadata string // metadata without the logs, with at least one member

	byStaff bool
	version int64
}

// Status is the status of a task.
type Status string

// The statuses of a task.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Canceled   Status = "canceled"
	Declined   Status = "declined"
)

var transitions = map[Status][]Status{
	Pending:    {InProgress, Completed, Canceled, Declined},
	InProgress: {Completed, Canceled, Declined},
}

// ETag returns the version of the task.
func (t Task) ETag() string { return endpoint.VersionTag(t.version) }

// Erased reports whether the personal data was erased with that of its customer. The task does not change any more.
func (t Task) Erased() bool { return t.ErasedAt != nil }

// notifier notifies users of events.
type notifier interface {
	// Prerender renders the messages of an event before the transaction.
	Prerender(ctx context.Context, n event.Event) event.Event
	// Notify notifies the recipients of an event, in the transaction of the event.
	Notify(ctx context.Context, tx *store.Tx, n event.Event) error
}

// customers checks access to the customers of tasks.
type customers interface {
	// Allow returns apierr.CustomerNotFound for an unknown customer, and apierr.NoAccess unless the caller has the
	// permission on the customer.
	Allow(ctx context.Context, q store.Querier, id string, wanted access.Permission) error
	// NotErased returns apierr.RecordErased for a customer whose personal data was erased.
	NotErased(ctx context.Context, q store.Querier, id string) error
}

// directory is what tasks need to know about users.
type directory interface {
	// Active reports which of the users exist and are active.
	Active(ctx context.Context, q store.Querier, userIDs ...string) (map[string]bool, error)
}

// Service is the module. Create one with [New].
type Service struct {
	access.Records // answers permission checks from the relations of the table

	db        *store.DB
	notify    notifier
	customers customers
	directory directory
	texts     endpoint.Texts
	quota     records.Quota

	Peers        Peers // set once, before the first request
	ReminderHour int   // of the day in UTC, from which reminders are sent
}

// Peers are what tasks need of modules that are built later, because they need tasks.
type Peers struct {
	Files attachment.Remover // keeps the files of tasks
}

// New returns the module on a database.
func New(db *store.DB, notify notifier, customers customers, directory directory, texts endpoint.Texts) *Service {
	return &Service{Records: records.Of(db, table), db: db, notify: notify, customers: customers, directory: directory, texts: texts}
}

// SetQuota limits what one user may store. Without a quota nothing is counted.
func (s *Service) SetQuota(q records.Quota) { s.quota = q }

// Create creates a task about a customer that the caller may read. It returns apierr.CustomerNotFound, apierr.NoAccess and,
// for assignees who do not exist or are not active, apierr.InvalidInput.
func (s *Service) Create(ctx context.Context, in CreateInput) (Task, error) {
	t := in.task
	t.ID, t.CustomerID, t.Status, t.version = store.NewID(), in.CustomerID, Pending, 1
	t.CreatedAt, t.CreatedBy, t.byStaff = s.db.Now(), access.From(ctx).UserID, access.From(ctx).ActsForBank(access.Tasks)
	for _, a := range in.assignees {
		t.assignees = append(t.assignees, a.assigned(t.ID, t.CreatedAt))
	}
	t.log(logEntry{At: t.CreatedAt, By: t.CreatedBy, Action: "created"})
	if err := t.derive(); err != nil {
		return t, err
	}
	after, answer := table.Answer(ctx, s.db, t)
	assigned := s.assigned(ctx, t, t.assignees)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.customers.Allow(ctx, tx, in.CustomerID, access.Read); err != nil {
			return err
		}
		if err := s.customers.NotErased(ctx, tx, in.CustomerID); err != nil {
			return err
		}
		if err := s.checkActive(ctx, tx, in.assignees); err != nil {
			return err
		}
		if err := s.quota.Charge(ctx, tx, access.Tasks, t.CreatedBy, 1, t.weight()); err != nil {
			return err
		}
		if err := insertTask(ctx, tx, t); err != nil {
			return err
		}
		table.Audit(ctx, tx, "tasks.create", t.ID, nil, after)
		tx.Respond(answer)
		return s.notify.Notify(ctx, tx, assigned)
	})
	return t, err
}

// Get returns one task of a customer. It returns apierr.TaskNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Task, error) {
	return read(ctx, s.db, in, access.Read)
}

// read reads a task of a customer if the caller has the permission on it.
func read(ctx context.Context, q store.Querier, in OneInput, wanted access.Permission) (Task, error) {
	t, refused := table.Get(ctx, q, in.ID, wanted)
	found := t
	if errors.Is(refused, apierr.NoAccess) {
		// Check that the task belongs to the customer (404) before access (403).
		var err error
		if found, err = table.GetUnchecked(ctx, q, in.ID); err != nil {
			return Task{}, err
		}
	} else if refused != nil {
		return Task{}, refused
	}
	if found.CustomerID != in.CustomerID {
		return Task{}, apierr.TaskNotFound
	}
	return t, refused
}

// List returns a page of the tasks of a customer that the caller may read. Assignees may read their tasks even if they may
// not read the customer. If there are none, List returns apierr.CustomerNotFound and apierr.NoAccess for the customer.
func (s *Service) List(ctx context.Context, in ListInput) (list.Page[Task], error) {
	page, err := taskList.Page(ctx, s.db, in.Query.WithText(in.Text, source), table.Visible(access.From(ctx)), list.Where{SQL: "tasks.customer_id = $1", Args: []any{in.CustomerID}},
		assignedTo(in.AssigneeID), overdue(in.Overdue, s.db.Now()))
	if page.TotalUnfiltered == 0 {
		// A caller who may read a task may know that its customer exists. Without tasks the customer decides.
		if refused := s.customers.Allow(ctx, s.db, in.CustomerID, access.Read); refused != nil {
			return list.Page[Task]{}, refused
		}
	}
	return page, err
}

// Mine returns a page of the tasks that the caller has created or is assigned to; with the scope all, of those that the caller may
// read.
func (s *Service) Mine(ctx context.Context, in MineInput) (list.Page[Task], error) {
	caller := access.From(ctx)
	conditions := []list.Where{assignedTo(in.AssigneeID), overdue(in.Overdue, s.db.Now())}
	if in.Scope == scopeAll {
		return taskList.Page(ctx, s.db, in.Query.WithText(in.Text, source), append([]list.Where{table.Visible(caller)}, conditions...)...)
	}
	own := list.Where{SQL: "task_members.user_id = $1", Args: []any{caller.UserID}}
	if !caller.ActsForBank(access.Tasks) { // what they have created for the bank is theirs no more
		own.SQL += " AND " + fmt.Sprintf(isAssignee, "$1")
	}
	return memberList.Page(ctx, s.db, in.Query.WithText(in.Text, source), append([]list.Where{own}, conditions...)...)
}

// Update replaces the given data and keeps the rest. It returns apierr.TaskNotFound, apierr.NoAccess and, if the task has
// ended, apierr.TaskInvalidTransition.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Task, error) {
	return s.change(ctx, OneInput{in.CustomerID, in.ID}, "tasks.update", func(t *Task, _ *plan) error {
		if !t.open() {
			return t.closed()
		}
		changed, err := in.apply(t)
		if err != nil {
			return err
		}
		t.log(logEntry{Action: "updated", Fields: changed})
		return nil
	})
}

// SetStatus sets the status of a task. It returns apierr.TaskNotFound, apierr.NoAccess and apierr.TaskInvalidTransition with
// the statuses that may follow.
func (s *Service) SetStatus(ctx context.Context, in StatusInput) (Task, error) {
	return s.change(ctx, OneInput{in.CustomerID, in.ID}, "tasks.status", func(t *Task, _ *plan) error {
		return t.moveTo(in.Status, in.Reason)
	})
}

// Delete removes a task with its assignees. It returns apierr.TaskNotFound and apierr.NoAccess.
func (s *Service) Delete(ctx context.Context, in OneInput) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		t, err := read(ctx, tx, in, access.Delete)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, t.ETag()); err != nil {
			return err
		}
		if err := s.quota.Count(ctx, tx, t.CreatedBy, -1, -t.weight()); err != nil {
			return err
		}
		was, err := readRecord(ctx, tx, t.ID)
		if err != nil {
			return err
		}
		table.Audit(ctx, tx, "tasks.delete", t.ID, was, nil)
		if err := s.Peers.Files.RemoveFiles(ctx, tx, attachment.Target{Kind: attachment.Task, Parent: t.CustomerID, Record: t.ID}); err != nil {
			return err
		}
		return tx.RunEach(ctx, t.ID, deleteMembersStatement, deleteTaskStatement)
	})
	return endpoint.Confirm(ctx, s.texts, "tasks.deleted"), err
}

// weight returns what the task counts against the quota of its creator.
func (t Task) weight() int64 {
	return records.Weight(t.Title, t.Description, string(t.Assignees), string(t.Metadata))
}

// Find returns a task by its id alone. It returns apierr.TaskNotFound and apierr.NoAccess.
func (s *Service) Find(ctx context.Context, id string) (Task, error) {
	return table.Get(ctx, s.db, id, access.Read)
}

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

// source is the kind of documents that find tasks.
const source = "tasks"

// TextSources returns what finds tasks: title, description and id.
func (s *Service) TextSources() []find.Source {
	return []find.Source{{From: source, Columns: "id, title, description", Where: "erased_at IS NULL", Scan: func(row list.Row, d *store.TextDocument) error {
		var title, description string
		err := row.Scan(&d.ID, &title, &description)
		d.Record, d.Title, d.Body = d.ID, find.Words(title), append(find.Words(description), types.IDWords(d.ID)...)
		return err
	}}}
}

// FindText returns the tasks that match a text best, of those that the caller may read.
func (s *Service) FindText(ctx context.Context, text list.Words, limit int) ([]find.Hit, error) {
	found, err := taskList.Find(ctx, s.db, text.Search(source), limit, table.Visible(access.From(ctx)))
	return find.Hits(found, func(t Task) find.Hit {
		return find.Hit{Title: t.Title, Subtitle: string(t.Status), Parent: t.CustomerID}
	}), err
}
