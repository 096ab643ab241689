package records

import (
	"context"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Changing says how a record is changed.
type Changing[T any] struct {
	Action string
	Wanted access.Permission
	// Read reads the record for a caller who may change it; nil: the table does. Look is what the transaction reads to
	// see whether caller and record are still the same; nil: Read.
	Read, Look func(ctx context.Context, q store.Querier) (T, error)
	// Apply returns the new state of the record, with its next version, or false where nothing changes. It may run
	// several times.
	Apply func(before T, now store.Time) (after T, changed bool, err error)
	// Write stores the new state.
	Write func(ctx context.Context, tx *store.Tx, before, after T) error
}

// Change changes a record of a table that a row is all of, as [Revise] does, with the audit entry of both states. It
// returns Missing, apierr.NoAccess, apierr.PreconditionFailed and what Apply and Write return.
func Change[T endpoint.Tagged](ctx context.Context, db *store.DB, t *Table[T], id string, c Changing[T]) (T, error) {
	if c.Read == nil {
		c.Read = func(ctx context.Context, q store.Querier) (T, error) { return t.Get(ctx, q, id, c.Wanted) }
	}
	if c.Look == nil {
		c.Look = c.Read
	}
	type states struct {
		before, after T
		digests       [2]store.Digest
	}
	s, err := revision[T, states]{
		read: c.Read, look: c.Look,
		prepare: func(_ context.Context, q store.Querier, before T) (states, bool, error) {
			after, changed, err := c.Apply(before, q.Now())
			if err != nil || !changed {
				return states{after: before}, false, err
			}
			return states{before, after, [2]store.Digest{t.Digest(db, before), t.Digest(db, after)}}, true, nil
		},
		write: func(ctx context.Context, tx *store.Tx, s states) error {
			if err := c.Write(ctx, tx, s.before, s.after); err != nil {
				return err
			}
			t.Audit(ctx, tx, c.Action, id, s.digests[0], s.digests[1])
			return nil
		},
	}.run(ctx, db)
	return s.after, err
}
