package storetest

import (
	"crypto/rand"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/store"
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
