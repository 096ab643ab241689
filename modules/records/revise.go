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
// returns Missing, fault.NoAccess, fault.PreconditionFailed and what the two functions return.
func Revise[T endpoint.Tagged, P any](ctx context.Context, db *store.DB, t *Table[T], id string, wanted access.Permission,
	prepare func(ctx context.Context, q store.Querier, before T) (P, error), write func(ctx context.Context, tx *store.Tx, prepared P) error,
) (P, error) {
	read := func(ctx context.Context, q store.Querier) (T, error) {
		record, err := t.Get(ctx, q, id, wanted)
		if err != nil {
			return record, err
		}
		return record, endpoint.CheckMatch(ctx, record.ETag())
	}
	same := func(a, b T) bool { return a.ETag() == b.ETag() }
	return Prepared(ctx, db, read, same, prepare, write)
}

// Prepared is [Revise] for a state that the caller of it reads and compares.
func Prepared[T, P any](ctx context.Context, db *store.DB, read func(ctx context.Context, q store.Querier) (T, error), same func(a, b T) bool,
	prepare func(ctx context.Context, q store.Querier, state T) (P, error), write func(ctx context.Context, tx *store.Tx, prepared P) error,
) (prepared P, err error) {
	for range reviseTries {
		state, err := read(ctx, db)
		if err != nil {
			return prepared, err
		}
		if prepared, err = prepare(ctx, db, state); err != nil {
			return prepared, err
		}
		err = db.InTx(ctx, func(tx *store.Tx) error {
			now, err := read(ctx, tx)
			if err != nil {
				return err
			}
			if !same(state, now) {
				return errStale
			}
			return write(ctx, tx, prepared)
		})
		if !errors.Is(err, errStale) {
			return prepared, err
		}
	}
	err = db.InTx(ctx, func(tx *store.Tx) error {
		state, err := read(ctx, tx)
		if err != nil {
			return err
		}
		if prepared, err = prepare(ctx, tx, state); err != nil {
			return err
		}
		return write(ctx, tx, prepared)
	})
	return prepared, err
}
