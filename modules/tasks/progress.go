package tasks

import (
	"context"
	"errors"
	"slices"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// errUnchanged ends a change after which a task is as it was.
var errUnchanged = errors.New("nothing changes")

// plan is what a change writes beside the task. It is made before the transaction, perhaps several times.
type plan struct {
	now   store.Time
	write []func(ctx context.Context, tx *store.Tx) error
	tell  []event.Event
}

func (p *plan) later(f func(ctx context.Context, tx *store.Tx) error) { p.write = append(p.write, f) }

// change reads a task that the caller may update, changes it and stores what has become of it.
func (s *Service) change(ctx context.Context, in OneInput, action string, f func(t *Task, p *plan) error) (Task, error) {
	return s.changeAs(ctx, in.ID, action, f, func(ctx context.Context, q store.Querier) (Task, error) { return read(ctx, q, in, access.Update) })
}

// changeAs is change with another way to find out whether the caller may change the task.
func (s *Service) changeAs(ctx context.Context, id, action string, f func(t *Task, p *plan) error,
	look func(ctx context.Context, q store.Querier) (Task, error)) (Task, error) {
	var p plan
	return records.Change(ctx, s.db, table, id, records.Changing[Task]{
		Action: action, Look: look,
		Read: func(ctx context.Context, q store.Querier) (Task, error) { return whole(look(ctx, q)) },
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
			for _, n := range p.tell {
				if err := s.notify.Notify(ctx, tx, n); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// whole takes apart what is stored as it is shown.
func whole(t Task, err error) (Task, error) {
	if err == nil {
		t.parts, err = t.Assignees.Parts()
	}
	if err == nil {
		err = t.splitMetadata()
	}
	return t, err
}

// clone gives a copy whose parts and logs can be changed without changing those of the original.
func (t Task) clone() Task {
	t.parts, t.logs = slices.Clone(t.parts), slices.Clone(t.logs)
	return t
}

// finish makes a changed task ready to be stored, which may complete it, and tells those whom a new state concerns.
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
		p.tell = append(p.tell, s.notice(ctx, event.TaskStatusChanged, *t, append([]string{t.CreatedBy}, t.users()...),
			map[string]any{"Title": t.Title, "From": string(before.Status), "To": string(t.Status)}))
	}
	return nil
}

// assigned is the notice for new assignees.
func (s *Service) assigned(ctx context.Context, t Task, assignees []Assignee) event.Event {
	users := make([]string, len(assignees))
	for i, a := range assignees {
		users[i] = a.UserID
	}
	return s.notice(ctx, event.TaskAssigned, t, users, map[string]any{"Title": t.Title, "Category": t.Category})
}

// notice words a notice for users. Who did it himself knows already.
func (s *Service) notice(ctx context.Context, kind event.Kind, t Task, users []string, args map[string]any) event.Event {
	actor := access.From(ctx).UserID
	users = slices.DeleteFunc(users, func(id string) bool { return id == actor })
	return s.notify.Word(ctx, event.Event{Kind: kind, CustomerID: t.CustomerID, Type: access.Tasks, RecordID: t.ID, Recipients: users, Args: args})
}

func (t Task) users() []string {
	users := make([]string, len(t.parts))
	for i, a := range t.parts {
		users[i] = a.UserID
	}
	return users
}

// open holds until the task is at its end.
func (t Task) open() bool { return len(transitions[t.Status]) > 0 }

// closed is the refusal to change a task at its end.
func (t Task) closed() error {
	return apierr.TaskInvalidTransition.Detail("allowed", append([]Status{}, transitions[t.Status]...))
}

// moveTo changes the state if it may follow.
func (t *Task) moveTo(status Status, reason string) error {
	if !slices.Contains(transitions[t.Status], status) {
		return t.closed()
	}
	t.log(logEntry{Action: "status_changed", From: string(t.Status), To: string(status), Reason: reason})
	t.Status = status
	return nil
}

// allDone holds for a task with assignees who have all done their parts.
func (t Task) allDone() bool {
	for _, a := range t.parts {
		if a.Status != PartCompleted {
			return false
		}
	}
	return len(t.parts) > 0
}

// derive computes what follows from the parts.
func (t *Task) derive() (err error) {
	t.Weight, t.PerformedWeight = t.given, 0
	if len(t.parts) > 0 {
		t.Weight = 0
	}
	for i := range t.parts {
		a := &t.parts[i]
		a.TaskCompleted, a.version = a.Status == PartCompleted, t.version
		t.Weight += a.Weight
		if a.TaskCompleted {
			t.PerformedWeight += a.Weight
		}
	}
	if t.Assignees, err = shown(t.parts); err != nil {
		return err
	}
	return t.joinMetadata()
}
