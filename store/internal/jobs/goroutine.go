package jobs

import (
	"fmt"
	"sync/atomic"

	"github.com/petermattis/goid"

	"kontor/store/engine"
)

// Goroutine identifies the goroutine that runs functions of callers: jobs, or after-commit functions. Such a function that
// called Write would wait for its own goroutine, whatever context it passed. So the goroutine is compared, not the context.
//
// A goroutine that a job starts and waits for is not recognised. It stalls the writer, which Ready reports.
type Goroutine struct{ id atomic.Int64 }

// SetCurrent records the current goroutine.
func (g *Goroutine) SetCurrent() { g.id.Store(goid.Get()) }

// IsCurrent reports whether the current goroutine is the recorded one. No goroutine has the id 0.
func (g *Goroutine) IsCurrent() bool { return g.id.Load() == goid.Get() }

// RejectWrite returns ErrNested within a job of the writer and within an after-commit function.
func RejectWrite(writer *Goroutine, hooks *Hooks) error {
	switch {
	case writer.IsCurrent():
		return fmt.Errorf("%w: a function of InTx called InTx", engine.ErrNested)
	case hooks.goroutine.IsCurrent():
		return fmt.Errorf("%w: a function of AfterCommit called InTx", engine.ErrNested)
	}
	return nil
}

// RejectRead returns ErrNested within a job of the writer. The job would read the state before its own transaction, and while
// all readers are held by callers that wait for the writer, it would block the writer.
func RejectRead(writer *Goroutine) error {
	if writer.IsCurrent() {
		return fmt.Errorf("%w: a function of InTx read without its transaction", engine.ErrNested)
	}
	return nil
}
