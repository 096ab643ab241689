package records

import (
	"context"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// ForChange reads a record that the caller is about to change, in the state that he has seen. It returns Missing,
// apierr.NoAccess and apierr.PreconditionFailed.
func ForChange[T endpoint.Tagged](ctx context.Context, q store.Querier, t *Table[T], id string, wanted access.Permission) (T, error) {
	record, err := t.Get(ctx, q, id, wanted)
	if err != nil {
		return record, err
	}
	return record, endpoint.CheckMatch(ctx, record.ETag())
}

// Audit leaves an entry about what the caller has done to a record. Before and after are rows of the table, records or
// digests, and nil where there is none.
func (t *Table[T]) Audit(ctx context.Context, tx *store.Tx, action, id string, before, after any) {
	tx.Audit(store.AuditEntry{Actor: Actor(ctx), Action: action, RecType: t.Type.Name, RecID: id,
		Before: t.known(before), After: t.known(after)})
}

// known puts a row into the form in which the audit trail knows it.
func (t *Table[T]) known(state any) any {
	if row, ok := state.(T); ok {
		return t.record(row)
	}
	return state
}

// Digest makes the digest of a row before the transaction that stores it.
func (t *Table[T]) Digest(db *store.DB, row T) store.Digest { return db.Digest(t.record(row)) }

// Actor names who makes a change: a user, an API key, or Kontor itself.
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
