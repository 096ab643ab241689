package store

// Heavy notes that work is about to be done that belongs before the transaction: rendering, encoding, encryption,
// signatures. It costs nothing unless a test watches, see [DB.WatchWriter].
func (db *DB) Heavy(work string) {
	if watch := db.watch.Load(); watch != nil && db.writer.goroutine.isHere() {
		(*watch)(work)
	}
}

// WatchWriter calls f, on the writer's goroutine, with each piece of heavy work that a closure of InTx does while all
// others wait. It is for the test that keeps such work out of closures.
func (db *DB) WatchWriter(f func(work string)) { db.watch.Store(&f) }
