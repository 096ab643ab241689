package store

import (
	"fmt"
	"sync/atomic"

	"github.com/petermattis/goid"
)

// worker names the goroutine that runs functions of callers: closures, or what follows their commit. A function there
// that called InTx would wait for its own goroutine, whatever context it passed, so that only the goroutine tells.
//
// A goroutine that a closure starts and waits for is not recognised. It stalls the writer, which Ready reports.
type worker struct{ id atomic.Int64 }

// here makes the current goroutine the worker's. Zero is the id of no goroutine.
func (w *worker) here() { w.id.Store(goid.Get()) }

func (w *worker) isHere() bool { return w.id.Load() == goid.Get() }

// notNested rejects a write from within a closure of InTx or a function of AfterCommit.
func (w *writer) notNested() error {
	switch {
	case w.goroutine.isHere():
		return fmt.Errorf("%w: a closure of InTx called InTx", ErrNested)
	case w.hooks.goroutine.isHere():
		return fmt.Errorf("%w: a function of AfterCommit called InTx", ErrNested)
	}
	return nil
}

// notInClosure rejects a reader for a closure of InTx: it would read the state before its own transaction, and with all
// readers taken by callers that wait for the writer it would keep the writer waiting.
func (w *writer) notInClosure() error {
	if w.goroutine.isHere() {
		return fmt.Errorf("%w: a closure of InTx read without its transaction", ErrNested)
	}
	return nil
}
