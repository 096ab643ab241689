package records

import (
	"context"
	"errors"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// reviseTries is how often a change is prepared anew because somebody else changed the record meanwhile. After that it is
// prepared inside the transaction, where nobody can be faster.
const reviseTries = 4

// errStale says that a record is no longer the one that a change was prepared for.
var errStale = errors.New("the record changed meanwhile")

// Revise changes a record that the caller may change. prepare does everything slow, such as digests, encryption and JSON,
// before the transaction; write stores it when the record is still the same, and otherwise both begin again. Revise
// returns Missing, apierr.NoAccess, apierr.PreconditionFailed and what the two functions return.
func Revise[T endpoint.Tagged, P any](ctx context.Context, db *store.DB, t *Table[T], id string, wanted access.Permission,
	prepare func(ctx context.Context, q store.Querier, before T) (P, error), write func(ctx context.Context, tx *store.Tx, prepared P) error,
) (P, error) {
	read := func(ctx context.Context, q store.Querier) (T, error) { return t.Get(ctx, q, id, wanted) }
	return revision[T, P]{
		read: read, look: read, write: write,
		prepare: func(ctx context.Context, q store.Querier, before T) (P, bool, error) {
			p, err := prepare(ctx, q, before)
			return p, true, err
		},
	}.run(ctx, db)
}

// revision is a change of a record that is prepared before the transaction that writes it.
type revision[T endpoint.Tagged, P any] struct {
	// read reads the record to prepare for. look reads, in the transaction, what tells whether it is still the same.
	read, look func(ctx context.Context, q store.Querier) (T, error)
	// prepare returns what is to be written, and false when nothing is. It may run several times.
	prepare func(ctx context.Context, q store.Querier, before T) (P, bool, error)
	write   func(ctx context.Context, tx *store.Tx, prepared P) error
}

func (r revision[T, P]) run(ctx context.Context, db *store.DB) (P, error) {
	for range reviseTries {
		before, p, changed, err := r.make(ctx, db)
		if err != nil || !changed {
			return p, err
		}
		err = db.InTx(ctx, func(tx *store.Tx) error {
			now, err := r.look(ctx, tx)
			if err != nil {
				return err
			}
			if now.ETag() != before.ETag() {
				return errStale
			}
			return r.write(ctx, tx, p)
		})
		if !errors.Is(err, errStale) {
			return p, err
		}
	}
	var p P
	err := db.InTx(ctx, func(tx *store.Tx) (err error) {
		var changed bool
		if _, p, changed, err = r.make(ctx, tx); err != nil || !changed {
			return err
		}
		return r.write(ctx, tx, p)
	})
	return p, err
}

// make prepares the change from what q reads.
func (r revision[T, P]) make(ctx context.Context, q store.Querier) (before T, p P, changed bool, err error) {
	if before, err = r.read(ctx, q); err != nil {
		return before, p, false, err
	}
	if err = endpoint.CheckMatch(ctx, before.ETag()); err != nil {
		return before, p, false, err
	}
	p, changed, err = r.prepare(ctx, q, before)
	return before, p, changed, err
}
