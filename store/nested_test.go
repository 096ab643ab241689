package store_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

// A call of the database within a transaction or an after-commit function would wait for itself. It fails at once, whatever
// context it passes, and later calls are served.
func TestInTx_RejectsNestedCalls(t *testing.T) {
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
			_, err := db.Replay(ctx, store.Idempotency{Key: "k1", Caller: "user", Path: "POST /v1/roles"})
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

func TestAfterCommit_RejectsWritesAndAllowsReads(t *testing.T) {
	db := storetest.Open(t)
	var written, read error
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		tx.AfterCommit(func() {
			// A nested write with an after-commit function of its own would never be answered.
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

// The recorded goroutine stays correct when another one takes over the queue.
func TestInTx_RejectsNestedCallsAfterTheWriterWasReplaced(t *testing.T) {
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
