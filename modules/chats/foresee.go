package chats

import (
	"reflect"

	"kontor/store"
)

// foreseen are the digests of a change as it will be unless somebody else is faster. They are made before the transaction,
// so that the writer makes none.
type foreseen struct {
	db            *store.DB
	before, after any
	old, new      store.Digest
}

func foresee(db *store.DB, before, after any) foreseen {
	return foreseen{db: db, before: before, after: after, old: db.Digest(before), new: db.Digest(after)}
}

// of returns the digests of the change as it is.
func (f foreseen) of(before, after any) (old, new store.Digest) {
	if reflect.DeepEqual(f.before, before) && reflect.DeepEqual(f.after, after) {
		return f.old, f.new
	}
	return f.db.Digest(before), f.db.Digest(after)
}
