package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// errUnchanged ends a change that leaves the task as it is.
var errUnchanged = errors.New("nothing changes")

// plan holds what a change writes beside the task. It is built before the transaction, and again if the task has changed
// meanwhile.
type plan struct {
	now    store.Time
	write  []func(ctx context.Context, tx *store.Tx) error
	events []event.Event
}

func (p *plan) onWrite(f func(ctx context.Context, tx *store.Tx) error) { p.write = append(p.write, f) }

// change changes a task that the caller may update, and stores it.
func (s *Service) change(ctx context.Context, in OneInput, action string, f func(t *Task, p *plan) error) (Task, error) {
	return s.changeAs(ctx, in.ID, action, f, func(ctx context.Context, q store.Querier) (Task, error) { return read(ctx, q, in, access.Update) })
}

// changeAs is change with another check of access.
func (s *Service) changeAs(ctx context.Context, id, action string, f func(t *Task, p *plan) error,
	look func(ctx context.Context, q store.Querier) (Task, error)) (Task, error) {
	var p plan
	return records.Update(ctx, s.db, table, id, records.Edit[Task]{
		Action: action, Look: look,
		Read: func(ctx context.Context, q store.Querier) (Task, error) { return decoded(look(ctx, q)) },
		Apply: func(before Task, now store.Time) (Task, bool, error) {
			p = plan{now: now}
			t := before.clone()
			if err := f(&t, &p); errors.Is(err, errUnchanged) {
				return t, false, nil
			} else if err != nil {
				return t, false, err
			}
			return t, true, s.finish(ctx, before, &t, &p)
		},
		Write: func(ctx context.Context, tx *store.Tx, before, after Task) error {
			if err := s.quota.Count(ctx, tx, after.CreatedBy, 0, after.weight()-before.weight()); err != nil {
				return err
			}
			for _, write := range p.write {
				if err := write(ctx, tx); err != nil {
					return err
				}
			}
			if err := updateTask(ctx, tx, after, access.From(ctx).UserID); err != nil {
				return err
			}
			return s.notifyAll(ctx, tx, after, p.events)
		},
	})
}

// notifyAll sends the events of a change, to a creator without a part of the task only as long as the task is theirs.
func (s *Service) notifyAll(ctx context.Context, tx *store.Tx, t Task, events []event.Event) error {
	if len(events) == 0 {
		return nil
	}
	known, err := table.Creators(ctx, tx, t.ID)
	if err != nil {
		return err
	}
	known = append(known, t.users()...)
	for _, e := range events {
		e.Recipients = slices.DeleteFunc(slices.Clone(e.Recipients), func(id string) bool { return id == t.CreatedBy && !slices.Contains(known, id) })
		if err := s.notify.Notify(ctx, tx, e); err != nil {
			return err
		}
	}
	return nil
}

// decoded returns the task with its assignees, logs and metadata decoded.
func decoded(t Task, err error) (Task, error) {
	if err == nil {
		t.assignees, err = t.Assignees.List()
	}
	if err == nil {
		err = t.splitMetadata()
	}
	return t, err
}

// clone returns a copy with its own assignees and logs.
func (t Task) clone() Task {
	t.assignees, t.logs = slices.Clone(t.assignees), slices.Clone(t.logs)
	return t
}

// finish prepares a changed task for storing. It completes the task when all assignees have, and adds the event of a new
// status.
func (s *Service) finish(ctx context.Context, before Task, t *Task, p *plan) error {
	if t.open() && t.allDone() {
		if err := t.moveTo(Completed, ""); err != nil {
			return err
		}
	}
	t.sign(len(before.logs), p.now, access.From(ctx).UserID)
	t.version = before.version + 1
	if err := t.derive(); err != nil {
		return err
	}
	if t.Status != before.Status {
		p.events = append(p.events, s.event(ctx, event.TaskStatusChanged, *t, append([]string{t.CreatedBy}, t.users()...),
			map[string]any{"Title": t.Title, "From": string(before.Status), "To": string(t.Status)}))
	}
	return nil
}

// assigned returns the event for new assignees.
func (s *Service) assigned(ctx context.Context, t Task, assignees []Assignee) event.Event {
	return s.event(ctx, event.TaskAssigned, t, usersOf(assignees), map[string]any{"Title": t.Title, "Category": t.Category})
}

// event returns an event for users except the caller, who caused it.
func (s *Service) event(ctx context.Context, kind event.Kind, t Task, users []string, args map[string]any) event.Event {
	actor := access.From(ctx).UserID
	users = slices.DeleteFunc(users, func(id string) bool { return id == actor })
	return s.notify.Prerender(ctx, event.Event{Kind: kind, CustomerID: t.CustomerID, Type: access.Tasks, RecordID: t.ID, Recipients: users, Args: args})
}

func (t Task) users() []string { return usersOf(t.assignees) }

func usersOf(assignees []Assignee) []string {
	users := make([]string, len(assignees))
	for i, a := range assignees {
		users[i] = a.UserID
	}
	return users
}

// open reports whether the task has not ended.
func (t Task) open() bool { return len(transitions[t.Status]) > 0 }

// closed returns the error for a change of a task that has ended.
func (t Task) closed() error {
	return apierr.TaskInvalidTransition.Detail("allowed", append([]Status{}, transitions[t.Status]...))
}

// moveTo sets the status if it may follow the present one.
func (t *Task) moveTo(status Status, reason string) error {
	if !slices.Contains(transitions[t.Status], status) {
		return t.closed()
	}
	t.log(logEntry{Action: "status_changed", From: string(t.Status), To: string(status), Reason: reason})
	t.Status = status
	return nil
}

// allDone reports whether the task has assignees and all of them have completed their parts.
func (t Task) allDone() bool {
	for _, a := range t.assignees {
		if a.Status != AssigneeCompleted {
			return false
		}
	}
	return len(t.assignees) > 0
}

// derive computes the values that follow from the assignees and logs.
func (t *Task) derive() (err error) {
	t.Weight, t.PerformedWeight = t.givenWeight, 0
	if len(t.assignees) > 0 {
		t.Weight = 0
	}
	for i := range t.assignees {
		a := &t.assignees[i]
		a.TaskCompleted, a.version = a.Status == AssigneeCompleted, t.version
		t.Weight += a.Weight
		if a.TaskCompleted {
			t.PerformedWeight += a.Weight
		}
	}
	if t.Assignees, err = encodeAssignees(t.assignees); err != nil {
		return err
	}
	return t.joinMetadata()
}

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
	if now.Hour() < s.ReminderHour {
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
	var users []string
	if len(t.assignees) == 0 {
		creators, err := table.Creators(ctx, s.db, t.ID)
		if err != nil {
			return nil, err
		}
		users = creators
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
	return slices.DeleteFunc(users, func(id string) bool { return !active[id] }), nil
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
