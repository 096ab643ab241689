package store

import (
	"context"
	"strconv"
	"time"

	"kontor/store/audittrail"
)

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
	for n := int64(purgeBatch); n == purgeBatch; {
		err := db.InTx(ctx, func(tx *Tx) (err error) {
			n, err = audittrail.PurgeValues(ctx, tx, func(sql string, args ...any) (int64, error) { return tx.Exec(ctx, sql, args...) }, before, purgeBatch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sealedChanges are the changed fields of audit entries.
func (db *DB) sealedChanges() SealedColumn {
	const update = `UPDATE audit_values SET sealed = $3 WHERE seq = $1 AND sealed = $2`
	return SealedColumn{Table: audittrail.ValuesTable, Column: audittrail.ValuesColumn,
		Next: func(ctx context.Context, newest, after string, limit int) ([]SealedValue, error) {
			found, err := audittrail.FindOldValues(ctx, db, newest, after, limit)
			var values []SealedValue
			for _, old := range found {
				values = append(values, SealedValue{After: strconv.FormatInt(old.Seq, 10), Reseal: func(context.Context) (func(context.Context, *Tx) error, error) {
					plain, err := db.Unseal(audittrail.ValuesTable, audittrail.ValuesColumn, old.Digest, old.Sealed)
					if err != nil {
						return nil, err
					}
					sealed, err := db.Seal(audittrail.ValuesTable, audittrail.ValuesColumn, old.Digest, plain)
					return func(ctx context.Context, tx *Tx) error {
						_, err := tx.Exec(ctx, update, old.Seq, old.Sealed, sealed)
						return err
					}, err
				}})
			}
			return values, err
		}}
}
