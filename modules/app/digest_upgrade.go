package app

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/store"
)

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
