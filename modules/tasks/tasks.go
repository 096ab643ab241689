// Package tasks keeps what is to be done about a customer: to sign, approve, update or delete something.
//
// A task belongs to one customer for good. It goes from pending to an end (completed, canceled, declined), by way of
// in_progress or not; at its end nothing of it changes any more, though whoever made it may delete it. Assignees each
// have a part with a weight: progress is the sum of the weights that are done out of all. Who has finished his part says
// so himself, or whoever may update the task says so for him; when all parts are done, so is the task.
//
// metadata belongs to the client but for two members: actions is an object of his, logs is kept here. It has the last
// hundred changes; the audit trail has all. The name of an assignee is what the one who assigned him has given: the API
// does not tell what a user signs in with.
package tasks

import (
	"context"
	"errors"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
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
	Weight          int64          `json:"weight" doc:"Of all assignees; as given while there are none."` // of all assignees; as given while there are none
	PerformedWeight int64          `json:"performed_weight" example:"0" doc:"Of those who are done."`     // of those who are done
	CustomerID      string         `json:"customer_id"`
	Assignees       Assignees      `json:"assignees"` // in the order in which they were assigned
	CreatedAt       store.Time     `json:"created_at"`
	CreatedBy       string         `json:"created_by"`
	Metadata        jsontext.Value `json:"metadata" doc:"logs tells every change; actions and all else are the caller's."`

	given int64 // the weight
	// What Assignees and Metadata show, known while the task is made or changed.
	parts []Assignee
	logs  []logEntry
	free  string // metadata without the logs, with at least one member

	version int64
}

// Status is the state of a task.
type Status string

// The states of a task.
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

// ETag is the version of the record.
func (t Task) ETag() string { return endpoint.VersionTag(t.version) }

// notifier tells people what happened, in the transaction in which it did.
type notifier interface {
	// Word prepares a notice before the transaction.
	Word(ctx context.Context, n event.Event) event.Event
	Notify(ctx context.Context, tx *store.Tx, n event.Event) error
}

// customers answers for the customers that tasks belong to.
type customers interface {
	// Allow returns apierr.CustomerNotFound for an unknown customer, and apierr.NoAccess unless the caller may do with
	// him what is wanted.
	Allow(ctx context.Context, q store.Querier, id string, wanted access.Permission) error
}

// Service is the module. Make one with [New].
type Service struct {
	db        *store.DB
	notify    notifier
	customers customers
	texts     endpoint.Texts
	quota     records.Quota
}

// New makes the module on a database.
func New(db *store.DB, notify notifier, customers customers, texts endpoint.Texts) *Service {
	return &Service{db: db, notify: notify, customers: customers, texts: texts}
}

// SetQuota bounds what one user may store. Without it nothing is counted.
func (s *Service) SetQuota(q records.Quota) { s.quota = q }

// Create makes a task about a customer that the caller may read. It returns apierr.CustomerNotFound, apierr.NoAccess and,
// for assignees who do not exist or are not active, apierr.InvalidInput.
func (s *Service) Create(ctx context.Context, in CreateInput) (Task, error) {
	t := in.task
	t.ID, t.CustomerID, t.Status, t.version = store.NewID(), in.CustomerID, Pending, 1
	t.CreatedAt, t.CreatedBy = s.db.Now(), access.From(ctx).UserID
	for _, a := range in.assignees {
		t.parts = append(t.parts, a.assigned(t.ID, t.CreatedAt))
	}
	t.log(logEntry{At: t.CreatedAt, By: t.CreatedBy, Action: "created"})
	if err := t.derive(); err != nil {
		return t, err
	}
	after, answer, told := table.Digest(s.db, t), s.db.Answer(ctx, t), s.assigned(ctx, t, t.parts)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.customers.Allow(ctx, tx, in.CustomerID, access.Read); err != nil {
			return err
		}
		if err := checkActive(ctx, tx, in.assignees); err != nil {
			return err
		}
		if err := s.quota.Charge(ctx, tx, access.Tasks, t.CreatedBy, 1, t.weight()); err != nil {
			return err
		}
		if err := insertTask(ctx, tx, t); err != nil {
			return err
		}
		table.Audit(ctx, tx, "tasks.create", t.ID, nil, after)
		tx.Respond(http.StatusCreated, answer)
		return s.notify.Notify(ctx, tx, told)
	})
	return t, err
}

// Get gives one task of a customer. It returns apierr.TaskNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Task, error) {
	return read(ctx, s.db, in, access.Read)
}

// read reads a task of a customer that the caller wants to do something with.
func read(ctx context.Context, q store.Querier, in OneInput, wanted access.Permission) (Task, error) {
	t, refused := table.Get(ctx, q, in.ID, wanted)
	found := t
	if errors.Is(refused, apierr.NoAccess) {
		// Even who may not use the task learns first whether the address is right.
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

// List gives those tasks of a customer that the caller may see: an assignee sees his, whether or not he may read the
// customer. Where there are none it returns apierr.CustomerNotFound and apierr.NoAccess for the customer.
func (s *Service) List(ctx context.Context, in ListInput) (list.Page[Task], error) {
	page, err := taskList.Page(ctx, s.db, in.Query, table.Visible(access.From(ctx)), list.Where{SQL: "tasks.customer_id = $1", Args: []any{in.CustomerID}})
	if page.TotalUnfiltered == 0 {
		// Whoever sees a task may know that its customer exists; only without tasks the customer is looked for.
		if refused := s.customers.Allow(ctx, s.db, in.CustomerID, access.Read); refused != nil {
			return list.Page[Task]{}, refused
		}
	}
	return page, err
}

// Mine gives the tasks that the caller has made or is assigned to, whoever he is.
func (s *Service) Mine(ctx context.Context, in MineInput) (list.Page[Task], error) {
	return memberList.Page(ctx, s.db, in.Query, list.Where{SQL: "task_members.user_id = $1", Args: []any{access.From(ctx).UserID}})
}

// Update replaces the data that are given and keeps the others. It returns apierr.TaskNotFound, apierr.NoAccess and, at
// the end of the task, apierr.TaskInvalidTransition.
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

// SetStatus moves a task on. It returns apierr.TaskNotFound, apierr.NoAccess and apierr.TaskInvalidTransition with the
// states that may follow.
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
		was, err := readProven(ctx, tx, t.ID)
		if err != nil {
			return err
		}
		table.Audit(ctx, tx, "tasks.delete", t.ID, was, nil)
		return deleteTask(ctx, tx, t.ID)
	})
	return endpoint.Confirm(ctx, s.texts, "tasks.deleted"), err
}

// weight is what the task takes of the quota of its creator.
func (t Task) weight() int64 {
	return records.Weight(t.Title, t.Description, string(t.Assignees), string(t.Metadata))
}

// Standings answers permission checks: the creator of a task reads, updates and deletes it, its assignees read it.
func (s *Service) Standings(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
	return table.Standings(ctx, s.db, userID, ids)
}
