package store_test

import (
	"context"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/storetest"
)

var recordStatement = `SELECT ` + store.RecordAccess("r", 2) + ` FROM roles r WHERE r.id = $1`

// grant gives a principal the permission to read one role.
func grant(ctx context.Context, tx *store.Tx, kind, principal, recID string) error {
	_, err := tx.Exec(ctx, `INSERT INTO grants (id, principal_kind, principal_id, rec_type, permission, rec_id, created_at, created_by)
		VALUES ($1, $2, $3, 'roles', 'read', $4, $5, $6)`, store.NewID(), kind, principal, recID, tx.Now(), store.NilID)
	return err
}

// The table roles stands for any table of records here.
func TestScope_OwnerAndGrants(t *testing.T) {
	db := storetest.Open(t)
	ctx := t.Context()
	owner, friend, member, stranger := store.NewID(), store.NewID(), store.NewID(), store.NewID()
	record, role := store.NewID(), store.NewID()
	err := db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := tx.Exec(ctx, insertRole, record, "record", tx.Now(), owner); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, insertRole, role, "role", tx.Now(), store.NilID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO user_roles (user_id, role_id, created_at, created_by) VALUES ($1, $2, $3, $4)`,
			member, role, tx.Now(), store.NilID); err != nil {
			return err
		}
		if err := grant(ctx, tx, "user", friend, record); err != nil {
			return err
		}
		return grant(ctx, tx, "role", role, record)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		scope      store.Scope
		permission string
		want       bool
	}{
		{"owner", store.Scope{UserID: owner}, "update", true},
		{"user with a grant", store.Scope{UserID: friend}, "read", true},
		{"grant of another permission", store.Scope{UserID: friend}, "update", false},
		{"user of a role with a grant", store.Scope{UserID: member}, "read", true},
		{"stranger", store.Scope{UserID: stranger}, "read", false},
		{"nobody", store.Scope{}, "read", false},
		{"all", store.Scope{UserID: stranger, All: true}, "update", true},
	} {
		var got bool
		args := append([]any{record}, c.scope.Args("roles", c.permission)...)
		if err := db.QueryRow(ctx, recordStatement, args...).Scan(&got); err != nil || got != c.want {
			t.Errorf("%s: record %v, err %v; want %v", c.name, got, err, c.want)
		}
		condition, more := c.scope.ListAccess("r", "roles", c.permission, 2)
		var n int
		err := db.QueryRow(ctx, `SELECT COUNT(*) FROM roles r WHERE r.id = $1 AND `+condition, append([]any{record}, more...)...).Scan(&n)
		if err != nil || n == 1 != c.want {
			t.Errorf("%s: list has %d, err %v; want %v", c.name, n, err, c.want)
		}
	}
}

// plan is what the engine means to do, one step a line.
func plan(t *testing.T, db *store.DB, sql string, args ...any) string {
	t.Helper()
	rows, err := db.Query(t.Context(), "EXPLAIN QUERY PLAN "+sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, detail)
	}
	return strings.Join(lines, "\n")
}

func TestScope_UsesIndexes(t *testing.T) {
	db := storetest.Open(t)
	scope := store.Scope{UserID: store.NewID()}
	record := plan(t, db, recordStatement, append([]any{store.NewID()}, scope.Args("roles", "read")...)...)
	for _, want := range []string{
		"SEARCH r USING INDEX sqlite_autoindex_roles_1 (id=?)",
		"SEARCH g USING COVERING INDEX sqlite_autoindex_grants_2 (rec_id=? AND rec_type=? AND permission=? AND principal_id=?)",
		"(user_id=?)",
	} {
		if !strings.Contains(record, want) {
			t.Errorf("the plan of the record statement lacks %q:\n%s", want, record)
		}
	}
	condition, args := scope.ListAccess("e", "grants", "read", 1)
	list := plan(t, db, `SELECT COUNT(*) FROM grants e WHERE `+condition, args...)
	if want := "SEARCH g USING COVERING INDEX grants_principal_id_idx (principal_id=? AND rec_type=? AND permission=?)"; !strings.Contains(list, want) {
		t.Errorf("the plan of the list lacks %q:\n%s", want, list)
	}
	for _, p := range []string{record, list} {
		if strings.Contains(p, "SCAN g") || strings.Contains(p, "SCAN ur") {
			t.Errorf("a table of rights is read as a whole:\n%s", p)
		}
	}
}
