package tasks

import (
	"context"
	"slices"

	"kontor/modules/notice"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/fault"
	"kontor/store"
)

// change reads a task that the caller may update, changes it and stores what has become of it.
func (s *Service) change(ctx context.Context, in OneInput, action string, f func(ctx context.Context, tx *store.Tx, t *Task) error) (Task, error) {
	var t Task
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := readWhole(ctx, tx, in, access.Update)
		if err != nil {
			return err
		}
		t = before.clone()
		if err := endpoint.CheckMatch(ctx, t.ETag()); err != nil {
			return err
		}
		if err := f(ctx, tx, &t); err != nil {
			return err
		}
		return s.save(ctx, tx, before, &t, action)
	})
	return t, err
}

// readWhole reads a task as [read] does, and takes apart what is stored as it is shown.
func readWhole(ctx context.Context, q store.Querier, in OneInput, wanted access.Permission) (Task, error) {
	t, err := read(ctx, q, in, wanted)
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

// save stores a task that has changed, which may complete it, and tells those whom a new state concerns.
func (s *Service) save(ctx context.Context, tx *store.Tx, before Task, t *Task, action string) error {
	actor := access.From(ctx).UserID
	if t.open() && t.allDone() {
		if err := t.moveTo(Completed, ""); err != nil {
			return err
		}
	}
	t.sign(len(before.logs), tx.Now(), actor)
	t.version = before.version + 1
	if err := t.derive(); err != nil {
		return err
	}
	if err := s.quota.Count(ctx, tx, t.CreatedBy, 0, t.weight()-before.weight()); err != nil {
		return err
	}
	if err := updateTask(ctx, tx, *t, actor); err != nil {
		return err
	}
	table.Audit(ctx, tx, action, t.ID, before, *t)
	if t.Status == before.Status {
		return nil
	}
	return s.tell(ctx, tx, notice.TaskStatusChanged, *t, append([]string{t.CreatedBy}, t.users()...),
		map[string]any{"Title": t.Title, "From": string(before.Status), "To": string(t.Status)})
}

// tellAssigned tells new assignees.
func (s *Service) tellAssigned(ctx context.Context, tx *store.Tx, t Task, assignees []Assignee) error {
	users := make([]string, len(assignees))
	for i, a := range assignees {
		users[i] = a.UserID
	}
	return s.tell(ctx, tx, notice.TaskAssigned, t, users, map[string]any{"Title": t.Title, "Category": t.Category})
}

// tell raises a notice for users. Who did it himself knows already.
func (s *Service) tell(ctx context.Context, tx *store.Tx, event notice.Event, t Task, users []string, args map[string]any) error {
	actor := access.From(ctx).UserID
	users = slices.DeleteFunc(users, func(id string) bool { return id == actor })
	if len(users) == 0 {
		return nil
	}
	return s.notify.Notify(ctx, tx, notice.Notice{Event: event, CustomerID: t.CustomerID, Type: access.Tasks, RecordID: t.ID, Recipients: users, Args: args})
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
	return fault.TaskInvalidTransition.Detail("allowed", append([]Status{}, transitions[t.Status]...))
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
