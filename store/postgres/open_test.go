package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"kontor/store/engine"
	"kontor/store/migrations"
	"kontor/store/postgres"
	"kontor/store/postgres/postgrestest"
)

// with returns a configuration with further migrations.
func with(t *testing.T, url string, further ...string) engine.Config {
	c := config(t, url)
	files := fstest.MapFS{"0001_tables.sql": {Data: []byte(schema)}}
	for i, sql := range further {
		files["000"+string(rune('2'+i))+"_more.sql"] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + sql + "\n-- +goose Down\n")}
	}
	c.Migrations = files
	return c
}

// During an upgrade, nodes of the version before go on, also with statements that they have prepared. Two versions back they
// are refused, and those that run stop writing.
func TestOpen_LetsTheVersionBeforeServe(t *testing.T) {
	url := postgrestest.URL(t)
	first := open(t, config(t, url))
	none(t, "write", write(first, "a"))
	if n := count(t, first, "a"); n != 1 {
		t.Errorf("%d rows", n)
	}
	const column = `ALTER TABLE items ADD COLUMN note TEXT NOT NULL DEFAULT '';`
	second := open(t, with(t, url, column))
	none(t, "write by the new version", write(second, "b"))
	none(t, "write by the version before", write(first, "c"))
	if n := count(t, first, "b"); n != 1 {
		t.Errorf("the version before sees %d rows", n)
	}
	again := open(t, config(t, url))
	none(t, "write by a later start of the version before", write(again, "d"))

	third := open(t, with(t, url, column, `ALTER TABLE items ADD COLUMN further BIGINT NOT NULL DEFAULT 0;`))
	none(t, "write by the newest version", write(third, "e"))
	none(t, "write by the version before it", write(second, "f"))
	is(t, "write by the oldest version", write(first, "g"), engine.ErrNewerSchema)
	is(t, "ready of the oldest version", first.Ready(t.Context()), engine.ErrNewerSchema)
	_, _, err := postgres.Open(t.Context(), config(t, url))
	is(t, "start of the oldest version", err, engine.ErrNewerSchema)
	if n := count(t, third, "g"); n != 0 {
		t.Errorf("%d rows of a version that may not write", n)
	}
}

// Several nodes that start at once on an empty database create it once.
func TestOpen_OfManyNodesCreatesOnce(t *testing.T) {
	url := postgrestest.URL(t)
	c := with(t, url, `INSERT INTO items (name) VALUES ('made by a migration');`)
	failed := make(chan error)
	for range 4 {
		go func() {
			e, _, err := postgres.Open(context.Background(), c)
			if err == nil {
				t.Cleanup(func() { e.Close() })
			}
			failed <- err
		}()
	}
	for range 4 {
		none(t, "open", <-failed)
	}
	if n := outside(t, url, `SELECT COUNT(*) FROM items`); n != "1" {
		t.Errorf("the migration ran %s times", n)
	}
}

// A start that fails leaves nothing behind.
func TestOpen_ThatFailsChangesNothing(t *testing.T) {
	url := postgrestest.URL(t)
	errGuard := errors.New("rejected by the guard")
	c := config(t, url)
	c.Guard = func(fresh bool) (engine.Guard, error) {
		if !fresh {
			t.Error("an empty database counts as used")
		}
		return nil, errGuard
	}
	_, _, err := postgres.Open(t.Context(), c)
	is(t, "open", err, errGuard)
	if n := outside(t, url, `SELECT COUNT(*) FROM pg_tables WHERE schemaname = 'public'`); n != "0" {
		t.Errorf("%s tables remain", n)
	}
}

