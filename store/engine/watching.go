package engine

import "context"

// A RowWatch receives the keys of the rows of a table that commits change or delete, for caches of single rows. New rows are left
// out: nothing can have been read of them.
//
// The functions are called one after another and must be quick. They must not use the database.
type RowWatch struct {
	Table string
	Key   string // the column that tells rows apart; a text
	// Begin is called before a commit that changes or deletes rows, with their keys as they were. Without keys, all rows may change.
	Begin func(keys []string)
	// End is called after that commit, whether it has succeeded or not, and before a caller learns of it. Between the two, readers may
	// see either state. The first call of End has no Begin: from then on no change is missed.
	End func()
}

// RowWatcher is implemented by engines whose only writer is this process.
type RowWatcher interface {
	// WatchRows registers a watch until the database is closed. It fails for a table whose changes cannot be followed.
	WatchRows(ctx context.Context, w RowWatch) error
}
