package store

// Heavy reports that the calling goroutine begins work that belongs before the transaction: rendering, encoding, encryption,
// signatures. It does nothing unless a test watches, see [DB.WatchWriter].
func (db *DB) Heavy(work string) {
	if watch := db.watch.Load(); watch != nil && db.engine.InJob() {
		(*watch)(work)
	}
}

// WatchWriter makes Heavy call f, on the writer's goroutine, when a function of InTx does heavy work while all other writes
// wait. It is for the test that keeps such work out of transactions.
func (db *DB) WatchWriter(f func(work string)) { db.watch.Store(&f) }
