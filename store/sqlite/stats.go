package sqlite

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
	"kontor/store/sqlite/internal/binding"
)

// counters count the engine's work.
type counters struct {
	jobs, commits, checkpoints atomic.Uint64

	failing atomic.Pointer[error] // of the storage; nil after a commit that succeeded
	damaged atomic.Pointer[error] // set once and never cleared

	synced, checkpointed timing
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

// Stats returns the present counts.
func (e *Engine) Stats() engine.Stats {
	w := e.writer
	c := &w.counters
	working, _ := w.progress.Oldest()
	return engine.Stats{
		Writes:      c.jobs.Load(),
		Commits:     c.commits.Load(),
		Refused:     w.queue.Refused(),
		Checkpoints: c.checkpoints.Load(),
		Queued:      len(w.queue.Waiting),
		Readers:     e.pool.Waiting(),
		Revoked:     e.pool.Revocations(),
		Working:     working,
		Stalled:     working > jobs.StallAfter,

		LogBytes:     w.syncer.logBytes(),
		LogUncopied:  w.checkpoints.uncopied(),
		LogLimit:     w.checkpoints.limit,
		LogOverLimit: w.checkpoints.over.Load(),
		Sync:         c.synced.read(),
		Checkpoint:   c.checkpointed.read(),
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
	for _, permanent := range []*atomic.Pointer[error]{&e.writer.counters.damaged, &e.disk.failure} {
		if err := permanent.Load(); err != nil {
			return *err
		}
	}
	var one int
	if err := query.NewRow(ctx, e, "SELECT 1", nil).Scan(&one); err != nil {
		return err
	}
	if e.writer.counters.failing.Load() == nil {
		return nil
	}
	err := probe.Write(ctx, e)
	if errors.Is(err, engine.ErrBusy) {
		return nil // other jobs write
	}
	return err
}

// Statements returns the compiled statements of callers.
func (e *Engine) Statements(ctx context.Context) ([]string, error) {
	var texts []string
	collect := func(c *binding.Conn) {
		for _, text := range c.Texts() {
			if !slices.Contains(ownStatements, text) {
				texts = append(texts, text)
			}
		}
	}
	if err := e.Write(ctx, func(engine.Tx) error { collect(e.writer.conn); return nil }); err != nil {
		return nil, err
	}
	for range poolSize {
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

func appendMissing[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// Explain asks for the query plan, whose first columns are numbers.
func (e *Engine) Explain(sql string) (statement string, column int) {
	return "EXPLAIN QUERY PLAN " + sql, 3
}
