package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"kontor/store/engine"
)

// metaAhead is the row of the table meta that says by how many milliseconds the clock of a sandbox is ahead.
const metaAhead = "sandbox_ahead_ms"

// Ahead returns by how much the clock was ahead that the database was written with. It is zero for a database that was never a
// sandbox, or whose clock was never moved. Processes that write must use a clock that is as far ahead: otherwise its records are of
// the future.
func (db *DB) Ahead(ctx context.Context) (time.Duration, error) {
	var text string
	err := db.QueryRow(ctx, engine.SelectMeta, metaAhead).Scan(&text)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read how far the clock is ahead: %w", err)
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read how far the clock is ahead: %w", err)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// KeepAhead stores by how much the clock is ahead, before it is.
func (db *DB) KeepAhead(ctx context.Context, d time.Duration) error {
	return db.InTx(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, engine.UpsertMeta, metaAhead, strconv.FormatInt(d.Milliseconds(), 10))
		return err
	})
}

// metaRuns is the row of the table meta with the number of files and scenarios that a sandbox has played.
const metaRuns = "sandbox_runs"

// CountRun returns the number of a new run of a sandbox: 1 for the first one in this database.
func (db *DB) CountRun(ctx context.Context) (run int64, err error) {
	err = db.InTx(ctx, func(tx *Tx) error {
		var text string
		err := tx.QueryRow(ctx, engine.SelectMeta, metaRuns).Scan(&text)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if run = 0; err == nil {
			if run, err = strconv.ParseInt(text, 10, 64); err != nil {
				return err
			}
		}
		run++
		_, err = tx.Exec(ctx, engine.UpsertMeta, metaRuns, strconv.FormatInt(run, 10))
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count a run of the sandbox: %w", err)
	}
	return run, nil
}
