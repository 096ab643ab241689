package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"kontor/store/engine"
	"kontor/store/query"
)

const (
	// rightsPause is the time between two checks of the rights. Anybody may ask for readiness, and a check is a transaction of the writer.
	rightsPause = time.Second
	// rightsWait bounds a check, which waits for the writer. A writer that hangs is found by its progress.
	rightsWait = time.Second

	// selectRights returns whether the session is read-only, and the tables of the database that the role may not read or write. It returns no
	// row when search_path does not lead to the tables.
	selectRights = `
		SELECT current_setting('transaction_read_only') = 'on',
			COALESCE((
				SELECT string_agg(c.relname, ', ' ORDER BY c.relname)
				FROM pg_class c
				WHERE c.relnamespace = known.relnamespace AND c.relowner = known.relowner AND c.relkind = 'r'
					AND NOT (has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
						AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'))), '')
		FROM pg_class known WHERE known.oid = to_regclass('kontor_schema')`
)

// rights is the last check of whether the writer may write, although nothing has failed.
type rights struct {
	mu  sync.Mutex
	at  time.Time
	err error
}

// Ready reports whether the database can read and write, and whether writes make progress.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.writer.Ready(ctx, e); err != nil {
		return err
	}
	r := &e.rights
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) >= rightsPause {
		r.err = e.checkRights(ctx)
		r.at = time.Now()
	}
	return r.err
}

// checkRights begins a transaction as writes do, and finds out whether it could write.
func (e *Engine) checkRights(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, rightsWait)
	defer cancel()
	err := e.Write(ctx, func(tx engine.Tx) error {
		var readOnly bool
		var denied string
		err := query.NewRow(ctx, tx, selectRights, nil).Scan(&readOnly, &denied)
		switch {
		case errors.Is(err, engine.ErrNotFound):
			return errNoSchema
		case err != nil:
			return err
		case readOnly:
			return errReadOnly
		case denied != "":
			return &unusable{"the role may not read and write all of its tables: " + denied}
		}
		return nil
	})
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, engine.ErrBusy) && !errors.Is(err, errUnreachable) {
		return nil // other jobs write
	}
	return err
}
