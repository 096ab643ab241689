package sqlite_test

import (
	"context"
	"errors"
	"testing"

	"kontor/store"
	"kontor/store/sqlite"
	"kontor/store/storetest"
)

// A view whose context ends leaves its reader outside a transaction. SQLite checks the context only every few thousand
// steps, so it takes many views until a rollback is the step that checks.
func TestView_CancelledLeavesItsReaderUsable(t *testing.T) {
	db := open(t)
	for range 8000 {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.View(ctx, func(v *store.View) error {
			err := v.QueryRow(ctx, "SELECT count(*) FROM roles").Scan(new(int))
			cancel()
			return err
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		cancel()
	}
	allReadersSeeWrites(t, db, "after the cancelled views")
}

// The same holds for a query that is interrupted in a view, and for rows that were never closed.
func TestView_EndedInAQueryLeavesItsReaderUsable(t *testing.T) {
	db := open(t)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.View(ctx, func(v *store.View) error {
			rows, err := v.Query(ctx, endless)
			if err != nil {
				return err
			}
			cancel()
			for rows.Next() { // never closed
			}
			return rows.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
	}
	allReadersSeeWrites(t, db, "after the cancelled queries")
}

// A reader that cannot leave its transaction is replaced.
func TestView_ReaderThatKeepsItsTransactionIsReplaced(t *testing.T) {
	db := open(t)
	engineOf(db).OnRollback(func() error { return errors.New("rollback failed") })
	for range 2 * sqlite.Readers {
		err := db.View(t.Context(), func(v *store.View) error {
			return v.QueryRow(t.Context(), "SELECT count(*) FROM roles").Scan(new(int))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	allReadersSeeWrites(t, db, "after the failed rollbacks")
}

// endless returns rows without an end.
const endless = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n`

// allReadersSeeWrites writes a row and reads it with each reader at the same time.
func allReadersSeeWrites(t *testing.T, db *store.DB, when string) {
	t.Helper()
	if err := db.InTx(t.Context(), func(tx *store.Tx) error { return storetest.InsertRole(t.Context(), tx, when) }); err != nil {
		t.Fatal(err)
	}
	for i := range sqlite.Readers {
		rows, err := db.Query(t.Context(), "SELECT name FROM roles WHERE name = $1 UNION ALL SELECT 'more'", when)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var name string
		if !rows.Next() {
			t.Fatal(rows.Err())
		}
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if name != when {
			t.Errorf("%s, reader %d does not see a new row", when, i)
		}
	}
}
