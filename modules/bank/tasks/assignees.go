package tasks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/attachment"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Assignee is a user who is assigned to a task, with the status and weight of their part.
type Assignee struct {
	ID            string         `json:"id"`
	Name          string         `json:"name" doc:"A note by the user who made the assignment; people has the name of the assignee."`
	TaskID        string         `json:"task_id"`
	UserID        string         `json:"user_id"`
	Status        AssigneeStatus `json:"status" enum:"assigned,accepted,completed,declined"`
	Weight        int64          `json:"weight"`
	TaskCompleted bool           `json:"task_completed" example:"false"`
	AssignedAt    store.Time     `json:"assigned_at"`

	version int64 // of the task
}

// Assignees are the assignees of a task as JSON, stored as the API shows them: lists of tasks need not decode them.
type Assignees jsontext.Value

// encodeAssignees returns assignees as they are stored and shown.
func encodeAssignees(assignees []Assignee) (Assignees, error) {
	text, err := json.Marshal(assignees)
	return Assignees(text), err
}

// List decodes the assignees.
func (a Assignees) List() (assignees []Assignee, err error) {
	if err = json.Unmarshal(a, &assignees); err != nil {
		err = fmt.Errorf("stored assignees: %w", err)
	}
	return assignees, err
}

// MarshalJSONTo writes them as they are stored.
func (a Assignees) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(a))
}

// MarshalJSON is MarshalJSONTo for the encoder of the standard library.
func (a Assignees) MarshalJSON() ([]byte, error) { return a, nil }

// JSONSchemaOneOf returns the type for the API document.
func (Assignees) JSONSchemaOneOf() []any { return []any{[]Assignee{}} }

// AssigneeStatus is the status of an assignee's part.
type AssigneeStatus string

// The statuses of an assignee's part.
const (
	AssigneeAssigned  AssigneeStatus = "assigned"
	AssigneeAccepted  AssigneeStatus = "accepted"
	AssigneeCompleted AssigneeStatus = "completed"
	AssigneeDeclined  AssigneeStatus = "declined"
)

// assigneeTransitions are the statuses that may follow a status. Assignees may correct themselves while the task is open.
var assigneeTransitions = map[AssigneeStatus][]AssigneeStatus{
	AssigneeAssigned:  {AssigneeAccepted, AssigneeCompleted, AssigneeDeclined},
	AssigneeAccepted:  {AssigneeCompleted, AssigneeDeclined},
	AssigneeCompleted: {AssigneeAccepted},
	AssigneeDeclined:  {AssigneeAccepted},
}

// maxAssignees is the maximum number of assignees of a task.
const maxAssignees = 50

// ETag returns the version of the task.
func (a Assignee) ETag() string { return endpoint.VersionTag(a.version) }

// Assign assigns a user to a task. It returns apierr.TaskNotFound, apierr.NoAccess, apierr.TaskAssigneeExists,
// apierr.TaskInvalidTransition if the task has ended and, if the user does not exist or is not active, apierr.InvalidInput.
func (s *Service) Assign(ctx context.Context, in AssignInput) (Assignee, error) {
	var id string
	t, err := s.change(ctx, OneInput{in.CustomerID, in.ID}, "tasks.assignees.add", func(t *Task, p *plan) error {
		switch {
		case !t.open():
			return t.closed()
		case slices.Contains(t.users(), in.assignee.userID):
			return apierr.TaskAssigneeExists
		case len(t.assignees) >= maxAssignees:
			return apierr.Invalid("user_id", "invalid.max_items", apierr.Args{"Max": maxAssignees})
		}
		a := in.assignee.assigned(t.ID, p.now)
		id = a.ID
		shown := a
		shown.version = t.version + 1
		answer := s.db.Answer(ctx, shown)
		before := *t
		p.onWrite(func(ctx context.Context, tx *store.Tx) error {
			if _, err := table.Get(ctx, tx, before.ID, access.Read); err != nil {
				return err // assignees read the task: callers give no more than they hold
			}
			if err := s.checkActive(ctx, tx, []newAssignee{in.assignee}); err != nil {
				return err
			}
			tx.Respond(answer)
			return insertMember(ctx, tx, before, a.UserID)
		})
		t.assignees = append(t.assignees, a)
		t.log(logEntry{Action: "assignee_added", AssigneeID: a.ID, UserID: a.UserID})
		p.events = append(p.events, s.assigned(ctx, *t, []Assignee{a}))
		return nil
	})
	if err != nil {
		return Assignee{}, err
	}
	return *t.assignee(id), nil
}

