package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	_ "modernc.org/sqlite" // changes databases without the store

	"kontor/store"
	"kontor/store/inspect"
	"kontor/store/postgres/postgrestest"
)

// Tables returns the names of the tables of an open database, without those of the engine and of its migrations.
func Tables(t testing.TB, db *store.DB) []string {
	t.Helper()
	if OptionsOf(t, db).URL != "" {
		return texts(t, db, `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()
			AND tablename NOT LIKE 'goose%' AND tablename NOT LIKE 'kontor%' ORDER BY tablename`)
	}
	return texts(t, db, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'goose%'
		AND name NOT LIKE 'kontor%' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name`)
}

// Column is a column of a table. Type is text, bigint, integer, boolean or bytea.
type Column struct {
	Name, Type string
	Null       bool // it may be NULL
}

// Columns returns the columns of a table.
func Columns(t testing.TB, db *store.DB, table string) (all []Column) {
	t.Helper()
	statement := `SELECT name || ' ' || lower(type) || ' ' || (CASE WHEN "notnull" = 0 AND pk = 0 THEN 'null' ELSE '' END) FROM pragma_table_info($1)`
	if OptionsOf(t, db).URL != "" {
		statement = `SELECT column_name::text || ' ' || data_type::text || ' ' || (CASE WHEN is_nullable = 'YES' THEN 'null' ELSE '' END)
			FROM information_schema.columns WHERE table_schema = current_schema() AND table_name = $1`
	}
	for _, text := range texts(t, db, statement, table) {
		words := strings.Split(text, " ")
		all = append(all, Column{words[0], words[1], words[2] != ""})
	}
	return all
}

// TextColumns returns the names of the columns of a table that hold text.
func TextColumns(t testing.TB, db *store.DB, table string) (names []string) {
	t.Helper()
	for _, c := range Columns(t, db, table) {
		if c.Type == "text" {
			names = append(names, c.Name)
		}
	}
	return names
}

func texts(t testing.TB, db *store.DB, statement string, args ...any) (all []string) {
	t.Helper()
	rows, err := db.Query(t.Context(), statement, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Contents returns everything that a database holds: the files of the data directory by their names, or the rows on PostgreSQL
// by their tables. It does not read the files of PostgreSQL.
func Contents(t testing.TB, db *store.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	if OptionsOf(t, db).URL != "" {
		for _, table := range Tables(t, db) {
			all[table] = strings.Join(texts(t, db, `SELECT row::text FROM `+table+` AS row`), "\n")
		}
		return all
	}
	err := filepath.WalkDir(db.Dir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all[d.Name()] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Rotation returns what replaces the master key of an open database: nothing where the database makes the key itself, and else
// a new key and the present one. Calls are made one after another.
func Rotation(t testing.TB, db *store.DB) store.Rotation {
	t.Helper()
	o := OptionsOf(t, db)
	if o.SecretKey == "" {
		return store.Rotation{}
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	r := store.Rotation{SecretKey: hex.EncodeToString(key), PreviousKey: o.SecretKey}
	o.SecretKey = r.SecretKey
	opened.Store(db, o)
	return r
}

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

// Tamper runs a statement on a database file that no process uses, without the store, and updates the checksums of the
// pages, as a careful attacker would.
func Tamper(tb testing.TB, path, statement string) {
	tb.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		tb.Fatal(err)
	}
	_, err = db.Exec(statement)
	if err := errors.Join(err, db.Close()); err != nil {
		tb.Fatal(err)
	}
	reseal(tb, path)
}

// reseal updates the checksums of all pages, as docs/security.md describes them.
func reseal(tb testing.TB, path string) {
	tb.Helper()
	const pageSize, reserved = 4096, 20 // the byte of the header with the number of reserved bytes
	data, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	if len(data) < pageSize || data[reserved] != 8 {
		return
	}
	for at := 0; at < len(data); at += pageSize {
		page := data[at : at+pageSize]
		sum := xxhash.Sum64(page[:pageSize-8]) ^ uint64(at/pageSize+1)*0x9e3779b97f4a7c15
		binary.LittleEndian.PutUint64(page[pageSize-8:], sum)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
}
