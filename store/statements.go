package store

import (
	"context"
	"slices"

	"kontor/store/internal/sqlite"
)

// housekeeping is what the store says to the engine by itself; another engine has its own words for it.
var housekeeping = []string{beginWrite, beginRead, commit, rollback, savepoint, release, rollbackTo,
	selectTables, selectVersion, pragmaCheck}

// Statements lists what the connections have compiled for their callers and still keep, each text once and in order. It
// waits until every reader was free, so that nobody may hold one who waits for the list.
func (db *DB) Statements(ctx context.Context) ([]string, error) {
	var texts []string
	note := func(c *sqlite.Conn) {
		for _, text := range c.Texts() {
			if !slices.Contains(housekeeping, text) {
				texts = append(texts, text)
			}
		}
	}
	if err := db.InTx(ctx, func(tx *Tx) error { note(tx.conn); return nil }); err != nil {
		return nil, err
	}
	for range readers {
		r, err := db.pool.take(ctx)
		if err != nil {
			return nil, err
		}
		defer r.release()
		note(r.conn)
	}
	slices.Sort(texts)
	return slices.Compact(texts), nil
}
