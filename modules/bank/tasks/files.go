package tasks

import (
	"context"
	"errors"

	"kontor/modules/kit/attachment"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// SetFiles registers the module that keeps the files of tasks. It breaks an initialisation cycle.
func (s *Service) SetFiles(files attachment.Remover) { s.files = files }

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
	var one int
	err = q.QueryRow(ctx, selectMember, t.ID, caller).Scan(&one)
	if errors.Is(err, store.ErrNotFound) {
		return apierr.NoAccess
	}
	return err
}
