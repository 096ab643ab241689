package store

import (
	"context"

	"kontor/store/sealing"
)

// KeysAsNow returns a copy of the keys of a database.
func (db *DB) KeysAsNow() *sealing.Keys { return db.keys.Copy() }

// ReplaceMasterKey continues a rotation that has begun with a copy of the keys.
func (db *DB) ReplaceMasterKey(ctx context.Context, present *sealing.Keys, master []byte) error {
	return db.replaceMasterKey(ctx, present, master, false)
}
