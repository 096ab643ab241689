package store

import (
	"context"
	"os"
)

// Pragma changes a setting of the connection that writes, for tests that make it fail. Nobody may be
// writing.
func (db *DB) Pragma(text string) error { return db.writer.conn.Run("PRAGMA " + text) }

// WrittenTables is the parser behind Version.
var WrittenTables = writtenTables

// QueueLength is how many closures may wait.
const QueueLength = queueLength

// OnSync puts f in the place of the sync to disk. Nobody may be writing.
func (db *DB) OnSync(f func() error) { db.writer.syncer.flush = func(*os.File) error { return f() } }

// SignHead stores the signed end of a trail that a test has written itself.
func SignHead(ctx context.Context, tx *Tx, seq int64, hash [32]byte) error {
	_, err := tx.Exec(ctx, upsertMeta, metaAuditHead, tx.db.secrets.signHead(head{seq: seq, hash: hash}))
	return err
}
