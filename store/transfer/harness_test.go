package transfer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kontor/store"
	"kontor/store/migrations"
	"kontor/store/postgres/postgrestest"
	"kontor/store/storetest"
	"kontor/store/transfer"
)

// manyRoles is more than one batch.
const manyRoles = 6_000

// newSource returns a closed data directory whose rows have every kind of value, and its master key.
func newSource(t *testing.T, roles int) (dir, key string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	db := storetest.OpenDir(t, dir)
	storetest.Audit(t, db, 3)
	fill(t, db, roles)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	return dir, strings.TrimSpace(string(text))
}

// awkward are texts that a format could change.
var awkward = []string{"", " ", `\N`, `\`, "a\tb\nc\rd\\.e", `\.`, "'\"", "\x01\x1f\x7f", "ä€𝄞\u0301", "NULL", strings.Repeat("x", 6<<20)}

func fill(t *testing.T, db *store.DB, roles int) {
	t.Helper()
	err := db.InTx(t.Context(), func(tx *store.Tx) error {
		for i := range roles {
			_, err := tx.Exec(t.Context(), `INSERT INTO roles (id, name, name_key, description, builtin, created_at, created_by, modified_at, modified_by)
				VALUES ($1, $2, $2, $3, $4, $5, '', $6, '')`,
				store.NewID(), fmt.Sprintf("role %05d", i), awkward[i%(len(awkward)-1)], i%2 == 0, int64(i)-5, int64(1)<<62)
			if err != nil {
				return err
			}
		}
		user := store.NewID()
		for _, s := range []struct {
			sql  string
			args []any
		}{
			{`INSERT INTO users (id, status, language, created_at, created_by, modified_at, modified_by) VALUES ($1, 'active', 'de', 0, '', 0, '')`, []any{user}},
			{`INSERT INTO avatars (user_id, pixels, token, media_type, content, created_at, created_by) VALUES ($1, 32, 't', 'image/png', $2, 0, '')`,
				[]any{user, []byte{0, 1, 255, '\\', '\n'}}},
			{`INSERT INTO avatars (user_id, pixels, token, media_type, content, created_at, created_by) VALUES ($1, 256, 'u', 'image/png', $2, 0, '')`,
				[]any{user, make([]byte, 300_000)}},
			{`INSERT INTO idempotency_keys (caller, path, key, body_hash, status, body, created_at, expires_at) VALUES ('a', 'b', 'c', '', 1, $1, 0, 0)`,
				[]any{awkward[len(awkward)-1]}},
		} {
			if _, err := tx.Exec(t.Context(), s.sql, s.args...); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func toDatabase(dir, url string) transfer.Options {
	return transfer.Options{From: transfer.Place{Dir: dir, Name: dir}, To: transfer.Place{URL: url, Name: "the database"}, Migrations: migrations.Files}
}

func toDirectory(url, dir, key string) transfer.Options {
	return transfer.Options{From: transfer.Place{URL: url, Name: "the database"}, To: transfer.Place{Dir: dir, Name: dir}, Migrations: migrations.Files, SecretKey: key}
}

// copied runs a copy that must succeed.
func copied(t *testing.T, o transfer.Options) transfer.Report {
	t.Helper()
	report, err := transfer.Run(t.Context(), o)
	if err != nil {
		t.Fatalf("%s to %s: %v", o.From.Name, o.To.Name, err)
	}
	return report
}

// cutAt runs a copy that is cancelled at a point, and reports whether the point was reached.
func cutAt(t *testing.T, o transfer.Options, point func(transfer.Progress) bool) (err error, reached bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Progress = func(p transfer.Progress) {
		if !reached && point(p) {
			reached = true
			cancel()
		}
	}
	_, err = transfer.Run(ctx, o)
	return err, reached
}

// count returns the number of rows of a table in a report.
func count(t *testing.T, report transfer.Report, name string) int64 {
	t.Helper()
	i := slices.IndexFunc(report.Tables, func(r transfer.TableReport) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("no table %s in %v", name, report.Tables)
	}
	return report.Tables[i].Rows
}

func newURL(t *testing.T) string {
	t.Helper()
	return postgrestest.URL(t)
}
