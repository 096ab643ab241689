package store_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// A call of the database from within a transaction, or from within a function that runs after a commit, would wait for
// itself. It fails at once, whatever context it passes, and all that comes later is served.
func TestInTx_RejectsCallsFromWithinItself(t *testing.T) {
	db := storetest.Open(t)
	type key struct{}
	outer := t.Context()
	derived := context.WithValue(outer, key{}, 1)
	nothing := func(*store.Tx) error { return nil }
	another := func(ctx context.Context) error { return db.InTx(ctx, nothing) } // as another module does
	calls := map[string]func(ctx context.Context) error{
		"InTx":                   func(ctx context.Context) error { return db.InTx(ctx, nothing) },
		"InTx of another module": func(ctx context.Context) error { return another(ctx) },
		"a replay": func(ctx context.Context) error {
			_, err := db.Replay(ctx, claimed)
			return err
		},
		"View": func(ctx context.Context) error { return db.View(ctx, func(*store.View) error { return nil }) },
		"Query": func(ctx context.Context) error {
			_, err := db.Query(ctx, "SELECT 1")
			return err
		},
		"QueryRow": func(ctx context.Context) error { return db.QueryRow(ctx, "SELECT 1").Scan(new(int)) },
		"Memo": func(ctx context.Context) error {
			_, err := db.Memo(ctx, "key", nil, func() (n int64, err error) {
				return n, db.QueryRow(ctx, "SELECT 1").Scan(&n)
			})
			return err
		},
	}
	contexts := map[string]context.Context{"the same": outer, "a derived": derived, "another": context.Background()}
	for call, run := range calls {
		for which, ctx := range contexts {
			t.Run(call+" with "+which+" context", func(t *testing.T) {
				var nested error
				err := db.InTx(outer, func(tx *store.Tx) error {
					nested = run(ctx)
					return storetest.InsertRole(outer, tx, call+which)
				})
				if !errors.Is(nested, store.ErrNested) || store.Temporary(nested) {
					t.Errorf("got %v, want ErrNested", nested)
				}
				if err != nil {
					t.Errorf("the transaction around it: %v", err)
				}
			})
		}
	}
	if n := storetest.CountRoles(t, db); n != len(calls)*len(contexts) {
		t.Errorf("%d rows, want %d", n, len(calls)*len(contexts))
	}
}

func TestAfterCommit_RejectsWritesAndLetsRead(t *testing.T) {
	db := storetest.Open(t)
	var written, read error
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.AfterCommit(func() {
			// The closure of a write that leaves a function of its own is what would never be answered.
			written = db.InTx(context.Background(), func(tx *store.Tx) error {
				tx.AfterCommit(func() {})
				return nil
			})
			read = db.QueryRow(context.Background(), "SELECT 1").Scan(new(int))
		})
		return storetest.InsertRole(t.Context(), tx, "a")
	})
	if err != nil || read != nil {
		t.Errorf("the write: %v, the read after it: %v", err, read)
	}
	if !errors.Is(written, store.ErrNested) {
		t.Errorf("the write after the commit got %v, want ErrNested", written)
	}
	if err := db.InTx(t.Context(), func(tx *store.Tx) error { return storetest.InsertRole(t.Context(), tx, "b") }); err != nil {
		t.Errorf("a later write: %v", err)
	}
}

// The mark stays right when another goroutine takes over the queue.
func TestInTx_RejectsCallsFromWithinItselfAfterTheWriterWasReplaced(t *testing.T) {
	db := storetest.Open(t)
	_ = db.InTx(t.Context(), func(*store.Tx) error { runtime.Goexit(); return nil })
	var nested error
	err := db.InTx(t.Context(), func(*store.Tx) error {
		nested = db.InTx(context.Background(), func(*store.Tx) error { return nil })
		return nil
	})
	if err != nil || !errors.Is(nested, store.ErrNested) {
		t.Errorf("got %v, want ErrNested; around it: %v", nested, err)
	}
}
