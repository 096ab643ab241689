package files

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"kontor/modules/kit/attachment"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// remove deletes a file: its key and name at once, its chunks soon after.
func (s *Service) remove(ctx context.Context, in oneInput) (endpoint.Message, error) {
	var f StoredFile
	err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
		if f, err = s.find(ctx, tx, in.ID, access.Delete); err != nil {
			return err
		}
		if err := f.delete(ctx, tx, "files.delete"); err != nil {
			return err
		}
		return s.changed(ctx, tx, f, false)
	})
	if err != nil {
		return endpoint.Message{}, err
	}
	if err := s.purge(ctx, f.ID, f.chunks); err != nil {
		s.Log.Warn("the chunks of a deleted file remain until they are purged", "file", f.ID, "cause", err)
	}
	return endpoint.Confirm(ctx, s.Texts, "files.deleted"), nil
}

// delete marks a file as deleted. Its content cannot be decrypted from then on.
func (f StoredFile) delete(ctx context.Context, tx *store.Tx, action string) error {
	if _, err := tx.Exec(ctx, deleteStatement, f.ID); err != nil {
		return err
	}
	f.audit(ctx, tx, action, f.record(), nil)
	return nil
}

const (
	selectAllOfRecord = `SELECT ` + columns + ` FROM files WHERE record_id = $1 AND status IN ('checking', 'ready', 'infected') ORDER BY id`

	discardOfRecord = `UPDATE files SET status = 'discarded', key_sealed = '', charged = 0 WHERE record_id = $1 AND status = 'uploading'`
)

// RemoveFiles deletes all files of a record in the transaction of its deletion. There are at most 50. Running uploads to it fail.
func (s *Service) RemoveFiles(ctx context.Context, tx *store.Tx, target attachment.Target) error {
	found, err := store.All(ctx, tx, scanFile, selectAllOfRecord, target.Record)
	if err != nil {
		return fmt.Errorf("read the files of a record: %w", err)
	}
	for _, f := range found {
		if err := f.delete(ctx, tx, "files.delete"); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, discardOfRecord, target.Record)
	return err
}

const (
	// purgeChunks is how many chunks one transaction deletes: a megabyte.
	purgeChunks = 4
	purgeBatch  = 100
	// abandonedAfter exceeds the time that the slowest sender has for the largest file.
	abandonedAfter = 2 * time.Hour
)

const (
	selectUnreadable = `SELECT id, chunks FROM files WHERE key_sealed = '' AND chunks > 0 ORDER BY chunks, id LIMIT $1`

	deleteChunks = `DELETE FROM file_chunks WHERE file_id = $1 AND number >= $2 AND number < $3`

	markPurged = `UPDATE files SET chunks = 0 WHERE id = $1 AND key_sealed = ''`

	deleteDiscarded = `DELETE FROM files WHERE id = $1 AND status = 'discarded'`

	selectAbandoned = `SELECT 1 FROM files WHERE status = 'uploading' AND created_at < $1 LIMIT 1`

	discardAbandoned = `UPDATE files SET status = 'discarded', key_sealed = '', charged = 0 WHERE status = 'uploading' AND created_at < $1`
)

// purge deletes the chunks of a file without a key, in small transactions. The row of an upload that failed goes with them.
func (s *Service) purge(ctx context.Context, id string, chunks int64) error {
	for number := int64(0); number < chunks; number += purgeChunks {
		if err := s.db.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, deleteChunks, id, number, number+purgeChunks)
			return err
		}); err != nil {
			return err
		}
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		gone, err := tx.Exec(ctx, deleteDiscarded, id)
		if err == nil && gone == 0 {
			_, err = tx.Exec(ctx, markPurged, id)
		}
		return err
	})
}

// Start discards the uploads that an earlier process has left. Other nodes of a shared database may be receiving theirs: these are
// discarded by their age.
func (s *Service) Start(ctx context.Context) error {
	if s.db.Shared() {
		return nil
	}
	return s.abandon(ctx, endOfTime)
}

const endOfTime store.Time = math.MaxInt64

func (s *Service) abandon(ctx context.Context, before store.Time) error {
	var one int
	err := s.db.QueryRow(ctx, selectAbandoned, before).Scan(&one)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, discardAbandoned, before)
		return err
	})
}

// Purge discards uploads that have not ended, and deletes chunks without a key. Without a virus scanner it opens the
// files that wait for one.
func (s *Service) Purge(ctx context.Context) error {
	if err := s.abandon(ctx, store.TimeOf(s.db.Clock().Now().Add(-abandonedAfter))); err != nil {
		return err
	}
	if s.Clamd == "" {
		if err := s.release(ctx); err != nil {
			return err
		}
	}
	for {
		found, err := store.All(ctx, s.db, func(row store.Scanner) (f StoredFile, err error) {
			err = row.Scan(&f.ID, &f.chunks)
			return f, err
		}, selectUnreadable, purgeBatch)
		if err != nil || len(found) == 0 {
			return err
		}
		for _, f := range found {
			if err := s.purge(ctx, f.ID, f.chunks); err != nil {
				return err
			}
		}
	}
}
