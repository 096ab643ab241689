package records

import (
	"context"

	"kontor/server/access"
	"kontor/store"
)

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
