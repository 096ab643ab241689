package rbac

import (
	"context"
	"fmt"
	"slices"

	"kontor/server/access"
	"kontor/store"
)

// Forget deletes the grants on a record that is deleted in the same transaction. [Service.Sweep] removes the orphaned grants
// that a module did not report. Until then they allow nothing, because ids are never reused.
func (s *Service) Forget(ctx context.Context, tx *store.Tx, t access.RecordType, id string) error {
	if err := deleteRecordGrants(ctx, tx, t.Name, id); err != nil {
		return fmt.Errorf("delete grants on %s %s: %w", t, id, err)
	}
	return nil
}

// sweepBatch is the number of records that one step of a sweep checks.
const sweepBatch = 200

const selectGrantedRecords = `
	SELECT DISTINCT rec_id FROM grants WHERE rec_type = $1 AND rec_id > $2 ORDER BY rec_id LIMIT 200`

// Sweep deletes orphaned grants, those on records that no longer exist. It returns the number of these records. It works in
// small steps and may run at any time.
func (s *Service) Sweep(ctx context.Context) (removed int, err error) {
	for _, t := range access.RecordTypes() {
		if s.recordsOf(t) == nil {
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
		ids := make([]string, 0, sweepBatch)
		err := each(ctx, s.db, func(rows *store.Rows) error {
			err := rows.Scan(&last)
			ids = append(ids, last)
			return err
		}, selectGrantedRecords, t.Name, last)
		if err != nil || len(ids) == 0 {
			return removed, err
		}
		found, err := s.recordsOf(t).Relations(ctx, store.NilID, ids)
		if err != nil {
			return removed, err
		}
		orphaned := slices.DeleteFunc(ids, func(id string) bool { _, exists := found[id]; return exists })
		if err := s.deleteOrphans(ctx, t, orphaned); err != nil {
			return removed, err
		}
		removed += len(orphaned)
	}
}

// deleteOrphans deletes the grants on records in one transaction.
func (s *Service) deleteOrphans(ctx context.Context, t access.RecordType, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		for _, id := range ids {
			if err := deleteRecordGrants(ctx, tx, t.Name, id); err != nil {
				return err
			}
			tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "rbac.grants.sweep", RecType: t.Name, RecID: id})
		}
		return nil
	})
}
