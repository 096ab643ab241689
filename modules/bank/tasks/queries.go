package tasks

import (
	"context"
	"fmt"
	"slices"

	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const columns = `
	tasks.id, tasks.customer_id, tasks.title, tasks.category, tasks.description, tasks.is_urgent, tasks.status, tasks.due_on,
	tasks.given_weight, tasks.weight, tasks.performed_weight, tasks.assignees, tasks.metadata, tasks.created_at, tasks.created_by, tasks.by_staff,
	tasks.version, tasks.erased_at`

const (
	insertTaskStatement = `
		INSERT INTO tasks (
			id, customer_id, title, title_key, category, description, is_urgent, status, given_weight, weight, performed_weight,
			assignees, metadata, created_at, created_by, updated_at, updated_by, due_on, by_staff)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $14, $15, $16, $17)`

	updateTaskStatement = `
		UPDATE tasks SET
			title = $2, title_key = $3, category = $4, description = $5, is_urgent = $6, status = $7, given_weight = $8, weight = $9,
			performed_weight = $10, assignees = $11, metadata = $12, updated_at = $13, updated_by = $14, version = $15, due_on = $16
		WHERE id = $1`

	deleteTaskStatement = `DELETE FROM tasks WHERE id = $1`

	deleteMembersStatement = `DELETE FROM task_members WHERE task_id = $1`

	insertMemberStatement = `
		INSERT INTO task_members (task_id, user_id, created_at) VALUES ($1, $2, $3)
		ON CONFLICT (task_id, user_id) DO NOTHING`

	deleteMemberStatement = `DELETE FROM task_members WHERE task_id = $1 AND user_id = $2`
)

// isAssignee is the condition that a member of a task is more than its creator, who has a relation of their own.
const isAssignee = `(tasks.created_by <> %[1]s OR tasks.by_staff = FALSE OR tasks.assignees LIKE '%%"user_id":"' || %[1]s || '"%%')`

var table = &records.Table[Task]{
	Type: access.Tasks, From: "tasks", Columns: columns, Scan: scanTask, Missing: apierr.TaskNotFound, Record: audited,
	Relations: []records.Relation{
		records.Creator(access.Tasks, "tasks"),
		{
			Name: access.RelationAssignee, Allows: access.Read, Tables: []string{"task_members.task_id"},
			SQL:   "EXISTS (SELECT 1 FROM task_members t WHERE t.task_id = tasks.id AND t.user_id = $1) AND " + fmt.Sprintf(isAssignee, "$1"),
			Users: "SELECT m.user_id FROM task_members m JOIN tasks ON tasks.id = m.task_id WHERE m.task_id = $1 AND " + fmt.Sprintf(isAssignee, "m.user_id"),
		},
	},
}

// taskList lists tasks of a customer.
var taskList = list.New(list.Source[Task]{
	From: "tasks", Columns: columns, ID: "tasks.id", Created: "tasks.created_at", Tables: []string{"tasks"}, Scan: scanTask, Fields: fields,
})

// memberList lists tasks by member: creator or assignee. Each member has a task.
var memberList = list.New(list.Source[Task]{
	From:    "task_members LEFT JOIN tasks ON tasks.id = task_members.task_id",
	Columns: columns, ID: "task_members.task_id", Created: "task_members.created_at", Tables: []string{"task_members", "tasks.id"}, Scan: scanTask, Fields: fields,
})

var fields = list.Fields{
	{Name: "id", Type: list.UUID, Column: "tasks.id"},
	{Name: "title", Type: list.Text, Column: "tasks.title", Key: "tasks.title_key"},
	{Name: "category", Type: list.Text, Column: "tasks.category", Key: "tasks.category"},
	{Name: "is_urgent", Type: list.Bool, Column: "tasks.is_urgent"},
	{Name: "status", Type: list.Text, Column: "tasks.status", Key: "tasks.status", Index: list.ThenCreated},
	{Name: "weight", Type: list.Number, Column: "tasks.weight"},
	{Name: "performed_weight", Type: list.Number, Column: "tasks.performed_weight"},
	{Name: "customer_id", Type: list.UUID, Column: "tasks.customer_id"},
	{Name: "due_on", Type: list.Date, Column: "tasks.due_on", Null: true},
	// A sort by due has the tasks without a day last.
	{Name: "due", Type: list.Date, Column: "COALESCE(tasks.due_on, '9999-12-31')"},
	{Name: "created_at", Type: list.Time, Column: "tasks.created_at"},
	{Name: "created_by", Type: list.UUID, Column: "tasks.created_by", Index: list.ThenCreated},
	{Name: "updated_at", Type: list.Time, Column: "tasks.updated_at"},
}

// assignedTo returns the condition that the user has a part of the task. Creators are members, too: the JSON decides.
func assignedTo(userID string) list.Where {
	if userID == "" {
		return list.Where{}
	}
	return list.Where{
		SQL:    "tasks.id IN (SELECT m.task_id FROM task_members m WHERE m.user_id = $1) AND tasks.assignees LIKE $2",
		Args:   []any{userID, `%"user_id":"` + userID + `"%`},
		Tables: []string{"task_members.task_id"},
	}
}

// overdue returns the condition that the task has not ended after the day by which it should have.
func overdue(wanted bool, now store.Time) list.Where {
	if !wanted {
		return list.Where{}
	}
	return list.Where{SQL: "tasks.due_on < $1 AND tasks.status IN ('pending', 'in_progress')", Args: []any{types.DateOf(now.Std()).String()}}
}

func scanTask(row records.Row) (Task, error) {
	var t Task
	err := row.Scan(&t.ID, &t.CustomerID, &t.Title, &t.Category, &t.Description, &t.IsUrgent, (*string)(&t.Status), &t.DueOn,
		&t.givenWeight, &t.Weight, &t.PerformedWeight, (*[]byte)(&t.Assignees), (*[]byte)(&t.Metadata), &t.CreatedAt, &t.CreatedBy, &t.byStaff, &t.version,
		&t.ErasedAt)
	return t, err
}

func insertTask(ctx context.Context, tx *store.Tx, t Task) error {
	_, err := tx.Exec(ctx, insertTaskStatement, t.ID, t.CustomerID, t.Title, types.Fold(t.Title), t.Category, t.Description, t.IsUrgent,
		string(t.Status), t.givenWeight, t.Weight, t.PerformedWeight, string(t.Assignees), string(t.Metadata), t.CreatedAt, t.CreatedBy, t.DueOn, t.byStaff)
	for _, userID := range append([]string{t.CreatedBy}, t.users()...) {
		if err == nil {
			err = insertMember(ctx, tx, t, userID)
		}
	}
	return err
}

func updateTask(ctx context.Context, tx *store.Tx, t Task, by string) error {
	_, err := tx.Exec(ctx, updateTaskStatement, t.ID, t.Title, types.Fold(t.Title), t.Category, t.Description, t.IsUrgent,
		string(t.Status), t.givenWeight, t.Weight, t.PerformedWeight, string(t.Assignees), string(t.Metadata), tx.Now(), by, t.version, t.DueOn)
	return err
}

func insertMember(ctx context.Context, tx *store.Tx, t Task, userID string) error {
	_, err := tx.Exec(ctx, insertMemberStatement, t.ID, userID, t.CreatedAt)
	return err
}

// deleteMember removes an assignee from the members of a task. The creator stays a member.
func deleteMember(ctx context.Context, tx *store.Tx, t Task, userID string) error {
	if userID == t.CreatedBy {
		return nil
	}
	_, err := tx.Exec(ctx, deleteMemberStatement, t.ID, userID)
	return err
}

// Proofs returns how the audit trail digests the records of this module. The time and user of the last update are not covered:
// the audit entry of the update has them.
func Proofs() []records.Proof { return []records.Proof{proof()} }

func proof() records.Proof {
	p := table.Proof()
	p.Form = 1 // with by_staff
	p.Read, p.Changes = readRecord, &store.ChangeRule{Omit: []string{"metadata.logs", "erased_at"}, Forget: true}
	return p
}

// storedTask holds the columns of a task that the API does not show.
type storedTask struct {
	Version     int64    `json:"version"`
	GivenWeight int64    `json:"given_weight"`
	TitleKey    string   `json:"title_key"`
	Members     []string `json:"members"` // its creator and its assignees
	ByStaff     bool     `json:"by_staff"`
}

// audited returns a decoded task as the audit trail digests it.
func audited(t Task) store.Record {
	members := append(t.users(), t.CreatedBy)
	slices.Sort(members)
	return store.Record{Answer: t, Stored: storedTask{t.version, t.givenWeight, types.Fold(t.Title), slices.Compact(members), t.byStaff}}
}

const (
	selectTitleKey = `SELECT title_key FROM tasks WHERE id = $1`
	selectMembers  = `SELECT user_id FROM task_members WHERE task_id = $1 ORDER BY user_id`
)

// readRecord reads a task with its members and derived column as they are stored.
func readRecord(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	t, err := scanTask(q.QueryRow(ctx, `SELECT `+columns+` FROM tasks WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	s := storedTask{Version: t.version, GivenWeight: t.givenWeight, ByStaff: t.byStaff}
	if err := q.QueryRow(ctx, selectTitleKey, id).Scan(&s.TitleKey); err != nil {
		return store.Record{}, err
	}
	s.Members, err = store.All(ctx, q, store.Text, selectMembers, id)
	return store.Record{Answer: t, Stored: s}, err
}

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "tasks", Holds: "titles, descriptions, reasons and metadata of tasks about a customer, and notes with the name of an assignee", Sections: []string{"tasks"}},
		{Name: "task_members", Why: "It holds ids of users and tasks only."},
	}
}

const (
	selectUnerased = `
		SELECT id FROM tasks
		WHERE customer_id = $1 AND id > $2 AND erased_at IS NULL ORDER BY id LIMIT $3`

	selectMemberships = `
		SELECT task_id FROM task_members
		WHERE user_id = $1 AND task_id > $2 ORDER BY task_id LIMIT $3`

	eraseStatement = `
		UPDATE tasks SET
			title = '', title_key = '', description = '', assignees = $2, metadata = $3, updated_at = $4, updated_by = $5,
			version = version + 1, erased_at = $4
		WHERE id = $1`

	rewriteStatement = `
		UPDATE tasks SET assignees = $2, metadata = $3, updated_at = $4, updated_by = $5, version = version + 1
		WHERE id = $1`

	// emptyMetadata are metadata of the client without content.
	emptyMetadata = `{"actions":{}}`
)

// PersonalSections declares the tasks about a customer, and those that a user has created or is assigned to.
func (s *Service) PersonalSections() []personal.Section {
	const one = "GET /v1/customers/{customer_id}/tasks/{id}"
	return []personal.Section{
		personal.Records(personal.About{Name: "tasks", Kind: personal.Customer, Endpoint: one},
			personal.Of[Task]{Table: table, All: access.Read, Condition: "tasks.customer_id = $2"}),
		personal.Records(personal.About{Name: "tasks", Kind: personal.User, Endpoint: one},
			personal.Of[Task]{Table: table, All: access.Read, Condition: "tasks.id IN (SELECT task_id FROM task_members WHERE user_id = $2)"}),
	}
}

// ErasePerson erases the tasks about a customer. Of a user it erases the notes with their name and the reasons that they wrote:
// the tasks themselves are about customers.
func (s *Service) ErasePerson(ctx context.Context, tx *store.Tx, subject personal.Subject, cursor string) (string, error) {
	switch subject.Kind {
	case personal.Customer:
		return personal.Run(ctx, tx, cursor, personal.EachID(selectUnerased, subject.ID, s.eraseTask))
	case personal.User:
		return personal.Run(ctx, tx, cursor, personal.EachID(selectMemberships, subject.ID, func(ctx context.Context, tx *store.Tx, id string) error {
			return s.eraseMember(ctx, tx, id, subject.ID)
		}))
	}
	return "", nil
}

func (s *Service) eraseTask(ctx context.Context, tx *store.Tx, id string) error {
	return s.rewrite(ctx, tx, id, eraseStatement, func(t *Task) bool {
		t.clientMetadata = emptyMetadata
		for i := range t.logs {
			t.logs[i].Reason = ""
		}
		for i := range t.assignees {
			t.assignees[i].Name = ""
		}
		return true
	})
}

func (s *Service) eraseMember(ctx context.Context, tx *store.Tx, id, userID string) error {
	return s.rewrite(ctx, tx, id, rewriteStatement, func(t *Task) (changed bool) {
		for i := range t.assignees {
			if a := &t.assignees[i]; a.UserID == userID && a.Name != "" {
				a.Name, changed = "", true
			}
		}
		for i := range t.logs {
			if l := &t.logs[i]; l.By == userID && l.Reason != "" {
				l.Reason, changed = "", true
			}
		}
		return changed
	})
}

// rewrite changes the assignees and the metadata of a task, unless change returns false.
func (s *Service) rewrite(ctx context.Context, tx *store.Tx, id, statement string, change func(t *Task) bool) error {
	t, err := decoded(table.GetUnchecked(ctx, tx, id))
	if err != nil {
		return err
	}
	weight := t.weight()
	if !change(&t) {
		return nil
	}
	if t.Assignees, err = encodeAssignees(t.assignees); err != nil {
		return err
	}
	if err := t.joinMetadata(); err != nil {
		return err
	}
	return proof().Change(ctx, tx, personal.Action, id, func() error {
		if _, err := tx.Exec(ctx, statement, id, string(t.Assignees), string(t.Metadata), tx.Now(), personal.Actor(ctx)); err != nil {
			return err
		}
		after, err := table.GetUnchecked(ctx, tx, id)
		if err != nil {
			return err
		}
		return s.quota.Count(ctx, tx, t.CreatedBy, 0, after.weight()-weight)
	})
}
