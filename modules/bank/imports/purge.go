package imports

import (
	"context"
	"fmt"
	"time"

	"kontor/store"
)

const (
	// purgeRows is the number of rows that one transaction deletes, purgeChunks that of chunks.
	purgeRows   = 500
	purgeChunks = 8
	// uploadTime is after how long an upload that has not ended was cut off.
	uploadTime = 2 * time.Hour
)

const (
	deleteSomeChunks = `
		DELETE FROM import_chunks WHERE import_id = $1 AND number IN (
			SELECT number FROM import_chunks WHERE import_id = $1 ORDER BY number LIMIT $2)`

	selectAbandoned = `SELECT id FROM imports WHERE state = 'uploading' AND (created_at < $1 OR key_sealed = '') ORDER BY id`

	selectWithChunks = `
		SELECT DISTINCT c.import_id FROM import_chunks c JOIN imports i ON i.id = c.import_id WHERE i.key_sealed = ''`

	selectOld = `SELECT id FROM imports WHERE finished_at < $1 ORDER BY id LIMIT 100`

	deleteImport = `DELETE FROM imports WHERE id = $1`

	deleteOldRows = `
		DELETE FROM import_rows WHERE (owner_id, sha256, line) IN (
			SELECT owner_id, sha256, line FROM import_rows WHERE created_at < $1 ORDER BY created_at LIMIT $2)`
)

// Purge deletes what remains of uploads that were cut off, the chunks of imports that have ended, and imports that ended longer ago than
// imports.keep_days, with what they know about their rows.
func (s *Service) Purge(ctx context.Context) error {
	before := s.db.Now().Add(-time.Duration(s.KeepDays) * day)
	abandoned, err := store.All(ctx, s.db, store.Text, selectAbandoned, s.db.Now().Add(-uploadTime))
	if err != nil {
		return fmt.Errorf("find uploads that were cut off: %w", err)
	}
	old, err := store.All(ctx, s.db, store.Text, selectOld, before)
	if err != nil {
		return fmt.Errorf("find old imports: %w", err)
	}
	for _, id := range append(abandoned, old...) {
		if err := s.delete(ctx, id); err != nil {
			return err
		}
	}
	rest, err := store.All(ctx, s.db, store.Text, selectWithChunks)
	for _, id := range rest {
		if err == nil {
			err = s.deleteChunks(ctx, id)
		}
	}
	if err != nil {
		return err
	}
	return s.deleteBatches(ctx, purgeRows, deleteOldRows, before, purgeRows)
}

// delete deletes an import with all that belongs to it, but for the lines that became records.
func (s *Service) delete(ctx context.Context, id string) error {
	if err := s.deleteChunks(ctx, id); err != nil {
		return err
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error { return tx.RunEach(ctx, id, deleteRejections, deleteImport) })
}

// deleteChunks deletes the file of an import.
func (s *Service) deleteChunks(ctx context.Context, id string) error {
	return s.deleteBatches(ctx, purgeChunks, deleteSomeChunks, id, purgeChunks)
}

// deleteBatches runs a deletion until it deletes fewer rows than a batch.
func (s *Service) deleteBatches(ctx context.Context, size int64, statement string, args ...any) error {
	err := s.db.InBatches(ctx, size, func(tx *store.Tx) (int64, error) { return tx.Exec(ctx, statement, args...) })
	if err != nil {
		return fmt.Errorf("delete what is left of imports: %w", err)
	}
	return nil
}
