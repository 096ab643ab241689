package qrbill_test

import (
	"testing"

	"kontor/modules/bank/invoices/qrbill"
)

// The engine is compiled ahead of the first PDF, once: later starts find it in the cache, and start no process.
func TestPrepare_CompilesTheEngineOnce(t *testing.T) {
	cache := qrbill.Config{CacheDir: t.TempDir()} // empty at first
	for i, started := range []bool{true, false} {
		r := newReader(t, cache)
		if err := r.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r.EngineStarted() != started {
			t.Errorf("start %d: the engine was started: %v", i, r.EngineStarted())
		}
	}
	closed := newReader(t, cache)
	closed.Close(t.Context())
	if err := closed.Prepare(t.Context()); err != nil {
		t.Errorf("a reader that need not prepare anything: %v", err)
	}
}
