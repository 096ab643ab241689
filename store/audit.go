package store

import (
	"context"
	"time"

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

// ExportKeys returns the public keys that verify exports of this database, in base64: the present one first, then those from before
// rotations of the master key.
func (db *DB) ExportKeys() []string { return audittrail.PublicExportKeys(db.keys) }

// ExportKey returns the public key that verifies exports of this database, in base64.
func (db *DB) ExportKey() string { return audittrail.PublicExportKey(db.keys) }

// FieldChange is the value of one field before and after a change.
type FieldChange = audittrail.FieldChange

// ChangeRule says which members of a record type are no changed fields.
type ChangeRule = audittrail.ChangeRule

// Changed returns the change of a field with texts, for [AuditEntry]. An empty text stands for no value.
func Changed(field, before, after string) FieldChange {
	return audittrail.Changed(field, before, after)
}

// Changes says of which records the audit trail keeps changed fields.
type Changes struct {
	// Rules are the record types; others have no changed fields.
	Rules map[string]ChangeRule
	// Erase is the action of entries that erase personal data: the changed fields of their record are deleted.
	Erase string
}

// KeepChanges makes changes of records keep the values of their fields, sealed, beside the audit trail. Only what the API answers
// is kept. Call it before the first write. Without it nothing is kept.
func (db *DB) KeepChanges(c Changes) { db.changes = c }

// DigestChange returns the digest of a record after a change, with the changed fields. Call it before the transaction, with both
// digests from this process; a transaction computes what was not prepared.
func (db *DB) DigestChange(recType string, before, after Digest) Digest {
	rule, kept := db.changes.Rules[recType]
	if !kept {
		return after
	}
	values, err := db.digests.NewValues(db.keys, rule.Changes(before, after))
	if err != nil {
		db.log.Error("cannot keep changed fields", "rec_type", recType, "cause", err)
	}
	return after.With(values)
}

// prepareValues completes a pending entry by the changed fields of its record.
func (tx *Tx) prepareValues(p *audittrail.Pending, e AuditEntry, before, after Digest) error {
	c := &tx.db.changes
	rule, kept := c.Rules[e.RecType]
	if !kept {
		return nil
	}
	gone := before.Present() && !after.Present()
	if e.Action == c.Erase && c.Erase != "" || gone && rule.Forget {
		p.Forget()
		return nil
	}
	if len(e.Changes) > 0 {
		values, err := tx.db.digests.NewValues(tx.db.keys, e.Changes)
		p.Keep(values)
		return err
	}
	if after.Values() == nil && before.Present() && after.Present() {
		after = tx.db.DigestChange(e.RecType, before, after)
	}
	p.Keep(after.Values())
	return nil
}

// ChangedFields returns the changed fields of an audit entry with a detail. It returns ErrNotFound when the entry has none, or they
// were deleted.
func (db *DB) ChangedFields(ctx context.Context, seq int64, detail string) ([]FieldChange, error) {
	digest := audittrail.ValuesDigest(detail)
	if digest == "" {
		return nil, ErrNotFound
	}
	changes, err := audittrail.ReadValues(ctx, db, db.keys, seq, digest)
	if db.missesKey(ctx, err) {
		changes, err = audittrail.ReadValues(ctx, db, db.keys, seq, digest)
	}
	return changes, err
}

// HasChangedFields reports whether an audit entry with this detail was written with changed fields. They may have been deleted.
func HasChangedFields(detail string) bool { return audittrail.ValuesDigest(detail) != "" }

// purgeBatch is the number of rows that one transaction deletes, so that other writes do not wait long.
const purgeBatch = 500

// PurgeChangedFields deletes the changed fields of entries that are older than an age. The entries stay.
func (db *DB) PurgeChangedFields(ctx context.Context, age time.Duration) error {
	before := db.Now().Add(-age)
	return db.InBatches(ctx, purgeBatch, func(tx *Tx) (int64, error) { return audittrail.PurgeValues(ctx, tx, before, purgeBatch) })
}

// sealedChanges are the changed fields of audit entries.
var sealedChanges = SealedColumn{
	Table: audittrail.ValuesTable, Column: audittrail.ValuesColumn, Select: audittrail.SelectOldValues, Update: audittrail.UpdateValues,
}

// DigestAction is the action of the audit entries that an upgrade writes with the digests of all records.
const DigestAction = "audit.digest"

// Digests are the records of a type that an upgrade has digested.
type Digests struct {
	Last  string // the id of the last one, in ascending order
	Count int
}

const (
	selectDigests = `
		SELECT rec_type, MAX(rec_id), COUNT(DISTINCT rec_id) FROM audit_entries
		WHERE seq > $1 AND action = $2 GROUP BY rec_type`

	selectChanged = `
		SELECT DISTINCT e.rec_id FROM audit_entries e
		WHERE e.seq > $1 AND e.rec_type = $2 AND e.action <> $3 AND NOT EXISTS (
			SELECT 1 FROM audit_entries d WHERE d.rec_id = e.rec_id AND d.rec_type = e.rec_type AND d.seq > e.seq AND d.action = $3)
		ORDER BY 1`
)

// DigestsSince returns what an upgrade has digested since an audit entry, by record type.
func DigestsSince(ctx context.Context, q Querier, begun int64) (map[string]Digests, error) {
	found := map[string]Digests{}
	err := query.Each(ctx, q, func(row Scanner) error {
		var recType string
		var d Digests
		err := row.Scan(&recType, &d.Last, &d.Count)
		found[recType] = d
		return err
	}, selectDigests, begun, DigestAction)
	return found, err
}

// ChangedSinceDigest returns the ids of the records of a type that have entries since an upgrade began, after which the upgrade has
// not digested them: another version of the program has served meanwhile.
func ChangedSinceDigest(ctx context.Context, q Querier, recType string, begun int64) ([]string, error) {
	return All(ctx, q, Text, selectChanged, begun, recType, DigestAction)
}

const selectLastEntry = `SELECT COALESCE(MAX(seq), 0) FROM audit_entries WHERE rec_id = $1 AND rec_type = $2`

// LastAuditEntry returns the number of the newest audit entry of a record, or 0 when there is none.
func LastAuditEntry(ctx context.Context, q Querier, recType, recID string) (seq int64, err error) {
	err = q.QueryRow(ctx, selectLastEntry, recID, recType).Scan(&seq)
	return seq, err
}
