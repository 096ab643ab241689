package tasks

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Assignee is the part of one user in a task.
type Assignee struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	TaskID        string     `json:"task_id"`
	UserID        string     `json:"user_id"`
	Status        Part       `json:"status" enum:"assigned,accepted,completed,declined"`
	Weight        int64      `json:"weight"`
	TaskCompleted bool       `json:"task_completed" example:"false"`
	AssignedAt    store.Time `json:"assigned_at"`

	version int64 // of the task
}

// Assignees are the assignees of a task as JSON, in the form in which they are stored and shown: who reads tasks need not
// take it apart and put it together again.
type Assignees jsontext.Value

// shown puts assignees into the form in which they are stored and shown.
func shown(parts []Assignee) (Assignees, error) {
	text, err := json.Marshal(parts)
	return Assignees(text), err
}

// Parts takes them apart.
func (a Assignees) Parts() (parts []Assignee, err error) {
	if err = json.Unmarshal(a, &parts); err != nil {
		err = fmt.Errorf("stored assignees: %w", err)
	}
	return parts, err
}

// MarshalJSONTo writes them as they are.
func (a Assignees) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(a))
}

// MarshalJSON is MarshalJSONTo for the encoder of the standard library.
func (a Assignees) MarshalJSON() ([]byte, error) { return a, nil }

// JSONSchemaOneOf gives the shape to the API's documentation.
func (Assignees) JSONSchemaOneOf() []any { return []any{[]Assignee{}} }

// Part is the state of an assignee's part.
type Part string

// The states of an assignee's part.
const (
	PartAssigned  Part = "assigned"
	PartAccepted  Part = "accepted"
	PartCompleted Part = "completed"
	PartDeclined  Part = "declined"
)

// partTransitions let an assignee take back what he said as long as the task is open.
var partTransitions = map[Part][]Part{
	PartAssigned:  {PartAccepted, PartCompleted, PartDeclined},
	PartAccepted:  {PartCompleted, PartDeclined},
	PartCompleted: {PartAccepted},
	PartDeclined:  {PartAccepted},
}

// maxAssignees is how many users can be assigned to a task.
const maxAssignees = 50

// ETag is the version of the task that the part belongs to.
func (a Assignee) ETag() string { return endpoint.VersionTag(a.version) }

// Assign gives a user a part of a task. It returns apierr.TaskNotFound, apierr.NoAccess, apierr.TaskAssigneeExists,
// apierr.TaskInvalidTransition at the end of the task and, for a user who does not exist or is not active,
// apierr.InvalidInput.
func (s *Service) Assign(ctx context.Context, in AssignInput) (Assignee, error) {
	var id string
	t, err := s.change(ctx, OneInput{in.CustomerID, in.ID}, "tasks.assignees.add", func(t *Task, p *plan) error {
		switch {
		case !t.open():
			return t.closed()
		case slices.Contains(t.users(), in.assignee.userID):
			return apierr.TaskAssigneeExists
		case len(t.parts) >= maxAssignees:
			return apierr.Invalid("user_id", "invalid.max_items", apierr.Args{"Max": maxAssignees})
		}
		a := in.assignee.assigned(t.ID, p.now)
		id = a.ID
		shown := a
		shown.version = t.version + 1
		answer := s.db.Answer(ctx, shown)
		before := *t
		p.later(func(ctx context.Context, tx *store.Tx) error {
			if err := checkActive(ctx, tx, []newAssignee{in.assignee}); err != nil {
				return err
			}
			tx.Respond(http.StatusCreated, answer)
			return insertMember(ctx, tx, before, a.UserID)
		})
		t.parts = append(t.parts, a)
		t.log(logEntry{Action: "assignee_added", AssigneeID: a.ID, UserID: a.UserID})
		p.tell = append(p.tell, s.assigned(ctx, *t, []Assignee{a}))
		return nil
	})
	if err != nil {
		return Assignee{}, err
	}
	return *t.assignee(id), nil
}

// assignee finds an assignee by his id, or nil.
func (t *Task) assignee(id string) *Assignee {
	for i := range t.parts {
		if t.parts[i].ID == id {
			return &t.parts[i]
		}
	}
	return nil
}

// Unassign takes a part away. That may complete the task. It returns apierr.TaskNotFound, apierr.NoAccess,
// apierr.TaskAssigneeNotFound and, at the end of the task, apierr.TaskInvalidTransition.
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
		t.parts = slices.DeleteFunc(t.parts, func(a Assignee) bool { return a.ID == in.AssigneeID })
		after := *t
		p.later(func(ctx context.Context, tx *store.Tx) error { return deleteMember(ctx, tx, after, userID) })
		return nil
	})
	return endpoint.Confirm(ctx, s.texts, "tasks.assignee_removed"), err
}

// SetPart says how far a part is: the assignee his own, whoever may update the task any. When all parts are completed,
// so is the task. It returns apierr.TaskNotFound, apierr.TaskAssigneeNotFound, apierr.NoAccess for the part of another, and
// apierr.TaskInvalidTransition with the states that may follow.
func (s *Service) SetPart(ctx context.Context, in PartInput) (Assignee, error) {
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
		case !slices.Contains(partTransitions[a.Status], next):
			return apierr.TaskInvalidTransition.Detail("allowed", partTransitions[a.Status])
		}
		t.log(logEntry{Action: "assignee_changed", AssigneeID: a.ID, UserID: a.UserID, From: string(a.Status), To: string(next)})
		a.Status = next
		return nil
	}, func(ctx context.Context, q store.Querier) (Task, error) { return s.readPart(ctx, q, in) })
	if err != nil {
		return Assignee{}, err
	}
	return *t.assignee(in.AssigneeID), nil
}

// readPart reads a task for a change of a part. Who can read the task changes his own part; for that of another it takes
// the right to update the task.
func (s *Service) readPart(ctx context.Context, q store.Querier, in PartInput) (Task, error) {
	one := OneInput{in.CustomerID, in.ID}
	t, err := read(ctx, q, one, access.Read)
	if err != nil {
		return t, err
	}
	parts, err := t.Assignees.Parts()
	if err != nil {
		return t, err
	}
	for _, a := range parts {
		if a.ID == in.AssigneeID && a.UserID == access.From(ctx).UserID {
			return t, nil
		}
	}
	return read(ctx, q, one, access.Update)
}

// newAssignee is an assignee that is asked for.
type newAssignee struct {
	userID string
	name   string
	weight int64
	field  string // where the user stands in the request
}

func (n newAssignee) assigned(taskID string, at store.Time) Assignee {
	return Assignee{ID: store.NewID(), Name: n.name, TaskID: taskID, UserID: n.userID, Status: PartAssigned, Weight: n.weight, AssignedAt: at}
}

// checkActive refuses users who do not exist or are not active, all at once.
func checkActive(ctx context.Context, tx *store.Tx, assignees []newAssignee) error {
	var problems apierr.Fields
	for _, a := range assignees {
		active, err := isActive(ctx, tx, a.userID)
		if err != nil {
			return err
		}
		if !active {
			problems.Add(a.field, "invalid.unknown_record")
		}
	}
	return problems.Err()
}

// fieldOf names the member of an assignee in a list of them.
func fieldOf(i int, member string) string { return "assignees." + strconv.Itoa(i) + "." + member }
