package postgres

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"kontor/store/engine"
	"kontor/store/internal/jobs"
	"kontor/store/internal/probe"
	"kontor/store/query"
)

// counters count the engine's work.
type counters struct {
	jobs, commits atomic.Uint64
	failing       atomic.Pointer[error] // of the storage; nil after a commit that succeeded
	synced        timing
}

// timing counts how often something was done, and how long it took.
type timing struct{ count, total, last atomic.Int64 }

func (t *timing) add(d time.Duration) {
	t.count.Add(1)
	t.total.Add(int64(d))
	t.last.Store(int64(d))
}

func (t *timing) read() engine.Timing {
	return engine.Timing{Count: t.count.Load(), Total: time.Duration(t.total.Load()), Last: time.Duration(t.last.Load())}
}

// Stats returns the present counts. The log and its checkpoints are the server's.
func (e *Engine) Stats() engine.Stats {
	w := e.writer
	working, _ := w.progress.Oldest()
	return engine.Stats{
		Writes:  w.counters.jobs.Load(),
		Commits: w.counters.commits.Load(),
		Refused: w.queue.Refused(),
		Queued:  len(w.queue.Waiting),
		Readers: e.pool.Waiting(),
		Revoked: e.pool.Revocations(),
		Working: working,
		Stalled: working > jobs.StallAfter,
		Sync:    w.counters.synced.read(),
	}
}

// readyWait is how long Ready waits for a read and for a write of its own. A probe that fails says more than one that does
// not return.
const readyWait = 3 * time.Second

// Ready reports whether the database can read and write, and whether writes make progress.
func (e *Engine) Ready(ctx context.Context) error {
	if err := e.writer.progress.Stalled(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readyWait)
	defer cancel()
	var one int
	if err := query.NewRow(ctx, e, "SELECT 1", nil).Scan(&one); err != nil {
		return err
	}
	if e.writer.counters.failing.Load() == nil {
		return nil
	}
	err := probe.Write(ctx, e)
	if errors.Is(err, engine.ErrBusy) && !errors.Is(err, errUnreachable) {
		return nil // other jobs write
	}
	return err
}

// Statements returns the prepared statements of callers.
func (e *Engine) Statements(ctx context.Context) ([]string, error) {
	var texts []string
	collect := func(c *conn) {
		for sql, entry := range c.statements {
			if entry.called {
				texts = append(texts, sql)
			}
		}
	}
	if err := e.Write(ctx, func(engine.Tx) error { collect(e.writer.conn); return nil }); err != nil {
		return nil, err
	}
	for range e.pool.Size() {
		r, err := e.pool.Take(ctx)
		if err != nil {
			return nil, err
		}
		defer r.release()
		collect(r.conn)
	}
	slices.Sort(texts)
	return slices.Compact(texts), nil
}

// Explain asks for the plan with its estimates.
func (e *Engine) Explain(sql string) (statement string, column int) { return "EXPLAIN " + sql, 0 }
