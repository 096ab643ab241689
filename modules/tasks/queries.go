package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kontor/modules/list"
	"kontor/modules/records"
	"kontor/modules/value"
	"kontor/server/access"
	"kontor/server/fault"
	"kontor/store"
)

// columns end with the assignees, a line for each with blanks between the values. Names have no line breaks and come
// last.
const columns = `
	id, customer_id, title, category, description, is_urgent, status, weight, metadata, logs, created_at, created_by, version,
	COALESCE((SELECT string_agg(a.id || ' ' || a.user_id || ' ' || a.status || ' ' || a.weight || ' ' || a.assigned_at || ' ' || a.name, '
')
		FROM task_assignees a WHERE a.task_id = tasks.id), '')`

// What the user $1 is to a task, as conditions of lists.
const (
	createdBy  = `created_by = $1`
	assignedTo = `id IN (SELECT task_id FROM task_assignees WHERE user_id = $1)`
)

const (
	insertTaskStatement = `
		INSERT INTO tasks (
			id, customer_id, title, title_key, category, description, is_urgent, status, weight, metadata, logs,
			created_at, created_by, updated_at, updated_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $12, $13)`

	updateTaskStatement = `
		UPDATE tasks SET
			title = $2, title_key = $3, category = $4, description = $5, is_urgent = $6, status = $7, weight = $8, metadata = $9, logs = $10,
			updated_at = $11, updated_by = $12, version = $13
		WHERE id = $1`

	deleteTaskStatement = `DELETE FROM tasks WHERE id = $1`

	deleteAssigneesStatement = `DELETE FROM task_assignees WHERE task_id = $1`

	insertAssigneeStatement = `
		INSERT INTO task_assignees (id, task_id, user_id, name, status, weight, assigned_at, assigned_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

	updatePartStatement = `UPDATE task_assignees SET status = $2 WHERE id = $1`

	deleteAssigneeStatement = `DELETE FROM task_assignees WHERE id = $1`

	selectActive = `SELECT id FROM users WHERE id = $1 AND status = 'active'`
)

var table = &records.Table[Task]{
	Type: access.Tasks, From: "tasks", Columns: columns, Scan: scanTask, Missing: fault.TaskNotFound,
	Relations: []records.Relation{
		records.Created,
		{Allows: access.Read, Tables: []string{"task_assignees"}, Listed: assignedTo,
			SQL: "EXISTS (SELECT 1 FROM task_assignees t WHERE t.task_id = tasks.id AND t.user_id = $1)"},
	},
}

var taskList = list.New(list.Source[Task]{
	From: "tasks", Columns: columns, ID: "id", Created: "created_at", Tables: []string{"tasks", "task_assignees"}, Scan: scanTask,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "title", Type: list.Text, Column: "title", Key: "title_key"},
		{Name: "category", Type: list.Text, Column: "category", Key: "category"},
		{Name: "is_urgent", Type: list.Bool, Column: "is_urgent"},
		{Name: "status", Type: list.Text, Column: "status", Key: "status"},
		{Name: "weight", Type: list.Number,
			Column: "CAST(COALESCE((SELECT sum(w.weight) FROM task_assignees w WHERE w.task_id = tasks.id), tasks.weight) AS BIGINT)"},
		{Name: "performed_weight", Type: list.Number,
			Column: "CAST(COALESCE((SELECT sum(w.weight) FROM task_assignees w WHERE w.task_id = tasks.id AND w.status = 'completed'), 0) AS BIGINT)"},
		{Name: "customer_id", Type: list.UUID, Column: "customer_id"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
		{Name: "updated_at", Type: list.Time, Column: "updated_at"},
	},
})

func scanTask(row records.Row) (Task, error) {
	var t Task
	var status, assignees string
	err := row.Scan(&t.ID, &t.CustomerID, &t.Title, &t.Category, &t.Description, &t.IsUrgent, &status, &t.given, &t.free, &t.logs,
		&t.CreatedAt, &t.CreatedBy, &t.version, &assignees)
	if err != nil {
		return t, err
	}
	t.Status = Status(status)
	if t.Assignees, err = parseAssignees(t.ID, assignees); err != nil {
		return t, err
	}
	t.derive()
	return t, nil
}

// parseAssignees reads the column and puts the assignees in the order of their ids, which is that of time.
func parseAssignees(taskID, text string) ([]Assignee, error) {
	assignees := []Assignee{}
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 6)
		if len(parts) != 6 {
			return nil, fmt.Errorf("an assignee of task %s has %d values", taskID, len(parts))
		}
		weight, weightErr := strconv.ParseInt(parts[3], 10, 64)
		at, timeErr := strconv.ParseInt(parts[4], 10, 64)
		if err := errors.Join(weightErr, timeErr); err != nil {
			return nil, fmt.Errorf("an assignee of task %s: %w", taskID, err)
		}
		assignees = append(assignees, Assignee{ID: parts[0], TaskID: taskID, UserID: parts[1], Status: Part(parts[2]),
			Weight: weight, AssignedAt: store.Time(at), Name: parts[5]})
	}
	slices.SortFunc(assignees, func(a, b Assignee) int { return strings.Compare(a.ID, b.ID) })
	return assignees, nil
}

func insertTask(ctx context.Context, tx *store.Tx, t Task) error {
	_, err := tx.Exec(ctx, insertTaskStatement, t.ID, t.CustomerID, t.Title, value.Fold(t.Title), t.Category, t.Description, t.IsUrgent,
		string(t.Status), t.given, t.free, t.logs, t.CreatedAt, t.CreatedBy)
	for i := 0; err == nil && i < len(t.Assignees); i++ {
		err = insertAssignee(ctx, tx, t.Assignees[i], t.CreatedBy)
	}
	return err
}

func updateTask(ctx context.Context, tx *store.Tx, t Task, by string) error {
	_, err := tx.Exec(ctx, updateTaskStatement, t.ID, t.Title, value.Fold(t.Title), t.Category, t.Description, t.IsUrgent,
		string(t.Status), t.given, t.free, t.logs, tx.Now(), by, t.version)
	return err
}

func deleteTask(ctx context.Context, tx *store.Tx, id string) error {
	if _, err := tx.Exec(ctx, deleteAssigneesStatement, id); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, deleteTaskStatement, id)
	return err
}

func insertAssignee(ctx context.Context, tx *store.Tx, a Assignee, by string) error {
	_, err := tx.Exec(ctx, insertAssigneeStatement, a.ID, a.TaskID, a.UserID, a.Name, string(a.Status), a.Weight, a.AssignedAt, by)
	return err
}

func updatePart(ctx context.Context, tx *store.Tx, a Assignee) error {
	_, err := tx.Exec(ctx, updatePartStatement, a.ID, string(a.Status))
	return err
}

func deleteAssignee(ctx context.Context, tx *store.Tx, id string) error {
	_, err := tx.Exec(ctx, deleteAssigneeStatement, id)
	return err
}

func isActive(ctx context.Context, q store.Querier, userID string) (bool, error) {
	err := q.QueryRow(ctx, selectActive, userID).Scan(&userID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
