package tasks

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/list"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	// Lengths in characters.
	maxTitle       = 200
	maxDescription = 5000
	maxReason      = 1000
	maxName        = 200

	maxWeight = 1_000_000
)

// OneInput identifies a task of a customer.
type OneInput struct {
	CustomerID string `path:"customer_id"`
	ID         string `path:"id"`
}

// ListInput holds the parameters of the list of a customer's tasks.
type ListInput struct {
	CustomerID string      `path:"customer_id"`
	AssigneeID string      `query:"assignee_id" doc:"Only tasks of which this user has a part."`
	Overdue    bool        `query:"overdue" doc:"Only tasks that have not ended and whose due_on is before today, in UTC."`
	Query      list.Params `query:"*"`
	Text       list.Words  `query:"q"`
}

// Validate checks the id of the assignee.
func (in *ListInput) Validate(v *apierr.Fields) {
	in.AssigneeID = checkAssignee(v, in.AssigneeID)
	in.Text.Validate(v)
}

func checkAssignee(v *apierr.Fields, id string) string {
	if id == "" {
		return ""
	}
	return validate.Parsed(v, "assignee_id", id, types.ParseID)
}

// The scopes of the list of tasks of all customers.
const (
	scopeMine = "mine" // created by the caller or assigned to them
	scopeAll  = "all"  // all that the caller may read
)

// MineInput holds the parameters of the list of the caller's tasks.
type MineInput struct {
	Scope      string      `query:"scope" enum:"mine,all" default:"mine" doc:"mine: the tasks that the caller has created or is assigned to; all: those that the caller may read."`
	AssigneeID string      `query:"assignee_id" doc:"Only tasks of which this user has a part."`
	Overdue    bool        `query:"overdue" doc:"Only tasks that have not ended and whose due_on is before today, in UTC."`
	Query      list.Params `query:"*"`
	Text       list.Words  `query:"q"`
}

// Validate checks the scope and the id of the assignee.
func (in *MineInput) Validate(v *apierr.Fields) {
	if in.Scope != "" {
		validate.OneOf(v, "scope", in.Scope, scopeMine, scopeAll)
	}
	in.AssigneeID = checkAssignee(v, in.AssigneeID)
	in.Text.Validate(v)
}

// CreateInput is the data of a new task. Title and category are required. The default of weights is 1.
type CreateInput struct {
	CustomerID  string         `path:"customer_id"`
	Title       string         `json:"title" maxLength:"200"`
	Category    string         `json:"category" enum:"sign,approve,update,delete"`
	Description string         `json:"description"`
	IsUrgent    bool           `json:"is_urgent"`
	Weight      *int64         `json:"weight" minimum:"0"`
	DueOn       string         `json:"due_on" format:"date" doc:"The day by which the task should be done."`
	Assignees   []AssigneeData `json:"assignees" maxItems:"50"`
	Metadata    jsontext.Value `json:"metadata"`

	task      Task
	assignees []newAssignee
}

// AssigneeData is the data of an assignee.
type AssigneeData struct {
	UserID string `json:"user_id" required:"true"`
	Name   string `json:"name"`
	Weight *int64 `json:"weight"`
}

// Validate checks all data. Whether the users exist is checked in the transaction.
func (in *CreateInput) Validate(v *apierr.Fields) {
	in.task = in.check(v)
	seen := map[string]bool{}
	for i, data := range in.Assignees {
		a := data.check(v, func(member string) string { return fieldOf(i, member) })
		if a.userID != "" && seen[a.userID] {
			v.Add(a.field, "tasks.assignee_twice")
		}
		seen[a.userID] = true
		in.assignees = append(in.assignees, a)
	}
}

func (in *CreateInput) check(v *apierr.Fields) Task {
	return Task{
		Title:          validate.Required(v, "title", in.Title, maxTitle),
		Category:       validate.OneOf(v, "category", in.Category, "sign", "approve", "update", "delete"),
		Description:    validate.Text(v, "description", in.Description, maxDescription),
		IsUrgent:       in.IsUrgent,
		DueOn:          validate.Parsed(v, "due_on", in.DueOn, types.ParseDate),
		givenWeight:    checkWeight(v, "weight", in.Weight),
		clientMetadata: checkMetadata(v, in.Metadata),
	}
}

func checkWeight(v *apierr.Fields, field string, weight *int64) int64 {
	if weight == nil {
		return 1
	}
	if *weight < 0 || *weight > maxWeight {
		v.Add(field, "invalid.range", apierr.Args{"Min": 0, "Max": maxWeight})
	}
	return *weight
}

