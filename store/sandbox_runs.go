package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"kontor/store/engine"
)

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