// assignee returns the assignee with an id, or nil.
func (t *Task) assignee(id string) *Assignee {
	for i := range t.assignees {
		if t.assignees[i].ID == id {
			return &t.assignees[i]
		}
	}
	return nil
}

// Unassign removes an assignee from a task, which may complete the task. It returns apierr.TaskNotFound, apierr.NoAccess,
// apierr.TaskAssigneeNotFound and, if the task has ended, apierr.TaskInvalidTransition.
func (s *Service) Unassign(ctx context.Context, in AssigneeInput) (endpoint.Message, error) {
	_, err := s.change(ctx, OneInput{in.CustomerID, in.ID}, "tasks.assignees.remove", func(t *Task, p *plan) error {
		a := t.assignee(in.AssigneeID)
		if a == nil {
			return apierr.TaskAssigneeNotFound
		}
		if !t.open() {
			return t.closed()
		}
		t.log(logEntry{Action: "assignee_removed", AssigneeID: a.ID, UserID: a.UserID})
		userID := a.UserID
		t.assignees = slices.DeleteFunc(t.assignees, func(a Assignee) bool { return a.ID == in.AssigneeID })
		after := *t
		p.onWrite(func(ctx context.Context, tx *store.Tx) error { return deleteMember(ctx, tx, after, userID) })
		return nil
	})
	return endpoint.Confirm(ctx, s.texts, "tasks.assignee_removed"), err
}

// SetAssigneeStatus sets the status of an assignee's part. Assignees may set their own; callers who may update the task may
// set any. When all parts are completed, so is the task. It returns apierr.TaskNotFound, apierr.TaskAssigneeNotFound,
// apierr.NoAccess for the part of another, and apierr.TaskInvalidTransition with the statuses that may follow.
func (s *Service) SetAssigneeStatus(ctx context.Context, in AssigneeStatusInput) (Assignee, error) {
	t, err := s.changeAs(ctx, in.ID, "tasks.assignees.update", func(t *Task, _ *plan) error {
		a := t.assignee(in.AssigneeID)
		if a == nil {
			return apierr.TaskAssigneeNotFound
		}
		next := in.target(a.Status)
		switch {
		case next == a.Status:
			return errUnchanged
		case !t.open():
			return t.closed()
		case !slices.Contains(assigneeTransitions[a.Status], next):
			return apierr.TaskInvalidTransition.Detail("allowed", assigneeTransitions[a.Status])
		}
		t.log(logEntry{Action: "assignee_changed", AssigneeID: a.ID, UserID: a.UserID, From: string(a.Status), To: string(next)})
		a.Status = next
		return nil
	}, func(ctx context.Context, q store.Querier) (Task, error) { return s.readForAssigneeStatus(ctx, q, in) })
	if err != nil {
		return Assignee{}, err
	}
	return *t.assignee(in.AssigneeID), nil
}

// readForAssigneeStatus reads a task for a change of an assignee's status. Assignees need the right to read the task for a
// change of their own status; others need the right to update it.
func (s *Service) readForAssigneeStatus(ctx context.Context, q store.Querier, in AssigneeStatusInput) (Task, error) {
	one := OneInput{in.CustomerID, in.ID}
	t, err := read(ctx, q, one, access.Read)
	if err != nil {
		return t, err
	}
	assignees, err := t.Assignees.List()
	if err != nil {
		return t, err
	}
	for _, a := range assignees {
		if a.ID == in.AssigneeID && a.UserID == access.From(ctx).UserID {
			return t, nil
		}
	}
	return read(ctx, q, one, access.Update)
}

