package servertest

import (
	"sync/atomic"
	"testing"

	"kontor/modules/app"
	"kontor/store"
	"kontor/store/storetest"
)

// StartSandbox is Start for a sandbox, whose clock is ahead of Clock. It is always on SQLite.
func StartSandbox(t testing.TB, public bool, options ...Option) *Server {
	t.Helper()
	below := storetest.NewClock()
	sandbox := &app.Sandbox{Clock: &store.ShiftedClock{Below: below}, Public: public}
	db := storetest.OpenAgain(t, store.Options{Dir: storetest.Dir(t), Clock: sandbox.Clock})
	return startOn(t, db, below, new(atomic.Int64), options, sandbox)
}