// checkMetadata returns the client's metadata without logs, which the module keeps, and with the object actions.
func checkMetadata(v *apierr.Fields, raw jsontext.Value) string {
	members := map[string]jsontext.Value{}
	if err := json.Unmarshal([]byte(validate.Metadata(v, "metadata", raw)), &members); err != nil {
		v.Add("metadata", "invalid.json")
	}
	delete(members, "logs")
	switch actions := members["actions"]; {
	case len(actions) == 0 || actions.Kind() == 'n':
		members["actions"] = jsontext.Value("{}")
	case actions.Kind() != '{':
		v.Add("metadata.actions", "invalid.type")
	}
	encoded, err := json.Marshal(members, json.Deterministic(true))
	if err != nil {
		v.Add("metadata", "invalid.json")
	}
	return string(encoded)
}

func (d AssigneeData) check(v *apierr.Fields, field func(member string) string) newAssignee {
	a := newAssignee{
		field:  field("user_id"),
		name:   validate.Line(v, field("name"), d.Name, maxName),
		weight: checkWeight(v, field("weight"), d.Weight),
	}
	if d.UserID == "" {
		v.Add(a.field, "invalid.required")
	}
	a.userID = validate.Parsed(v, a.field, d.UserID, types.ParseID)
	return a
}

// UpdateInput is the data of a task to replace. Missing members stay.
type UpdateInput struct {
	CustomerID  string                            `path:"customer_id"`
	ID          string                            `path:"id"`
	Title       endpoint.Optional[string]         `json:"title"`
	Category    endpoint.Optional[string]         `json:"category" enum:"sign,approve,update,delete"`
	Description endpoint.Optional[string]         `json:"description"`
	IsUrgent    endpoint.Optional[bool]           `json:"is_urgent"`
	Weight      endpoint.Optional[*int64]         `json:"weight"`
	DueOn       endpoint.Optional[string]         `json:"due_on" format:"date"`
	Metadata    endpoint.Optional[jsontext.Value] `json:"metadata"`
}

// Validate checks the members that are given.
func (in *UpdateInput) Validate(v *apierr.Fields) {
	given := map[string]bool{
		"title": in.Title.Given, "category": in.Category.Given, "description": in.Description.Given, "weight": in.Weight.Given, "due_on": in.DueOn.Given,
		"metadata": in.Metadata.Given,
	}
	alone := CreateInput{Title: in.Title.Or(""), Category: in.Category.Or(""), Description: in.Description.Or(""), Weight: in.Weight.Or(nil),
		DueOn: in.DueOn.Or(""), Metadata: in.Metadata.Or(nil)}
	var problems apierr.Fields
	alone.check(&problems)
	validate.Given(v, &problems, given)
}

// apply changes the task and returns the names of the given members. The rules are those of a new task.
func (in UpdateInput) apply(t *Task) (changed []string, err error) {
	merged := CreateInput{
		Title:       in.Title.Or(t.Title),
		Category:    in.Category.Or(t.Category),
		Description: in.Description.Or(t.Description),
		IsUrgent:    in.IsUrgent.Or(t.IsUrgent),
		Weight:      in.Weight.Or(&t.givenWeight),
		DueOn:       in.DueOn.Or(t.DueOn.String()),
		Metadata:    in.Metadata.Or(jsontext.Value(t.clientMetadata)),
	}
	var problems apierr.Fields
	next := merged.check(&problems)
	t.Title, t.Category, t.Description, t.IsUrgent, t.DueOn = next.Title, next.Category, next.Description, next.IsUrgent, next.DueOn
	t.givenWeight, t.clientMetadata = next.givenWeight, next.clientMetadata
	for _, member := range []struct {
		name  string
		given bool
	}{{"title", in.Title.Given}, {"category", in.Category.Given}, {"description", in.Description.Given}, {"is_urgent", in.IsUrgent.Given},
		{"weight", in.Weight.Given}, {"due_on", in.DueOn.Given}, {"metadata", in.Metadata.Given}} {
		if member.given {
			changed = append(changed, member.name)
		}
	}
	return changed, problems.Err()
}

// StatusInput is the next status of a task.
type StatusInput struct {
	CustomerID string `path:"customer_id"`
	ID         string `path:"id"`
	Status     Status `json:"status" enum:"pending,in_progress,completed,canceled,declined"`
	Reason     string `json:"reason"`
}

