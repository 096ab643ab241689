package storetest

import (
	"context"
	"fmt"
	"testing"

	"kontor/store"
)

const insertRole = `
	INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by)
	VALUES ($1, $2, $2, $3, $4, $3, $4)`

// InsertRole inserts a role, for tests that need a row with a unique name.
func InsertRole(ctx context.Context, tx *store.Tx, name string) error {
	_, err := tx.Exec(ctx, insertRole, store.NewID(), name, tx.Now(), store.NilID)
	return err
}

// CountRoles returns the number of roles.
func CountRoles(t testing.TB, db *store.DB) int {
	t.Helper()
	var n int
	if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM roles`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// Audit appends n audit entries, each in a transaction of its own.
func Audit(t testing.TB, db *store.DB, n int) {
	t.Helper()
	ctx := t.Context()
	for i := range n {
		err := db.InTx(ctx, func(tx *store.Tx) error {
			tx.Audit(store.AuditEntry{
				Actor: store.NilID, Action: fmt.Sprintf("marked.%04d", i+1), RecType: "roles", RecID: store.NewID(),
				Before: map[string]int{"n": i}, After: map[string]int{"n": i + 1},
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// OpenDir opens the database of a directory. It is closed at the end of the test, unless the test has closed it.
func OpenDir(t testing.TB, dir string) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
