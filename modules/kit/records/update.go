package records

import (
	"context"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// GetForUpdate reads a record that the caller is about to change, and checks the header If-Match. It returns Missing,
// apierr.NoAccess and apierr.PreconditionFailed.
func GetForUpdate[T endpoint.Tagged](ctx context.Context, q store.Querier, t *Table[T], id string, wanted access.Permission) (T, error) {
	record, err := t.Get(ctx, q, id, wanted)
	if err != nil {
		return record, err
	}
	if err := rejectErased(record); err != nil {
		return record, err
	}
	return record, endpoint.CheckMatch(ctx, record.ETag())
}

// erasable is implemented by records whose personal data can be erased.
type erasable interface{ Erased() bool }

// rejectErased returns apierr.RecordErased for a record whose personal data was erased: it does not change any more.
func rejectErased(record any) error {
	if e, ok := record.(erasable); ok && e.Erased() {
		return apierr.RecordErased
	}
	return nil
}

// Edit describes a change of a record.
type Edit[T any] struct {
	Action string            // of the audit entry
	Wanted access.Permission // that the caller needs
	// Read reads the record for a caller with access; nil: [Table.Get] does. Look reads it again in the transaction, to
	// find out whether it and the caller's access are still the same; nil: Read.
	Read, Look func(ctx context.Context, q store.Querier) (T, error)
	// Apply returns the new state of the record, with its next version, or false when nothing changes. It may run
	// several times.
	Apply func(before T, now store.Time) (after T, changed bool, err error)
	// Write stores the new state.
	Write func(ctx context.Context, tx *store.Tx, before, after T) error
}

// Update changes a record that is one row of a table, with an audit entry of both states. As [UpdatePrepared] does, it makes
// digests before the transaction. It returns Missing, apierr.NoAccess, apierr.PreconditionFailed and errors of Apply and Write.
func Update[T endpoint.Tagged](ctx context.Context, db *store.DB, t *Table[T], id string, e Edit[T]) (T, error) {
	if e.Read == nil {
		e.Read = func(ctx context.Context, q store.Querier) (T, error) { return t.Get(ctx, q, id, e.Wanted) }
	}
	if e.Look == nil {
		e.Look = e.Read
	}
	var digests [2]store.Digest
	var before T
	return optimistic[T, T]{
		read: e.Read, look: e.Look,
		prepare: func(_ context.Context, q store.Querier, read T) (T, bool, error) {
			before = read
			after, changed, err := e.Apply(before, q.Now())
			if err != nil || !changed {
				return before, false, err
			}
			was := t.Digest(db, before)
			digests = [2]store.Digest{was, db.DigestChange(t.Type.Name, was, t.Digest(db, after))}
			return after, true, nil
		},
		write: func(ctx context.Context, tx *store.Tx, after T) error {
			if err := e.Write(ctx, tx, before, after); err != nil {
				return err
			}
			t.Audit(ctx, tx, e.Action, id, digests[0], digests[1])
			return nil
		},
	}.run(ctx, db)
}
