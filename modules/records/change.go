package records

import (
	"context"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// ForChange reads a record that the caller is about to change, in the state that he has seen. It returns Missing,
// fault.NoAccess and fault.PreconditionFailed.
func ForChange[T endpoint.Tagged](ctx context.Context, q store.Querier, t *Table[T], id string, wanted access.Permission) (T, error) {
	record, err := t.Get(ctx, q, id, wanted)
	if err != nil {
		return record, err
	}
	return record, endpoint.CheckMatch(ctx, record.ETag())
}

// Audit tells the audit trail what the caller has done to a record. Before and after are nil where there is none.
func (t *Table[T]) Audit(ctx context.Context, tx *store.Tx, action, id string, before, after any) {
	tx.Audit(store.AuditEntry{Actor: Actor(ctx), Action: action, RecType: t.Type.Name, RecID: id, Before: before, After: after})
}

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
