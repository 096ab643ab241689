package sqlite

import (
	"context"
	"errors"
	"fmt"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

const (
	// metaCleaned is the row of the table meta that says that no page is left from before the file layer cleared unused bytes.
	metaCleaned = "pages_cleaned"
	// cleanBatch is how many pages one job writes again.
	cleanBatch = 100
	// cleanWait is how long an attempt to truncate the log waits for readers and for the writer, in milliseconds.
	cleanWait = 50
)

// rewritePage writes a page with its present content. Its copy into the database file loses the unused bytes.
const rewritePage = `UPDATE sqlite_dbpage SET data = data WHERE pgno = $1`

// Clean returns when no file of the database holds anything that was deleted before the call. The first call rewrites the pages
// that earlier versions have written.
func (e *Engine) Clean(ctx context.Context) error {
	if err := e.CleanOldPages(ctx); err != nil {
		return err
	}
	return e.writer.checkpoints.clean(ctx)
}

// CleanOldPages rewrites the pages with unused bytes that earlier versions did not clear, once for each database.
func (e *Engine) CleanOldPages(ctx context.Context) error {
	var done string
	err := query.NewRow(ctx, e, engine.SelectMeta, []any{metaCleaned}).Scan(&done)
	if err == nil || !errors.Is(err, engine.ErrNotFound) {
		return err
	}
	conn, err := connect(e.dir.File(datadir.Database), binding.ReadOnly, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Run("SELECT 1 FROM meta"); err != nil { // the file layer reads the first page
		return translate(err)
	}
	for from := int64(1); from != 0; {
		var pages []int64
		if pages, from, err = conn.UnscrubbedPages(ctx, from, cleanBatch); err != nil {
			return fmt.Errorf("find pages to clean: %w", translate(err))
		}
		if err := e.rewrite(ctx, pages); err != nil {
			return fmt.Errorf("clean pages: %w", err)
		}
	}
	return e.Write(ctx, func(tx engine.Tx) error {
		_, err := query.Exec(ctx, tx, engine.UpsertMeta, []any{metaCleaned, "1"})
		return err
	})
}

func (e *Engine) rewrite(ctx context.Context, pages []int64) error {
	if len(pages) == 0 {
		return nil
	}
	return e.Write(ctx, func(tx engine.Tx) error {
		for _, page := range pages {
			if _, err := query.Exec(ctx, tx, rewritePage, []any{page}); err != nil {
				return err
			}
		}
		return nil
	})
}

// clean waits until the log was copied and truncated once since the call.
func (c *checkpointer) clean(ctx context.Context) error {
	if err := c.disk.err(); err != nil {
		return err
	}
	done := make(chan struct{})
	select {
	case c.requests <- done:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return engine.ErrClosed
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.ended:
		return engine.ErrClosed
	}
}

// serveRequests copies and truncates the log for the callers of clean. While a reader uses the log it returns false, and is
// tried again.
func (c *checkpointer) serveRequests() bool {
	if len(c.waiting) == 0 {
		return true
	}
	c.copy(c.conn)
	if !c.truncate(cleanWait) {
		return false
	}
	c.syncMark()
	for _, done := range c.waiting {
		close(done)
	}
	c.waiting = nil
	return true
}
