package screening

import (
	"context"
	"errors"

	"kontor/store"
)

const (
	selectProgress = `SELECT load, COALESCE((SELECT l.load FROM screening_lists l WHERE l.id = screening_loads.list_id), 0) FROM screening_loads WHERE list_id = $1`

	// The entries of a dropped list, those that an earlier load has ended, and those of loads that have failed.
	deleteDropped = `DELETE FROM screening_entries WHERE id IN (SELECT id FROM screening_entries WHERE list_id = $1 LIMIT $2)`
	deleteEnded   = `
		DELETE FROM screening_entries WHERE list_id = $1 AND to_load <= $2
			AND id IN (SELECT id FROM screening_entries WHERE list_id = $1 AND to_load <= $2 LIMIT $3)`
	deleteFailed = `
		DELETE FROM screening_entries WHERE list_id = $1 AND from_load > $2 AND from_load < $3
			AND id IN (SELECT id FROM screening_entries WHERE list_id = $1 AND from_load > $2 AND from_load < $3 LIMIT $4)`
	restoreEntries = `
		UPDATE screening_entries SET to_load = NULL WHERE list_id = $1 AND to_load > $2 AND to_load < $3
			AND id IN (SELECT id FROM screening_entries WHERE list_id = $1 AND to_load > $2 AND to_load < $3 LIMIT $4)`

	selectOrphans = `
		SELECT DISTINCT list_id FROM screening_entries
		WHERE NOT EXISTS (SELECT 1 FROM screening_loads l WHERE l.list_id = screening_entries.list_id)`
)

// sweep removes the entries of a list that are not in force and that no load will put in force, and restores those that a failed load has
// ended.
func (s *Service) sweep(ctx context.Context, listID string) error {
	var newest, current int64
	err := s.db.QueryRow(ctx, selectProgress, listID).Scan(&newest, &current)
	if errors.Is(err, store.ErrNotFound) {
		return s.repeat(ctx, deleteDropped, listID, batch)
	}
	if err != nil {
		return err
	}
	if err := s.repeat(ctx, deleteEnded, listID, current, batch); err != nil {
		return err
	}
	if err := s.repeat(ctx, deleteFailed, listID, current, newest, batch); err != nil {
		return err
	}
	return s.repeat(ctx, restoreEntries, listID, current, newest, batch)
}

// repeat runs a statement that changes a bounded number of rows until it changes none.
func (s *Service) repeat(ctx context.Context, statement string, args ...any) error {
	for more := true; more; {
		err := s.inTx(ctx, func(tx *store.Tx) error {
			n, err := tx.Exec(ctx, statement, args...)
			more = n > 0
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// tidy sweeps a list in the background. If the process ends meanwhile, the next load of the list sweeps the rest.
func (s *Service) tidy(listID string) {
	s.background(func() {
		if err := s.sweep(s.life, listID); err != nil && s.life.Err() == nil {
			s.Log.Warn("former entries of a list remain until it is loaded again", "list", listID, "cause", err)
		}
	})
}

// Sweep removes what dropped lists have left, and escalates the hits that have lost their last reviewer.
func (s *Service) Sweep(ctx context.Context) error {
	if err := s.escalateAll(ctx); err != nil {
		return err
	}
	orphans, err := store.All(ctx, s.db, store.Text, selectOrphans)
	if err != nil {
		return err
	}
	for _, id := range orphans {
		if err := s.sweep(ctx, id); err != nil {
			return err
		}
	}
	return nil
}
