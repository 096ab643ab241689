package app_test

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kontor/server/endpoint"
	"kontor/server/servertest"
)

// sqliteOnly are the statements that PostgreSQL refuses, by words of theirs that no other has, with the reason why they
// stay as they are.
var sqliteOnly = map[string]string{
	"sqlite_schema": "triggers are written differently for every engine, and so is the look at them; both are in store/dialect.go",
}

// TestPortable_PostgreSQLTakesTheSQL has PostgreSQL run all migrations and compile every statement of a day, and
// those that no day comes to, on what they have made. It does not show that both engines answer alike.
func TestPortable_PostgreSQLTakesTheSQL(t *testing.T) {
	p := startPostgres(t)
	up, down := migrations(t)
	for _, m := range up {
		if _, err := p.psql(t, m.sql, "--single-transaction"); err != nil {
			t.Fatalf("up %s: %v", m.name, err)
		}
	}
	if wrong := "SELECT rowid FROM users WHERE id = ?1"; len(p.refusals(t, []string{wrong})) != 1 {
		t.Fatalf("%s was not refused: this test would see nothing", wrong)
	}
	statements := statementsOfADay(t)
	statements = append(statements, constantStatements(t, statements)...)
	refused := p.refusals(t, statements)
	for words, why := range sqliteOnly {
		known := slices.Collect(func(yield func(string) bool) {
			for text := range refused {
				if strings.Contains(text, words) && !yield(text) {
					return
				}
			}
		})
		if len(known) == 0 {
			t.Errorf("no statement with %q is refused any more: take it from the table (%s)", words, why)
		}
		for _, text := range known {
			delete(refused, text)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(refused)) {
		t.Errorf("PostgreSQL says %s to\n%s", refused[text], text)
	}
	for _, m := range down {
		if _, err := p.psql(t, m.sql, "--single-transaction"); err != nil {
			t.Fatalf("down %s: %v", m.name, err)
		}
	}
	left, err := p.psql(t, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
	if err != nil || left != "" {
		t.Errorf("the way down leaves %q, %v", left, err)
	}
}

// migration is one direction of a migration.
type migration struct{ name, sql string }

// migrations gives the ways up in their order, and the ways down from the last to the first.
func migrations(t *testing.T) (up, down []migration) {
	t.Helper()
	files, err := filepath.Glob("../../store/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		above, below, found := strings.Cut(string(text), "-- +goose Down")
		if !found || !strings.HasPrefix(above, "-- +goose Up") {
			t.Fatalf("%s has no Up or no Down", name)
		}
		up, down = append(up, migration{name, above}), append(down, migration{name, below})
	}
	slices.Reverse(down)
	return up, down
}

// statementsOfADay gives what is compiled while the bank is opened, a day passes, each list is asked for all that it
// offers, and the regular work is done.
func statementsOfADay(t *testing.T) []string {
	t.Helper()
	d := newDay(t)
	texts, asked := map[string]bool{}, map[string]bool{}
	collect := func() {
		found, err := d.s.DB.Statements(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range found {
			texts[text] = true
		}
	}
	d.listed = func(c *servertest.Client, e endpoint.Endpoint, path string) {
		path, _, _ = strings.Cut(path, "?")
		if again := c.UserID + " " + e.Key(); asked[again] {
			return
		} else {
			asked[again] = true
		}
		collect() // a connection keeps a few hundred texts only
		for _, query := range queries(e.Doc.Search) {
			c.Do("GET", path+"?"+query, nil).Expect(t, 200)
		}
		collect()
	}
	d.passes()
	collect()
	for _, job := range d.s.Jobs() {
		if err := job.Run(context.Background()); err != nil {
			t.Errorf("%s: %v", job.Name, err)
		}
	}
	collect()
	return slices.Sorted(maps.Keys(texts))
}

// searched are values for the types of fields: one, and what else has a statement of its own.
var searched = map[string][]string{
	"text":      {"a", "a*", "*a", "a,b*"},
	"uuid":      {"0190a7a5-7d4b-7c33-8d15-1b2c3d4e5f60", "0190a7a5-7d4b-7c33-8d15-1b2c3d4e5f60,0190a7a5-7d4b-7c33-8d15-1b2c3d4e5f61"},
	"boolean":   {"true", "true,false"},
	"number":    {"1", "1..", "..2", "1..2,4"},
	"date":      {"2026-01-31", "2026-01-01..", "..2026-01-31", "2026-01-01..2026-01-31,2026-03-01"},
	"date-time": {"2026-01-31", "2026-01-01..", "..2026-01-31T10:00:00Z"},
}

// queries are parameters of a list for all that it can do with each of its fields.
func queries(fields []endpoint.SearchField) []string {
	all := []string{"limit=-1", "offset=1"}
	for _, f := range fields {
		all = append(all, "sort="+f.Name, "sort=-"+f.Name, "stack="+f.Name, "stack=-"+f.Name, "distinct="+f.Name,
			"distinct="+f.Name+"&sort=-"+f.Name)
		for _, value := range searched[f.Type] {
			search := fmt.Sprintf("search.%s=%s", f.Name, url.QueryEscape(value))
			all = append(all, search, search+"&sort="+f.Name, search+"&stack="+f.Name)
		}
	}
	return all
}
