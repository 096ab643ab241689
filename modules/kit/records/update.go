package records

import (
	"context"
	"errors"
	"fmt"

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

// Seen is a record, and whether the caller may read it.
type Seen[T any] struct {
	ID       string
	Record   T
	Readable bool
}

// Batch reads at most limit records after an id, in the order of the ids, that meet a condition on $2. The same statement decides
// whether the caller of the context may read each of them, as in [Table.Get]. all is the permission on the type that
// makes every record readable. It is [access.Read], as for Get, or [access.ReadAll], as for lists. With [access.None] every
// record is readable.
func (t *Table[T]) Batch(ctx context.Context, q store.Querier, all access.Permission, condition string, value any, after string, limit int) ([]Seen[T], error) {
	caller := access.From(ctx)
	statement := "SELECT " + t.Columns + ", (" + t.readable(caller.May(t.Type, all) || all == access.None) + "), " + t.From + ".id FROM " + t.From +
		" WHERE (" + condition + ") AND " + t.From + ".id > $3 ORDER BY " + t.From + ".id LIMIT $4"
	batch, err := store.All(ctx, q, func(row store.Scanner) (seen Seen[T], err error) {
		seen.Record, err = t.Scan(further{row, []any{&seen.Readable, &seen.ID}})
		return seen, err
	}, statement, caller.UserID, value, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.Type.Name, err)
	}
	return batch, nil
}

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

// Audit adds an audit entry about a change that the caller made to a record. Before and after are rows of the table, records
// or digests; nil means that the record did not exist.
func (t *Table[T]) Audit(ctx context.Context, tx *store.Tx, action, id string, before, after any) {
	tx.Audit(store.AuditEntry{Actor: Actor(ctx), Action: action, RecType: t.Type.Name, RecID: id,
		Before: t.auditable(before), After: t.auditable(after)})
}

// auditable converts a row to the form that digests cover. Other values stay as they are.
func (t *Table[T]) auditable(state any) any {
	if row, ok := state.(T); ok {
		return t.record(row)
	}
	return state
}

// record returns the form of a row that digests cover.
func (t *Table[T]) record(row T) store.Record {
	if t.Record != nil {
		return t.Record(row)
	}
	return store.Record{Answer: row}
}

// Digest computes the digest of a row, to be called before the transaction that stores it.
func (t *Table[T]) Digest(db *store.DB, row T) store.Digest { return db.Digest(t.record(row)) }

// Answer encodes a new row once, for the answer of the request and for its digest. It is for types whose digests cover the
// unchanged answer: Record must not replace members.
func (t *Table[T]) Answer(ctx context.Context, db *store.DB, row T) (store.Digest, *store.Answer) {
	answer := db.Answer(ctx, row)
	return db.Digest(t.record(row).As(answer)), answer
}

// Actor returns the author of a change: the id of a user or of an API key, or store.NilID for Kontor itself.
func Actor(ctx context.Context) string {
	caller := access.From(ctx)
	switch {
	case caller.UserID != "":
		return caller.UserID
	case caller.KeyID != "":
		return caller.KeyID
	}
	return store.NilID
}
