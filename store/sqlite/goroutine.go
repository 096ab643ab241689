package sqlite

import (
	"fmt"
	"sync/atomic"

	"github.com/petermattis/goid"

	"kontor/store/engine"
)

// goroutine identifies the goroutine that runs functions of callers: jobs, or after-commit functions. Such a function that
// called Write would wait for its own goroutine, whatever context it passed. So the goroutine is compared, not the context.
//
// A goroutine that a job starts and waits for is not recognised. It stalls the writer, which Ready reports.
type goroutine struct{ id atomic.Int64 }

// setCurrent records the current goroutine.
func (g *goroutine) setCurrent() { g.id.Store(goid.Get()) }

// isCurrent reports whether the current goroutine is the recorded one. No goroutine has the id 0.
func (g *goroutine) isCurrent() bool { return g.id.Load() == goid.Get() }

// rejectNestedWrite returns ErrNested within a job and within an after-commit function.
func (w *writer) rejectNestedWrite() error {
	switch {
	case w.goroutine.isCurrent():
		return fmt.Errorf("%w: a function of InTx called InTx", engine.ErrNested)
	case w.hooks.goroutine.isCurrent():
		return fmt.Errorf("%w: a function of AfterCommit called InTx", engine.ErrNested)
	}
	return nil
}

// rejectNestedRead returns ErrNested within a job. The job would read the state before its own transaction, and while all
// readers are held by callers that wait for the writer, it would block the writer.
func (w *writer) rejectNestedRead() error {
	if w.goroutine.isCurrent() {
		return fmt.Errorf("%w: a function of InTx read without its transaction", engine.ErrNested)
	}
	return nil
}
