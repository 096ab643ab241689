package rbac

import (
	"context"
	"fmt"

	"kontor/server/access"
	"kontor/store"
)

// Forget removes the grants on a record that is deleted in the same transaction. What a module does not tell,
// [Service.Sweep] finds later; until then such a grant allows nothing, for ids are never used again.
func (s *Service) Forget(ctx context.Context, tx *store.Tx, t access.RecordType, id string) error {
	if err := forgetRecord(ctx, tx, t.Name, id); err != nil {
		return fmt.Errorf("forget grants on %s %s: %w", t, id, err)
	}
	return nil
}

// sweepLength is how many records one step of a sweep looks at.
const sweepLength = 200

const selectGrantedRecords = `
	SELECT DISTINCT rec_id FROM grants WHERE rec_type = $1 AND rec_id > $2 ORDER BY rec_id LIMIT 200`

// Sweep removes the grants on records that do not exist any more and tells how many records those were. It works in
// small steps, so that it may run at any time.
func (s *Service) Sweep(ctx context.Context) (removed int, err error) {
	for _, t := range access.RecordTypes() {
		if s.records(t) == nil {
			continue
		}
		n, err := s.sweepType(ctx, t)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("sweep grants on %s: %w", t, err)
		}
	}
	return removed, nil
}

func (s *Service) sweepType(ctx context.Context, t access.RecordType) (removed int, err error) {
	last := ""
	for {
		ids := make([]string, 0, sweepLength)
		err := each(ctx, s.db, func(rows *store.Rows) error {
			err := rows.Scan(&last)
			ids = append(ids, last)
			return err
		}, selectGrantedRecords, t.Name, last)
		if err != nil || len(ids) == 0 {
			return removed, err
		}
		found, err := s.records(t).Relations(ctx, store.NilID, ids)
		if err != nil {
			return removed, err
		}
		var gone []string
		for _, id := range ids {
			if _, exists := found[id]; !exists {
				gone = append(gone, id)
			}
		}
		if err := s.forgetAll(ctx, t, gone); err != nil {
			return removed, err
		}
		removed += len(gone)
	}
}

func (s *Service) forgetAll(ctx context.Context, t access.RecordType, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		for _, id := range ids {
			if err := forgetRecord(ctx, tx, t.Name, id); err != nil {
				return err
			}
			tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "rbac.grants.sweep", RecType: t.Name, RecID: id})
		}
		return nil
	})
}
