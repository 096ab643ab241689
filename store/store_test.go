package store_test

import (
	"context"
	"errors"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

const insertRole = `
	INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by)
	VALUES ($1, $2, $2, $3, $4, $3, $4)`

func newRole(ctx context.Context, tx *store.Tx, name string) error {
	_, err := tx.Exec(ctx, insertRole, store.NewID(), name, tx.Now(), store.NilID)
	return err
}

func countRoles(t testing.TB, db *store.DB) int {
	t.Helper()
	var n int
	if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM roles`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestInTx_StoresAndReads(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	for _, name := range []string{"a", "b"} {
		if err := db.InTx(ctx, func(tx *store.Tx) error { return newRole(ctx, tx, name) }); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := db.Query(ctx, `SELECT name, created_at, builtin FROM roles ORDER BY name`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var names string
	for rows.Next() {
		var name string
		var at store.Time
		var builtin bool
		if err := rows.Scan(&name, &at, &builtin); err != nil {
			t.Fatal(err)
		}
		names += name
	}
	if err := rows.Err(); err != nil || names != "ab" {
		t.Errorf("names %q, err %v", names, err)
	}
}

func TestInTx_DuplicateNamesTheConstraint(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	err := db.InTx(ctx, func(tx *store.Tx) error {
		if err := newRole(ctx, tx, "a"); err != nil {
			return err
		}
		return newRole(ctx, tx, "a")
	})
	if !errors.Is(err, store.ErrDuplicate) || store.Constraint(err) != "roles.name_key" {
		t.Errorf("err %v, constraint %q", err, store.Constraint(err))
	}
	if n := countRoles(t, db); n != 0 {
		t.Errorf("%d roles are left of a closure that failed", n)
	}
}
