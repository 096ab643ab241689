package store

// WaitRecounted waits until the totals of a process that did not stop in order are counted again.
func WaitRecounted(db *DB) { db.recounting.Wait() }
