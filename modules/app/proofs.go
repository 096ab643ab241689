package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"kontor/modules/bank/files"
	"kontor/modules/kit/records"
	"kontor/store"
	"kontor/store/audittrail"
)

// Earlier versions digested records in another form, or not at all. An upgrade writes an entry with the digest of each
// record, between an entry with the form and formBegun and one with the form alone. Entries before these are not compared. Both are
// part of the hash chain: they cannot be deleted to have manipulated records digested again.
//
// formID is the form of all records together. Form 2 added the display name of users. Form 3 added acr, amr, authenticated_at and
// factor_at of sessions, erased_at of customers, users, personas, payers and tasks, the kind of users, and the types factors, identities,
// service_accounts, service_tokens, erasures, relationships and legal_holds. Form 4 added due_on of tasks and views of profiles. Form 5
// added the evidence of decisions and proposed ends of relationships. Form 6 added trusted_from of factors and identities, and the texts
// of decisions for customers. It is the last one: since then each record type counts its own, see [records.Proof].
const (
	formType  = "audit"
	formID    = "record-form-6"
	formBegun = "/begun"
)

// formOf returns the form of the records of one type.
func formOf(p records.Proof) string {
	if p.Form == 0 {
		return formID
	}
	return fmt.Sprintf("record-form/%s/%d", p.Type, p.Form)
}

// ErrOldForm reports that the records of a database cannot be compared before the upgrade of their digests.
var ErrOldForm = errors.New("the records were digested by an earlier version; start the server once to upgrade the digests")

// CheckRecords compares every record with the audit trail and returns the number of records. It also compares the stored content of files
// with their records, without decrypting it. The error is *records.Breaks with every record and file that differs, or ErrOldForm.
func CheckRecords(ctx context.Context, e *audittrail.Evidence) (compared int64, err error) {
	for _, p := range Proofs() {
		if since, err := formSince(ctx, e, formOf(p)); err != nil || since == 0 {
			return 0, cmp.Or(err, ErrOldForm)
		}
	}
	since, err := formSince(ctx, e, formID)
	if err != nil || since == 0 {
		return 0, cmp.Or(err, ErrOldForm)
	}
	compared, err = records.Check(ctx, e, Proofs(), since)
	var breaks records.Breaks
	if err = breaks.Add(err); err != nil {
		return compared, err
	}
	_, err = files.Check(ctx, e, false)
	if err = breaks.Add(err); err != nil {
		return compared, err
	}
	return compared, breaks.Err()
}

// CheckFiles decrypts the content of all files and compares it with their digests. It returns the number of files. The error is
// *records.Breaks with every file that differs.
func CheckFiles(ctx context.Context, e *audittrail.Evidence) (int64, error) {
	return files.Check(ctx, e, true)
}

// formSince returns the number of the entry since which all entries have a form, or 0 before the upgrade.
func formSince(ctx context.Context, q store.Querier, form string) (seq int64, err error) {
	seq, err = store.LastAuditEntry(ctx, q, formType, form)
	if err != nil || seq == 0 {
		return 0, err
	}
	begun, err := store.LastAuditEntry(ctx, q, formType, form+formBegun)
	if begun > 0 {
		seq = begun
	}
	return seq, err
}

