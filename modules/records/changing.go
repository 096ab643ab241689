package records

import (
	"context"
	"errors"

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
	// Apply makes the new state of the record, with its next version, or gives false where nothing changes. It may run
	// several times.
	Apply func(before T, now store.Time) (after T, changed bool, err error)
	// Write stores the new state.
	Write func(ctx context.Context, tx *store.Tx, before, after T) error
}

// changeTries is how often a change is prepared before the transaction. When others have changed the record each time,
// it is prepared within.
const changeTries = 4

// errMoved says that the record has changed since the change was prepared.
var errMoved = errors.New("record has changed since it was read")

// Change changes a record. The new state is made and both states are put into digests before the transaction, from what
// a reader finds; the transaction reads the record again, with the right to it, and the change is prepared anew when it
// is not the same any more. It returns Missing, fault.NoAccess, fault.PreconditionFailed and what Apply and Write return.
func Change[T endpoint.Tagged](ctx context.Context, db *store.DB, t *Table[T], id string, c Changing[T]) (T, error) {
	if c.Read == nil {
		c.Read = func(ctx context.Context, q store.Querier) (T, error) { return t.Get(ctx, q, id, c.Wanted) }
	}
	if c.Look == nil {
		c.Look = c.Read
	}
	for range changeTries {
		p, err := prepare(ctx, db, db, t, c)
		if err != nil || !p.changed {
			return p.after, err
		}
		err = db.InTx(ctx, func(tx *store.Tx) error {
			now, err := c.Look(ctx, tx)
			if err != nil {
				return err
			}
			if now.ETag() != p.before.ETag() {
				return errMoved
			}
			return p.write(ctx, tx, t, id, c)
		})
		if !errors.Is(err, errMoved) {
			return p.after, err
		}
	}
	var p prepared[T]
	err := db.InTx(ctx, func(tx *store.Tx) (err error) {
		if p, err = prepare(ctx, tx, db, t, c); err != nil || !p.changed {
			return err
		}
		return p.write(ctx, tx, t, id, c)
	})
	return p.after, err
}

// prepared is a change that only has to be written.
type prepared[T any] struct {
	before, after T
	digests       [2]store.Digest
	changed       bool
}

// prepare makes a change from what q reads.
func prepare[T endpoint.Tagged](ctx context.Context, q store.Querier, db *store.DB, t *Table[T], c Changing[T]) (p prepared[T], err error) {
	if p.before, err = c.Read(ctx, q); err != nil {
		return p, err
	}
	if err := endpoint.CheckMatch(ctx, p.before.ETag()); err != nil {
		return p, err
	}
	if p.after, p.changed, err = c.Apply(p.before, q.Now()); err != nil {
		return p, err
	}
	if !p.changed {
		p.after = p.before
		return p, nil
	}
	p.digests = [2]store.Digest{t.Digest(db, p.before), t.Digest(db, p.after)}
	return p, nil
}

func (p *prepared[T]) write(ctx context.Context, tx *store.Tx, t *Table[T], id string, c Changing[T]) error {
	if err := c.Write(ctx, tx, p.before, p.after); err != nil {
		return err
	}
	t.Audit(ctx, tx, c.Action, id, p.digests[0], p.digests[1])
	return nil
}