// newAssignee is an assignee in a request.
type newAssignee struct {
	userID string
	name   string
	weight int64
	field  string // of the request that holds the user id
}

func (n newAssignee) assigned(taskID string, at store.Time) Assignee {
	return Assignee{ID: store.NewID(), Name: n.name, TaskID: taskID, UserID: n.userID, Status: AssigneeAssigned, Weight: n.weight, AssignedAt: at}
}

// checkActive rejects users who do not exist or are not active, all at once.
func (s *Service) checkActive(ctx context.Context, tx *store.Tx, assignees []newAssignee) error {
	ids := make([]string, len(assignees))
	for i, a := range assignees {
		ids[i] = a.userID
	}
	active, err := s.directory.Active(ctx, tx, ids...)
	if err != nil {
		return err
	}
	var problems apierr.Fields
	for _, a := range assignees {
		if !active[a.userID] {
			problems.Add(a.field, "invalid.unknown_record")
		}
	}
	return problems.Err()
}

// fieldOf returns the path of a member of an assignee in a request.
func fieldOf(i int, member string) string { return "assignees." + strconv.Itoa(i) + "." + member }

// EachUser calls add with the creator of the task, its assignees, and the users whom its log names. Lists of tasks are long
// and the data are stored as they are shown, so it searches the JSON instead of decoding it.
func (t Task) EachUser(add func(id string)) {
	add(t.CreatedBy)
	eachText(t.Assignees, userMember, add)
	logs := t.storedLogs()
	eachText(logs, authorMember, add)
	eachText(logs, userMember, add)
}

// EachUser calls add with the assigned user.
func (a Assignee) EachUser(add func(id string)) { add(a.UserID) }

// How the members that name users begin. They cannot occur within a text: its quotation marks are escaped.
var (
	userMember   = []byte(`"user_id":"`)
	authorMember = []byte(`"by":"`)
)

// storedLogs returns the JSON of the logs. They are the last member of the metadata; all other members belong to clients
// and must not name anybody.
func (t Task) storedLogs() []byte {
	at := bytes.LastIndex(t.Metadata, logsMember)
	if at < 0 {
		return nil
	}
	return t.Metadata[at:]
}

// eachText calls f with the value of each member of JSON that begins with prefix. The values are ids, which need no
// decoding.
func eachText(text, prefix []byte, f func(value string)) {
	for {
		_, rest, found := bytes.Cut(text, prefix)
		if !found {
			return
		}
		value, after, _ := bytes.Cut(rest, []byte{'"'})
		f(string(value))
		text = after
	}
}

const selectMember = `SELECT 1 FROM task_members WHERE task_id = $1 AND user_id = $2`

// AllowFile decides about the files of tasks: callers who may read the task may read them. While the task is open, its creator, its
// assignees and callers who may update it may add files. Uploaders and callers who may update the task may delete them.
func (s *Service) AllowFile(ctx context.Context, q store.Querier, target attachment.Target, wanted access.Permission, file *attachment.File) error {
	t, err := read(ctx, q, OneInput{target.Parent, target.Record}, access.Read)
	if err != nil || wanted == access.Read {
		return err
	}
	if t.Erased() {
		return apierr.RecordErased
	}
	if err := s.customers.NotErased(ctx, q, t.CustomerID); err != nil {
		return err
	}
	if !t.open() {
		return t.closed()
	}
	caller := access.From(ctx).UserID
	if file != nil && file.UploadedBy == caller {
		return nil
	}
	_, refused := table.Get(ctx, q, t.ID, access.Update)
	if wanted == access.Delete || !errors.Is(refused, apierr.NoAccess) {
		return refused
	}
	member, err := store.Exists(ctx, q, selectMember, t.ID, caller)
	if err == nil && !member {
		err = apierr.NoAccess
	}
	return err
}