func TestOpen_ExplainsInOneLine(t *testing.T) {
	url := postgrestest.URL(t)
	foreign := postgrestest.URL(t)
	outside(t, foreign, `CREATE TABLE theirs (id BIGINT)`)
	for name, c := range map[string]struct{ url, want string }{
		"no such server":   {"postgres://kontor:secret@127.0.0.1:1/kontor", "cannot be reached"},
		"no such host":     {"postgres://kontor:secret@nowhere.invalid/kontor?connect_timeout=2", "cannot be reached"},
		"no such database": {strings.Replace(url, "?", "x?", 1), "does not exist"},
		"another scheme":   {"mysql://kontor:secret@127.0.0.1/kontor", "postgres://"},
		"no address":       {"postgres://kontor:secret@:x:y/", "cannot be used"},
		"another program":  {foreign, "tables of another program"},
	} {
		_, _, err := postgres.Open(t.Context(), config(t, c.url))
		if err == nil {
			t.Errorf("%s: opened", name)
			continue
		}
		if text := err.Error(); !strings.Contains(text, c.want) || strings.Contains(text, "secret") || strings.Contains(text, "\n") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// The triggers that protect append-only tables are restored, and reported, whatever has become of them.
func TestOpen_RestoresTriggers(t *testing.T) {
	e, url := fresh(t)
	none(t, "close", e.Close())
	for name, sql := range map[string]string{
		"dropped":      `DROP TRIGGER entries_append_only ON entries`,
		"disabled":     `ALTER TABLE entries DISABLE TRIGGER entries_append_only`,
		"not always":   `ALTER TABLE entries ENABLE TRIGGER entries_append_only`,
		"another body": `CREATE OR REPLACE FUNCTION kontor_append_only() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
		"never fires": `DROP TRIGGER entries_append_only ON entries;
			CREATE TRIGGER entries_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON entries WHEN (false) EXECUTE FUNCTION kontor_append_only();
			ALTER TABLE entries ENABLE ALWAYS TRIGGER entries_append_only`,
		"updates only": `DROP TRIGGER entries_append_only ON entries;
			CREATE TRIGGER entries_append_only BEFORE UPDATE ON entries EXECUTE FUNCTION kontor_append_only();
			ALTER TABLE entries ENABLE ALWAYS TRIGGER entries_append_only`,
	} {
		outside(t, url, sql)
		again, report, err := postgres.Open(t.Context(), config(t, url))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(report.Unprotected) != 1 {
			t.Errorf("%s: reported %v", name, report.Unprotected)
		}
		none(t, "insert", again.Write(t.Context(), func(tx engine.Tx) error {
			return exec(t.Context(), tx, `INSERT INTO entries (seq, text) SELECT COUNT(*) + 1, $1 FROM entries`, name)
		}))
		for _, change := range []string{`UPDATE entries SET text = ''`, `DELETE FROM entries`, `TRUNCATE entries`} {
			is(t, name+": "+change, again.Write(t.Context(), func(tx engine.Tx) error { return exec(t.Context(), tx, change) }), engine.ErrConflict)
		}
		none(t, "close", again.Close())
	}
	again, report, err := postgres.Open(t.Context(), config(t, url))
	if err != nil || len(report.Unprotected) != 0 {
		t.Fatalf("intact triggers: %v, %v", report.Unprotected, err)
	}
	none(t, "close", again.Close())
}

// Texts of all tables compare byte by byte, as in the other engine, and integers have 64 bits.
func TestOpen_CreatesPortableColumns(t *testing.T) {
	url := postgrestest.URL(t)
	c := config(t, url)
	c.Migrations, c.AppendOnly = migrations.Files, []string{"audit_entries"}
	c.Guard = func(bool) (engine.Guard, error) { return trail{}, nil }
	open(t, c)
	for what, sql := range map[string]string{
		"texts of the database's collation": `SELECT COALESCE(string_agg(c.relname || '.' || a.attname, ' '), '')
			FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_collation l ON l.oid = a.attcollation
			WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND c.relname NOT LIKE 'kontor\_%' AND a.attnum > 0 AND l.collname <> 'C'`,
		"short integers": `SELECT COALESCE(string_agg(table_name || '.' || column_name, ' '), '') FROM information_schema.columns
			WHERE table_schema = 'public' AND data_type IN ('integer', 'smallint') AND table_name NOT LIKE 'kontor\_%'`,
	} {
		if found := outside(t, url, sql); found != "" {
			t.Errorf("%s: %s", what, found)
		}
	}
}

// trail is a guard of the tables of the program.
type trail struct{ guard }

func (trail) EndStatement() string {
	return `SELECT seq, hash FROM audit_entries ORDER BY seq DESC LIMIT 1`
}

// In a pool that lends connections for single transactions, announcements of other nodes do not arrive.
func TestOpen_RefusesAPoolInTransactionMode(t *testing.T) {
	direct := postgrestest.URL(t)
	_, _, err := postgres.Open(t.Context(), config(t, postgrestest.NewPool(t, direct, true)))
	if err == nil || !strings.Contains(err.Error(), "connection pool in transaction mode") {
		t.Errorf("got %v, want a sentence about the pool", err)
	}
	open(t, config(t, direct)) // nothing was changed
}