// Validate checks that the status exists.
func (in *StatusInput) Validate(v *apierr.Fields) {
	if in.Status == "" {
		v.Add("status", "invalid.required")
	}
	validate.OneOf(v, "status", string(in.Status), string(Pending), string(InProgress), string(Completed), string(Canceled), string(Declined))
	in.Reason = validate.Text(v, "reason", in.Reason, maxReason)
}

// AssignInput is the data of a new assignee.
type AssignInput struct {
	CustomerID string `path:"customer_id"`
	ID         string `path:"id"`
	UserID     string `json:"user_id"`
	Name       string `json:"name"`
	Weight     *int64 `json:"weight"`

	assignee newAssignee
}

// Validate checks the data.
func (in *AssignInput) Validate(v *apierr.Fields) {
	in.assignee = AssigneeData{UserID: in.UserID, Name: in.Name, Weight: in.Weight}.check(v, func(member string) string { return member })
}

// AssigneeInput identifies an assignee of a task.
type AssigneeInput struct {
	CustomerID string `path:"customer_id"`
	ID         string `path:"id"`
	AssigneeID string `path:"assignee_id"`
}

// AssigneeStatusInput is the next status of an assignee's part: as a status, as task_completed, or both.
type AssigneeStatusInput struct {
	CustomerID    string          `path:"customer_id"`
	ID            string          `path:"id"`
	AssigneeID    string          `path:"assignee_id"`
	Status        *AssigneeStatus `json:"status" required:"false" enum:"assigned,accepted,completed,declined" doc:"One of the two members must be given."`
	TaskCompleted *bool           `json:"task_completed" example:"-" doc:"true is the same as the status completed."`
}

// Validate checks that one of the members is given, and that they do not contradict each other.
func (in *AssigneeStatusInput) Validate(v *apierr.Fields) {
	if in.Status == nil {
		if in.TaskCompleted == nil {
			v.Add("status", "invalid.required")
		}
		return
	}
	validate.OneOf(v, "status", string(*in.Status), string(AssigneeAssigned), string(AssigneeAccepted), string(AssigneeCompleted), string(AssigneeDeclined))
	if in.TaskCompleted != nil && *in.TaskCompleted != (*in.Status == AssigneeCompleted) {
		v.Add("task_completed", "tasks.contradiction")
	}
}

// target returns the requested status.
func (in AssigneeStatusInput) target(now AssigneeStatus) AssigneeStatus {
	switch {
	case in.Status != nil:
		return *in.Status
	case *in.TaskCompleted:
		return AssigneeCompleted
	case now == AssigneeCompleted:
		return AssigneeAccepted
	default:
		return now
	}
}

// logEntry is a change as metadata.logs shows it.
type logEntry struct {
	At         store.Time `json:"at"`
	By         string     `json:"by"`
	Action     string     `json:"action"`
	From       string     `json:"from,omitzero"`
	To         string     `json:"to,omitzero"`
	Reason     string     `json:"reason,omitzero"`
	AssigneeID string     `json:"assignee_id,omitzero"`
	UserID     string     `json:"user_id,omitzero"`
	Fields     []string   `json:"fields,omitzero"`
}

// maxLogs is how many changes a task keeps. The audit trail has all.
const maxLogs = 100

// log adds a change. sign adds its time and author.
func (t *Task) log(e logEntry) { t.logs = append(t.logs, e) }

// sign completes the entries after the first n and removes the oldest ones.
func (t *Task) sign(n int, at store.Time, by string) {
	for i := n; i < len(t.logs); i++ {
		t.logs[i].At, t.logs[i].By = at, by
	}
	t.logs = t.logs[max(0, len(t.logs)-maxLogs):]
}

// logsMember begins the last member of the metadata.
var logsMember = []byte(`,"logs":[`)

// joinMetadata sets the metadata from those of the client and the logs.
func (t *Task) joinMetadata() error {
	logs, err := json.Marshal(t.logs)
	if err != nil {
		return fmt.Errorf("logs of task %s: %w", t.ID, err)
	}
	t.Metadata = slices.Concat([]byte(strings.TrimSuffix(t.clientMetadata, "}")), logsMember, logs[1:], []byte("}"))
	return nil
}

// splitMetadata is the reverse of joinMetadata.
func (t *Task) splitMetadata() error {
	members := map[string]jsontext.Value{}
	err := json.Unmarshal(t.Metadata, &members)
	if err == nil {
		err = json.Unmarshal(members["logs"], &t.logs)
	}
	if err != nil {
		return fmt.Errorf("metadata of task %s: %w", t.ID, err)
	}
	delete(members, "logs")
	free, err := json.Marshal(members, json.Deterministic(true))
	t.clientMetadata = string(free)
	return err
}
