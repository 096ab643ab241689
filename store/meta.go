package store

import "context"

// The table meta keeps facts about the database itself.
const (
	metaKeyCheck  = "key_check"  // recognises the master key
	metaAuditHead = "audit_head" // the newest audit entry, signed

	metaCommits = "commits" // the number of the newest commit, compared with the mark

	metaWriteProbe = "write_probe" // empty but for a moment
	metaUnshown    = "unshown"     // secrets of the first start, sealed, until they were shown
)

const selectMeta = `SELECT value FROM meta WHERE name = $1`

const upsertMeta = `
	INSERT INTO meta (name, value) VALUES ($1, $2)
	ON CONFLICT (name) DO UPDATE SET value = excluded.value`

const deleteMeta = `DELETE FROM meta WHERE name = $1`

// KeepUnshown keeps what a first start has made and nobody has seen yet, sealed, with the transaction that makes it.
func (tx *Tx) KeepUnshown(ctx context.Context, plain []byte) error {
	sealed, err := tx.db.Seal("meta", "value", metaUnshown, plain)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, upsertMeta, metaUnshown, sealed)
	return err
}

// Unshown returns what KeepUnshown kept, or ErrNotFound when it was shown or never made.
func (db *DB) Unshown(ctx context.Context) ([]byte, error) {
	var sealed string
	if err := db.QueryRow(ctx, selectMeta, metaUnshown).Scan(&sealed); err != nil {
		return nil, err
	}
	return db.Unseal("meta", "value", metaUnshown, sealed)
}

// Shown forgets what KeepUnshown kept.
func (db *DB) Shown(ctx context.Context) error {
	return db.InTx(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, deleteMeta, metaUnshown)
		return err
	})
}
