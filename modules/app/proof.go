package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kontor/modules/auth"
	"kontor/modules/chats"
	"kontor/modules/customers"
	"kontor/modules/directory"
	"kontor/modules/kit/records"
	"kontor/modules/payers"
	"kontor/modules/personas"
	"kontor/modules/profile"
	"kontor/modules/rbac"
	"kontor/modules/tasks"
	"kontor/store"
)

// Proofs are the record types that the audit trail proves. Notices, notifications and deliveries are messages about records
// and not covered; neither is what a module lists at its own Proofs.
func Proofs() []records.Proof {
	return slices.Concat(directory.Proofs(), auth.Proofs(), rbac.Proofs(), customers.Proofs(), personas.Proofs(), payers.Proofs(),
		chats.Proofs(), tasks.Proofs(), profile.Proofs())
}

// Entries of an earlier version digest records in another form, or say nothing about them. A database has an entry with
// formID when all its records have been digested in the present form: what came before it is not compared. The entry is
// part of the chain, so that nobody can take it away to have changed records digested anew.
const (
	formType  = "audit"
	formID    = "record-form-2"   // 2: users have a display name
	formBegun = formID + "/begun" // the entry before the first that digests a record anew

	selectForm = `SELECT COALESCE(MAX(seq), 0) FROM audit_trail WHERE rec_id = $1 AND rec_type = $2`
)

// ErrOldForm says that the records of a database cannot be compared yet.
var ErrOldForm = errors.New("the records were digested by an earlier version; start Kontor once, which digests them anew")

// CheckRecords compares every record with the audit trail and reports how many there are. The error is a *records.Break
// for the first that differs, or ErrOldForm.
func CheckRecords(ctx context.Context, e *store.Evidence) (compared int64, err error) {
	since, err := formSince(ctx, e)
	if err != nil {
		return 0, err
	}
	if since == 0 {
		return 0, ErrOldForm
	}
	return records.Check(ctx, e, Proofs(), since)
}

// formSince is the entry from which on all entries have the present form, or 0.
func formSince(ctx context.Context, q store.Querier) (seq int64, err error) {
	var begun int64
	if err = q.QueryRow(ctx, selectForm, formID, formType).Scan(&seq); err != nil || seq == 0 {
		return 0, err
	}
	err = q.QueryRow(ctx, selectForm, formBegun, formType).Scan(&begun)
	if begun > 0 {
		seq = begun
	}
	return seq, err
}

// digestBatch is how many records one transaction digests anew.
const digestBatch = 200

// digestAnew leaves an entry for each record of a database from an earlier version, once: from then on it is what records
// are compared with. A new database has none and gets only the note that it needs no more.
func (m *Modules) digestAnew(ctx context.Context) error {
	since, err := formSince(ctx, m.DB)
	if err != nil || since > 0 {
		return err
	}
	if err := m.noteForm(ctx, formBegun); err != nil {
		return err
	}
	total := 0
	for _, p := range Proofs() {
		n, err := m.digestType(ctx, p)
		if err != nil {
			return fmt.Errorf("digest %s anew: %w", p.Type, err)
		}
		total += n
	}
	if total > 0 {
		m.Log.Info("the records of an earlier version were digested for the audit trail", "records", total)
	}
	return m.noteForm(ctx, formID)
}

func (m *Modules) noteForm(ctx context.Context, id string) error {
	return m.DB.InTx(ctx, func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "audit.form", RecType: formType, RecID: id})
		return nil
	})
}

func (m *Modules) digestType(ctx context.Context, p records.Proof) (total int, err error) {
	var batch []string
	flush := func() error {
		err := m.DB.InTx(ctx, func(tx *store.Tx) error {
			for _, id := range batch {
				entry := store.AuditEntry{Actor: store.NilID, Action: "audit.digest", RecType: p.Type, RecID: id}
				if err := p.AuditEntry(ctx, tx, entry); err != nil {
					return err
				}
			}
			return nil
		})
		batch = batch[:0]
		return err
	}
	err = p.Each(ctx, m.DB, func(id string) error {
		total++
		if batch = append(batch, id); len(batch) < digestBatch {
			return nil
		}
		return flush()
	})
	if err == nil && len(batch) > 0 {
		err = flush()
	}
	return total, err
}
