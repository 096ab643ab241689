package store_test

import (
	"errors"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

func TestInTx_StoresAndReads(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	for _, name := range []string{"a", "b"} {
		if err := db.InTx(ctx, func(tx *store.Tx) error { return storetest.InsertRole(ctx, tx, name) }); err != nil {
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

func TestInTx_DuplicateUndoesTheTransaction(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	err := db.InTx(ctx, func(tx *store.Tx) error {
		if err := storetest.InsertRole(ctx, tx, "a"); err != nil {
			return err
		}
		return storetest.InsertRole(ctx, tx, "a")
	})
	if !errors.Is(err, store.ErrDuplicate) {
		t.Errorf("got %v, want ErrDuplicate", err)
	}
	if n := storetest.CountRoles(t, db); n != 0 {
		t.Errorf("%d roles are left of a job that failed", n)
	}
}

func TestInTx_DistinguishesBrokenRules(t *testing.T) {
	o := storetest.Options(t)
	storetest.Change(t, o, `CREATE TABLE children (role_id TEXT REFERENCES roles (id) ON DELETE RESTRICT)`)
	db := storetest.OpenAgain(t, o)
	ctx := t.Context()
	role := store.NewID()
	exec := func(sql string, args ...any) error {
		return db.InTx(ctx, func(tx *store.Tx) error {
			_, err := tx.Exec(ctx, sql, args...)
			return err
		})
	}
	const insertMember = `INSERT INTO user_roles (user_id, role_id, created_at, created_by) VALUES ($1, $2, 0, '')`
	const deleteRole = `DELETE FROM roles WHERE id = $1`
	const insertRule = `INSERT INTO rate_limit_rules (endpoint, per_minute, modified_at, modified_by) VALUES ('e', $1, 0, '')`
	for _, c := range []struct {
		name string
		sql  string
		arg  any
		want error
	}{
		{"a role", `INSERT INTO roles (id, name, name_key, created_at, created_by, modified_at, modified_by) VALUES ($1, 'a', 'a', 0, '', 0, '')`, role, nil},
		{"points to nothing", `INSERT INTO children (role_id) VALUES ($1)`, "missing", store.ErrMissingReference},
		{"child", `INSERT INTO children (role_id) VALUES ($1)`, role, nil},
		{"restricted", deleteRole, role, store.ErrMissingReference},
		{"no child", `DELETE FROM children WHERE role_id = $1`, role, nil},
		{"member", `INSERT INTO user_roles (user_id, role_id, created_at, created_by) VALUES ('u', $1, 0, '')`, role, nil},
		{"still pointed to", deleteRole, role, store.ErrMissingReference},
		{"CHECK", insertRule, 0, store.ErrConflict},
		{"NOT NULL", insertRule, nil, store.ErrConflict},
	} {
		if err := exec(c.sql, c.arg); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
	}
	if err := exec(insertMember, "u", role); !errors.Is(err, store.ErrDuplicate) {
		t.Errorf("got %v, want ErrDuplicate", err)
	}
}

// The words of a database about a statement have no value of its parameters, whatever is in it.
func TestExplain_HasNoValues(t *testing.T) {
	db := openCounted(t)
	for _, value := range []string{"anna", "d'Arc", "''", "'x' OR 'y'"} {
		steps, err := db.Explain(t.Context(), `SELECT id FROM counted WHERE owner = $1 AND number > $2`, value, 738051)
		if err != nil || len(steps) == 0 {
			t.Fatalf("%s: %v, %v", value, steps, err)
		}
		for _, step := range steps {
			for _, part := range []string{"anna", "Arc", "'x'", "'y'", "738051"} {
				if strings.Contains(step, part) {
					t.Errorf("%q: the step %q has %s", value, step, part)
				}
			}
		}
	}
}
