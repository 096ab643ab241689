package store

import (
	"context"

	"kontor/store/audittrail"
	"kontor/store/query"
)

// Audit appends an entry to the audit trail, in the same commit as the change that it describes.
func (tx *Tx) Audit(e AuditEntry) {
	before, after := tx.db.Digest(e.Before), tx.db.Digest(e.After)
	pending, err := audittrail.NewPending(e, before, after, tx.now)
	if err == nil && (before.Present() || len(e.Changes) > 0) { // an insert has no changed fields
		err = tx.prepareValues(&pending, e, before, after)
	}
	if err != nil {
		_ = tx.tx.Failed(err)
		return
	}
	tx.entries = append(tx.entries, pending)
	tx.noteRemoval(e, pending.Deletes())
}

// Digest returns the digest of a record. Compute it before the transaction where the record is known by then, because
// other writes wait for a transaction. A value that is no Record counts as an answer without a rest.
func (db *DB) Digest(record any) Digest {
	if _, done := record.(Digest); record != nil && !done {
		db.Heavy("digest")
	}
	return db.digests.Of(record)
}

// SetOrigin registers the function that returns the origin of changes from the context of their transaction. Call it before
// the first write. Without it entries have no origin.
func (db *DB) SetOrigin(of func(ctx context.Context) Origin) { db.origin = of }

func (db *DB) originOf(ctx context.Context) Origin {
	if db.origin == nil {
		return Origin{}
	}
	return db.origin(ctx)
}

// OnAudited registers a function that is called after each commit with audit entries, with the number of the newest. All entries
// up to that number are durable then; readers may see further ones that are not. Commits of other processes are not reported. It
// must be quick. Call OnAudited before the first write.
func (db *DB) OnAudited(f func(seq int64)) { db.audited = f }

// announceEntries calls the function of OnAudited after the commit.
func (tx *Tx) announceEntries() {
	if tx.db.audited == nil || len(tx.entries) == 0 {
		return
	}
	if end, known := tx.db.guard.End(); known {
		tx.AfterCommit(func() { tx.db.audited(end.Seq) })
	}
}

// VerifyAudit verifies the whole audit trail and returns how many entries it has. The error is an *audittrail.Break for the
// first entry that was changed, removed or inserted.
func (db *DB) VerifyAudit(ctx context.Context) (entries int64, err error) {
	err = db.View(ctx, func(v *View) error {
		entries, err = audittrail.Verify(ctx, v, db.keys)
		return err
	})
	return entries, err
}

// VerifyAuditStep verifies at most limit entries after a position; see [audittrail.VerifyStep].
func (db *DB) VerifyAuditStep(ctx context.Context, from audittrail.Position, limit int) (to audittrail.Position, ended bool, err error) {
	err = db.View(ctx, func(v *View) error {
		to, ended, err = audittrail.VerifyStep(ctx, v, db.keys, from, limit)
		return err
	})
	return to, ended, err
}

// AuditUnguarded returns what is missing of the protection of the audit trail: without it a statement can change or delete
// entries.
func (db *DB) AuditUnguarded(ctx context.Context) (missing []string, err error) {
	return db.engine.Unprotected(ctx, db.engine)
}

// ExportAfter returns at most limit audit entries after a sequence number, with a signed head. An empty batch has no head.
func (db *DB) ExportAfter(ctx context.Context, seq int64, limit int) (audittrail.ExportBatch, error) {
	return audittrail.ExportAfter(ctx, query.Querier(db), db.keys, seq, limit)
}

// ExportKey returns the public key that verifies exports of this database, in base64.
func (db *DB) ExportKey() string { return audittrail.PublicExportKey(db.keys) }
