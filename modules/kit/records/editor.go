package records

import (
	"context"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Editor declares how the records of a type are updated and archived: records that users create, that count towards the quota
// of their creator, and that become inactive instead of being deleted.
type Editor[T endpoint.Tagged] struct {
	Table *Table[T]
	// Audited runs a change within the transaction and writes its audit entry. Types of several tables need it; nil: the
	// digests of the row are computed before the transaction.
	Audited func(ctx context.Context, tx *store.Tx, action, id string, change func() error) error
	// Owner returns the user whose quota counts the record. Weight returns the number of bytes that it counts for.
	Owner  func(T) string
	Weight func(T) int64
	// Stamp sets time, editor and version of a changed record. It may run several times, before the transaction unless
	// Audited is set, and also when nothing changes.
	Stamp func(before, after T, now store.Time, editor string) T
	// Active returns the member that archiving sets to false.
	Active func(*T) *bool
	// Write stores the new state, in the transaction, when something changes.
	Write func(ctx context.Context, tx *store.Tx, before, after T) error
}

// Update changes a record that the caller may update. It returns the errors of [Update], and apierr.QuotaExceeded.
func (e *Editor[T]) Update(ctx context.Context, db *store.DB, quota Quota, id, action string, apply func(before T) (T, error)) (T, error) {
	return e.change(ctx, db, quota, id, action, access.Update, func(before T) (T, bool, error) {
		after, err := apply(before)
		return after, true, err
	})
}

// Archive makes a record inactive if the caller may delete it. An inactive record stays unchanged. It returns the errors of
// [Update].
func (e *Editor[T]) Archive(ctx context.Context, db *store.DB, quota Quota, id, action string) error {
	_, err := e.change(ctx, db, quota, id, action, access.Delete, func(record T) (T, bool, error) {
		active := e.Active(&record)
		changed := *active
		*active = false
		return record, changed, nil
	})
	return err
}

func (e *Editor[T]) change(ctx context.Context, db *store.DB, quota Quota, id, action string, wanted access.Permission,
	apply func(before T) (T, bool, error),
) (T, error) {
	c := Edit[T]{
		Action: action, Wanted: wanted,
		Apply: func(before T, now store.Time) (T, bool, error) {
			after, changed, err := apply(before)
			return e.Stamp(before, after, now, access.From(ctx).UserID), changed, err
		},
		Write: func(ctx context.Context, tx *store.Tx, before, after T) error {
			if err := quota.Charge(ctx, tx, e.Table.Type, e.Owner(before), 0, e.Weight(after)-e.Weight(before)); err != nil {
				return err
			}
			return e.Write(ctx, tx, before, after)
		},
	}
	if e.Audited != nil {
		return e.changeInTx(ctx, db, id, c)
	}
	return Update(ctx, db, e.Table, id, c)
}

// changeInTx is [Update] for records of several tables, whose audit entries are made within the transaction.
func (e *Editor[T]) changeInTx(ctx context.Context, db *store.DB, id string, c Edit[T]) (after T, err error) {
	err = db.InTx(ctx, func(tx *store.Tx) error {
		before, err := GetForUpdate(ctx, tx, e.Table, id, c.Wanted)
		if err != nil {
			return err
		}
		changed := false
		if after, changed, err = c.Apply(before, tx.Now()); err != nil {
			return err
		}
		if !changed {
			after = before
			return nil
		}
		return e.Audited(ctx, tx, c.Action, id, func() error { return c.Write(ctx, tx, before, after) })
	})
	return after, err
}
