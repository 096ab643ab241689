package tasks

import (
	"context"

	"kontor/modules/kit/personal"
	"kontor/server/access"
	"kontor/store"
)

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
	before, err := readRecord(ctx, tx, id)
	if err != nil {
		return err
	}
	if t.Assignees, err = encodeAssignees(t.assignees); err != nil {
		return err
	}
	if err := t.joinMetadata(); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, statement, id, string(t.Assignees), string(t.Metadata), tx.Now(), personal.Actor(ctx)); err != nil {
		return err
	}
	after, err := table.GetUnchecked(ctx, tx, id)
	if err != nil {
		return err
	}
	if err := s.quota.Count(ctx, tx, t.CreatedBy, 0, after.weight()-weight); err != nil {
		return err
	}
	return proof().Audit(ctx, tx, personal.Action, id, before)
}
