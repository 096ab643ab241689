package records

import (
	"kontor/server/endpoint"
	"kontor/store"
)

// Foreseen is a record as it was before the transaction that is about to change it, with its digest.
type Foreseen[T endpoint.Tagged] struct {
	tag    string
	digest store.Digest
	known  bool
}

// Foresee reads a record and makes its digest before the transaction. A record that cannot be read is left to the
// transaction, which finds the same or better.
func Foresee[T endpoint.Tagged](db *store.DB, read func() (T, error)) Foreseen[T] {
	record, err := read()
	if err != nil {
		return Foreseen[T]{}
	}
	return Foreseen[T]{tag: record.ETag(), digest: db.Digest(record), known: true}
}

// Digest is what the audit entry takes for the record that the transaction has read: the digest, unless the record has
// changed meanwhile.
func (f Foreseen[T]) Digest(record T) any {
	if f.known && record.ETag() == f.tag {
		return f.digest
	}
	return record
}
