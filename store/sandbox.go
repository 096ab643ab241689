package store

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"kontor/store/engine"
	"kontor/store/query"
)

// metaAhead is the row of the table meta that says by how many milliseconds the clock of a sandbox is ahead.
const metaAhead = "sandbox_ahead_ms"

// Ahead returns by how much the clock was ahead that the database was written with. It is zero for a database that was never a
// sandbox, or whose clock was never moved. Processes that write must use a clock that is as far ahead: otherwise its records are of
// the future.
func (db *DB) Ahead(ctx context.Context) (time.Duration, error) {
	ms, err := metaNumber(ctx, db, metaAhead)
	if err != nil {
		return 0, fmt.Errorf("read how far the clock is ahead: %w", err)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// metaNumber returns the number in a row of the table meta, 0 without the row.
func metaNumber(ctx context.Context, q Querier, name string) (int64, error) {
	text, known, err := query.Meta(ctx, q, name)
	if err != nil || !known {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
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
		if run, err = metaNumber(ctx, tx, metaRuns); err != nil {
			return err
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
