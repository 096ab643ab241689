package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"kontor/modules/bank/chats"
	"kontor/modules/bank/customers"
	"kontor/modules/bank/files"
	"kontor/modules/bank/payers"
	"kontor/modules/bank/personas"
	"kontor/modules/bank/tasks"
	"kontor/modules/duty/privacy"
	"kontor/modules/duty/screening"
	"kontor/modules/identity/auth"
	"kontor/modules/identity/directory"
	"kontor/modules/identity/factors"
	"kontor/modules/identity/oidc"
	"kontor/modules/identity/profile"
	"kontor/modules/identity/rbac"
	"kontor/modules/identity/serviceaccounts"
	"kontor/modules/kit/records"
	"kontor/modules/reach/webhooks"
	"kontor/store"
	"kontor/store/audittrail"
)

// Proofs returns the record types that the audit trail covers. Notifications and deliveries are messages about records and
// are not covered; nor are the exceptions that the Proofs of a module lists.
func Proofs() []records.Proof {
	return slices.Concat(directory.Proofs(), auth.Proofs(), factors.Proofs(), oidc.Proofs(), serviceaccounts.Proofs(), rbac.Proofs(),
		customers.Proofs(), personas.Proofs(), payers.Proofs(), chats.Proofs(), tasks.Proofs(), files.Proofs(), profile.Proofs(), privacy.Proofs(), webhooks.Proofs(),
		screening.Proofs())
}

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