// upgradeDigests writes an audit entry with the digest of each record whose form is not the one of this version: of all records of a
// database before formID, and later of the types with a new form. It does so once. If it is interrupted, the next start continues after
// the last batch.
func (m *Modules) upgradeDigests(ctx context.Context, proofs []records.Proof) error {
	since, err := formSince(ctx, m.DB, formID)
	if err != nil {
		return err
	}
	if since == 0 {
		if err := m.upgradeForm(ctx, formID, proofs); err != nil {
			return err
		}
	}
	for _, p := range proofs {
		known, err := formSince(ctx, m.DB, formOf(p))
		switch {
		case err != nil:
			return err
		case known > 0:
		case since == 0: // they were digested above
			err = m.auditForm(ctx, formOf(p))
		default:
			err = m.upgradeForm(ctx, formOf(p), []records.Proof{p})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// upgradeForm digests the records of types.
func (m *Modules) upgradeForm(ctx context.Context, form string, proofs []records.Proof) error {
	u := digestUpgrade{m: m, form: form, proofs: proofs}
	if err := u.begin(ctx); err != nil {
		return err
	}
	for _, p := range proofs {
		if err := u.digestType(ctx, p); err != nil {
			return fmt.Errorf("upgrade the digests of %s: %w", p.Type, err)
		}
	}
	if u.done > 0 {
		m.Log.Info("upgraded the digests of the records of an earlier version", "records", u.done)
	}
	return m.auditForm(ctx, form)
}

func (m *Modules) auditForm(ctx context.Context, id string) error {
	return m.DB.InTx(ctx, func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "audit.form", RecType: formType, RecID: id})
		return nil
	})
}

// digestBatch is the number of records that one transaction of the upgrade digests.
const digestBatch = 200

// digestUpgrade is an upgrade of the digests of all records.
type digestUpgrade struct {
	m       *Modules
	form    string
	proofs  []records.Proof
	begun   int64                    // the entry with formBegun
	earlier map[string]store.Digests // of starts that were interrupted, by type

	done, total int
}

// begin writes the entry with formBegun, or finds that of a start that was interrupted, and counts the records.
func (u *digestUpgrade) begin(ctx context.Context) (err error) {
	if u.begun, err = store.LastAuditEntry(ctx, u.m.DB, formType, u.form+formBegun); err != nil {
		return err
	}
	if u.begun == 0 {
		err = u.m.auditForm(ctx, u.form+formBegun)
	} else {
		u.earlier, err = store.DigestsSince(ctx, u.m.DB, u.begun)
	}
	if err != nil {
		return err
	}
	for _, p := range u.proofs {
		n, err := p.Count(ctx, u.m.DB)
		if err != nil {
			return err
		}
		u.total += n
		u.done += u.earlier[p.Type].Count
	}
	if u.done > 0 {
		u.m.Log.Info("continuing the upgrade of the digests that an earlier start has begun", "records", u.done, "of", u.total)
	}
	u.report()
	return nil
}

// report reports the progress. A database with few records needs no report.
func (u *digestUpgrade) report() {
	if u.m.Progress != nil && u.total > digestBatch {
		u.m.Progress(min(u.done, u.total), u.total)
	}
}

// digestType digests the records of a type that no earlier start has digested, and those that have changed since it did.
func (u *digestUpgrade) digestType(ctx context.Context, p records.Proof) error {
	earlier := u.earlier[p.Type]
	var batch []string
	if earlier.Last != "" {
		changed, err := store.ChangedSinceDigest(ctx, u.m.DB, p.Type, u.begun)
		if err != nil {
			return err
		}
		for _, id := range changed {
			exists, err := p.Exists(ctx, u.m.DB, id)
			if err != nil {
				return err
			}
			if exists && id <= earlier.Last {
				batch = append(batch, id)
			}
		}
	}
	err := p.EachAfter(ctx, u.m.DB, earlier.Last, func(id string) error {
		if batch = append(batch, id); len(batch) < digestBatch {
			return nil
		}
		err := u.digest(ctx, p, batch)
		batch = batch[:0]
		return err
	})
	if err == nil && len(batch) > 0 {
		err = u.digest(ctx, p, batch)
	}
	return err
}

// digest digests records in one transaction.
func (u *digestUpgrade) digest(ctx context.Context, p records.Proof, ids []string) error {
	err := u.m.DB.InTx(ctx, func(tx *store.Tx) error {
		for _, id := range ids {
			if err := p.AuditEntry(ctx, tx, store.AuditEntry{Actor: store.NilID, Action: store.DigestAction, RecType: p.Type, RecID: id}); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		u.done += len(ids)
		u.report()
	}
	return err
}
