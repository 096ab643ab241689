package records

import (
	"context"
	"errors"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// optimisticTries is the number of times that a change is prepared outside the transaction. After that it is prepared inside
// the transaction, where no other write can interfere.
const optimisticTries = 4

// errStale reports that a record changed after a change of it was prepared.
var errStale = errors.New("the record changed meanwhile")

// UpdatePrepared changes a record with optimistic concurrency control. prepare does slow work, such as digests, encryption and
// JSON, before the transaction. write runs in the transaction, only if the record is unchanged; otherwise prepare runs
// again. It returns Missing, apierr.NoAccess, apierr.PreconditionFailed and errors of the two functions.
func UpdatePrepared[T endpoint.Tagged, P any](ctx context.Context, db *store.DB, t *Table[T], id string, wanted access.Permission,
	prepare func(ctx context.Context, q store.Querier, before T) (P, error), write func(ctx context.Context, tx *store.Tx, prepared P) error,
) (P, error) {
	read := func(ctx context.Context, q store.Querier) (T, error) { return t.Get(ctx, q, id, wanted) }
	return optimistic[T, P]{
		read: read, look: read, write: write,
		prepare: func(ctx context.Context, q store.Querier, before T) (P, bool, error) {
			p, err := prepare(ctx, q, before)
			return p, true, err
		},
	}.run(ctx, db)
}

// optimistic is a change that is prepared before the transaction that writes it.
type optimistic[T endpoint.Tagged, P any] struct {
	// read reads the record to prepare for. look reads, in the transaction, enough to compare its tag.
	read, look func(ctx context.Context, q store.Querier) (T, error)
	// prepare returns what to write, and false when nothing changes. It may run several times.
	prepare func(ctx context.Context, q store.Querier, before T) (prepared P, changed bool, err error)
	write   func(ctx context.Context, tx *store.Tx, prepared P) error
}

// run returns what prepare returned last.
func (o optimistic[T, P]) run(ctx context.Context, db *store.DB) (prepared P, err error) {
	for range optimisticTries {
		before, prepared, changed, err := o.readAndPrepare(ctx, db)
		if err != nil || !changed {
			return prepared, err
		}
		err = db.InTx(ctx, func(tx *store.Tx) error {
			now, err := o.look(ctx, tx)
			if err != nil {
				return err
			}
			if now.ETag() != before.ETag() {
				return errStale
			}
			return o.write(ctx, tx, prepared)
		})
		if !errors.Is(err, errStale) {
			return prepared, err
		}
	}
	err = db.InTx(ctx, func(tx *store.Tx) (err error) {
		var changed bool
		if _, prepared, changed, err = o.readAndPrepare(ctx, tx); err != nil || !changed {
			return err
		}
		return o.write(ctx, tx, prepared)
	})
	return prepared, err
}

func (o optimistic[T, P]) readAndPrepare(ctx context.Context, q store.Querier) (before T, prepared P, changed bool, err error) {
	if before, err = o.read(ctx, q); err != nil {
		return before, prepared, false, err
	}
	if err = rejectErased(before); err != nil {
		return before, prepared, false, err
	}
	if err = endpoint.CheckMatch(ctx, before.ETag()); err != nil {
		return before, prepared, false, err
	}
	prepared, changed, err = o.prepare(ctx, q, before)
	return before, prepared, changed, err
}
