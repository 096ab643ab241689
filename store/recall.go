package store

import (
	"sync/atomic"

	"kontor/store/audittrail"
)

// Recall returns a number that changes when a value that a transaction keeps in memory for the next one must be read again:
// the transaction of a group was undone, or another process may have written since. On SQLite, where one process writes, the
// number changes after the first. On a database that several processes share, it also changes with each group. A transaction
// that is undone alone does not change it.
func (tx *Tx) Recall() uint64 { return tx.db.recall.Load() }

// groupGuard counts how often the engine tells the guard to forget.
type groupGuard struct {
	*audittrail.Guard
	forgotten *atomic.Uint64
}

// Forget makes the ledger read the table again, and ends the current number of [Tx.Recall].
func (g groupGuard) Forget() {
	g.forgotten.Add(1)
	g.Guard.Forget()
}
