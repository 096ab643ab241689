package storetest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"kontor/store/engine"
	"kontor/store/postgres"
	"kontor/store/sqlite"
)

// recording receives the statements of the databases that are opened; nil: nothing does.
var recording atomic.Pointer[Statements]

// Statements are the texts of the statements that were run.
type Statements struct {
	mu    sync.Mutex
	texts map[string]bool
}

// RecordStatements records the statements of all databases that this package opens until the end of the test. Totals are counted
// as on an engine that does not follow touched rows.
func RecordStatements(t testing.TB) *Statements {
	s := &Statements{texts: map[string]bool{}}
	recording.Store(s)
	t.Cleanup(func() { recording.Store(nil) })
	return s
}

// Sorted returns the texts, each once.
func (s *Statements) Sorted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.texts))
}

// open opens an engine whose callers are recorded. Its own statements are not.
func (s *Statements) open(ctx context.Context, c engine.Config) (engine.Engine, engine.Report, error) {
	open := sqlite.Open
	if c.URL != "" {
		open = postgres.Open
	}
	e, report, err := open(ctx, c)
	if err != nil {
		return nil, report, err
	}
	return &recorded{e, s}, report, nil
}

func (s *Statements) prepare(ctx context.Context, from engine.Source, sql string) (engine.Statement, error) {
	s.mu.Lock()
	s.texts[sql] = true
	s.mu.Unlock()
	return from.Prepare(ctx, sql)
}

type recorded struct {
	engine.Engine
	to *Statements
}

// Prepare records a statement.
func (r *recorded) Prepare(ctx context.Context, sql string) (engine.Statement, error) {
	return r.to.prepare(ctx, r.Engine, sql)
}

// View records the statements of a view.
func (r *recorded) View(ctx context.Context, fn func(engine.Source) error) error {
	return r.Engine.View(ctx, func(from engine.Source) error { return fn(recordedView{from, r.to}) })
}

// Write records the statements of a job.
func (r *recorded) Write(ctx context.Context, job func(engine.Tx) error) error {
	return r.Engine.Write(ctx, func(tx engine.Tx) error { return job(recordedTx{tx, r.to}) })
}

type recordedView struct {
	engine.Source
	to *Statements
}

func (r recordedView) Prepare(ctx context.Context, sql string) (engine.Statement, error) {
	return r.to.prepare(ctx, r.Source, sql)
}

type recordedTx struct {
	engine.Tx
	to *Statements
}

func (r recordedTx) Prepare(ctx context.Context, sql string) (engine.Statement, error) {
	return r.to.prepare(ctx, r.Tx, sql)
}
