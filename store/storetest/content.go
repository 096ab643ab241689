package storetest

import (
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/inspect"
	"kontor/store/postgres/postgrestest"
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
	return OpenAgain(t, store.Options{Dir: dir})
}

// Source returns where the commands that read a closed database find one.
func Source(o store.Options) inspect.Source {
	return inspect.Source{Dir: o.Dir, URL: o.URL, SecretKey: o.SecretKey, PreviousKey: o.PreviousKey}
}

// MasterKey returns the master key of a database.
func MasterKey(t testing.TB, o store.Options) []byte {
	t.Helper()
	text := o.SecretKey
	if text == "" {
		file, err := os.ReadFile(filepath.Join(o.Dir, "secret.key"))
		if err != nil {
			t.Fatal(err)
		}
		text = strings.TrimSpace(string(file))
	}
	key, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Change runs a statement on a database that no process uses, without the store and its protections. See [Tamper].
func Change(t testing.TB, o store.Options, statement string) {
	t.Helper()
	if o.URL == "" {
		Tamper(t, filepath.Join(o.Dir, "kontor.db"), statement)
		return
	}
	postgrestest.Run(t, o.URL, `SET session_replication_role = replica;
		ALTER TABLE audit_entries DISABLE TRIGGER USER; `+statement+`;
		ALTER TABLE audit_entries ENABLE ALWAYS TRIGGER audit_entries_append_only`)
}
