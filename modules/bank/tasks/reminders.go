package tasks

import (
	"context"
	"fmt"

	"kontor/modules/kit/event"
	"kontor/modules/kit/types"
	"kontor/store"
)

const (
	// reminderBatch is the number of tasks in one transaction.
	reminderBatch = 50
	// The days of reminders, seen from the day by which a task should be done.
	remindDaysBefore, remindDaysAfter = 1, 7
)

const (
	// selectToRemind returns open tasks with a day from $1 to $2 that have no reminder of the day $3 yet.
	selectToRemind = `
		SELECT id FROM tasks
		WHERE due_on >= $1 AND due_on <= $2 AND due_on IS NOT NULL AND status IN ('pending', 'in_progress') AND erased_at IS NULL
			AND (reminded_on IS NULL OR reminded_on < $3)
		ORDER BY due_on, id LIMIT $4`

	// It changes nothing if the task has ended, has another day or was reminded of meanwhile.
	markReminded = `
		UPDATE tasks SET reminded_on = $2
		WHERE id = $1 AND due_on = $3 AND status IN ('pending', 'in_progress') AND erased_at IS NULL
			AND (reminded_on IS NULL OR reminded_on < $2)`
)

// reminder is a reminder of a task, ready to be written.
type reminder struct {
	taskID, dueOn string
	event         event.Event
}

// Remind notifies the assignees of tasks that are due. It reminds of each task once a day, after the given hour in UTC, however often
// and on however many nodes it runs.
func (s *Service) Remind(ctx context.Context) error {
	now := s.db.Now().Std().UTC()
	if now.Hour() < s.reminderHour {
		return nil
	}
	today := types.DateOf(now)
	from, to := today.AddDays(-remindDaysAfter).String(), today.AddDays(remindDaysBefore).String()
	for ctx.Err() == nil {
		ids, err := store.All(ctx, s.db, store.Text, selectToRemind, from, to, today.String(), reminderBatch)
		if err != nil {
			return fmt.Errorf("read the tasks that are due: %w", err)
		}
		if len(ids) == 0 {
			return nil
		}
		reminders, err := s.reminders(ctx, ids)
		if err != nil {
			return err
		}
		if err := s.writeReminders(ctx, today, reminders); err != nil {
			return fmt.Errorf("remind of tasks: %w", err)
		}
	}
	return ctx.Err()
}

// reminders prepares the reminders of tasks, outside of a transaction.
func (s *Service) reminders(ctx context.Context, ids []string) ([]reminder, error) {
	prepared := make([]reminder, 0, len(ids))
	for _, id := range ids {
		t, err := decoded(table.GetUnchecked(ctx, s.db, id))
		if err != nil {
			return nil, fmt.Errorf("task %s: %w", id, err)
		}
		recipients, err := s.reminded(ctx, t)
		if err != nil {
			return nil, err
		}
		e := s.event(ctx, event.TaskDue, t, recipients, map[string]any{"Title": t.Title, "Date": t.DueOn.String()})
		prepared = append(prepared, reminder{taskID: id, dueOn: t.DueOn.String(), event: e})
	}
	return prepared, nil
}

// reminded returns the active users whose parts of a task are open, or the creator of a task without assignees.
func (s *Service) reminded(ctx context.Context, t Task) ([]string, error) {
	users := []string{t.CreatedBy}
	if len(t.assignees) > 0 {
		users = users[:0]
	}
	for _, a := range t.assignees {
		if a.Status == AssigneeAssigned || a.Status == AssigneeAccepted {
			users = append(users, a.UserID)
		}
	}
	active, err := s.directory.Active(ctx, s.db, users...)
	if err != nil {
		return nil, fmt.Errorf("users of task %s: %w", t.ID, err)
	}
	kept := users[:0]
	for _, id := range users {
		if active[id] {
			kept = append(kept, id)
		}
	}
	return kept, nil
}

func (s *Service) writeReminders(ctx context.Context, today types.Date, reminders []reminder) error {
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		for _, r := range reminders {
			changed, err := tx.Exec(ctx, markReminded, r.taskID, today.String(), r.dueOn)
			if err != nil {
				return err
			}
			if changed == 0 {
				continue
			}
			if err := s.notify.Notify(ctx, tx, r.event); err != nil {
				return err
			}
		}
		return nil
	})
}
