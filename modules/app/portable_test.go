package app_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/store/storetest"
)

// sqliteOnly maps a text that only one statement contains, which PostgreSQL rejects, to the reason for the exception.
var sqliteOnly = map[string]string{
	"sqlite_schema":      "triggers are written differently for every engine, and so is the look at them; both are in store/sqlite/migrate.go",
	"kontor_words MATCH": "engines search texts in different ways; the condition is that of the engine (store/sqlite/migrate.go)",
}

// TestPortable_PostgreSQLCompilesTheSQL runs all migrations on PostgreSQL, and compiles every statement of the scenario and
// every constant statement there. It does not show that both engines return the same results.
func TestPortable_PostgreSQLCompilesTheSQL(t *testing.T) {
	if storetest.SQLiteOnly(t, "the statements have run there already") {
		return
	}
	p := startPostgres(t)
	up, down := migrations(t)
	for _, m := range up {
		if _, err := p.psql(t, m.sql, "--single-transaction"); err != nil {
			t.Fatalf("up %s: %v", m.name, err)
		}
	}
	if wrong := "SELECT rowid FROM users WHERE id = ?1"; len(p.compile(t, []string{wrong})) != 1 {
		t.Fatalf("PostgreSQL accepted %s: this test would detect nothing", wrong)
	}
	statements := scenarioStatements(t)
	constants := constantStatements(t, statements)
	if len(constants) == 0 {
		t.Fatal("the sources of the modules hold no constant statement: this test reads the wrong directory")
	}
	statements = append(statements, constants...)
	rejected := p.compile(t, statements)
	for words, why := range sqliteOnly {
		known := slices.Collect(func(yield func(string) bool) {
			for text := range rejected {
				if strings.Contains(text, words) && !yield(text) {
					return
				}
			}
		})
		if len(known) == 0 {
			t.Errorf("PostgreSQL accepts all statements with %q: remove the exception (%s)", words, why)
		}
		for _, text := range known {
			delete(rejected, text)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(rejected)) {
		t.Errorf("PostgreSQL reports %s for\n%s", rejected[text], text)
	}
	for _, m := range down {
		if _, err := p.psql(t, m.sql, "--single-transaction"); err != nil {
			t.Fatalf("down %s: %v", m.name, err)
		}
	}
	left, err := p.psql(t, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace")
	if err != nil || left != "" {
		t.Errorf("the migrations down leave %q, %v", left, err)
	}
}

// migration is one direction of a migration.
type migration struct{ name, sql string }

// migrations returns the migrations up in their order, and the migrations down from the last to the first.
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

// scenarioStatements returns the statements that are run during the scenario, all queries of each list, and the jobs.
func scenarioStatements(t *testing.T) []string {
	t.Helper()
	texts := storetest.RecordStatements(t)
	s := newScenario(t)
	queried := map[string]bool{}
	s.listed = func(c *servertest.Client, e endpoint.Endpoint, path string) {
		path, own, _ := strings.Cut(path, "?")
		mark := "?"
		if e.Name == "rbac.explain" { // its own parameters are required
			path, mark = path+"?"+own, "&"
		}
		key := c.UserID + " " + e.Key()
		if queried[key] {
			return
		}
		queried[key] = true
		for _, query := range queries(e.Doc.Search) {
			if e.Method == http.MethodGet || onlySearches(query) {
				c.Do(e.Method, path+mark+query, nil).Expect(t, 200)
			}
		}
	}
	s.run()
	for _, job := range s.server.Jobs() {
		if err := job.Run(context.Background()); err != nil {
			t.Errorf("%s: %v", job.Name, err)
		}
	}
	return texts.Sorted()
}

// onlySearches reports whether a query of a list suits a change of all records that match a search.
func onlySearches(query string) bool {
	return strings.HasPrefix(query, "search.") && !strings.Contains(query, "&")
}

// searchValues holds, per type of field, the values whose statements differ.
var searchValues = map[string][]string{
	"text":      {"a", "a*", "*a", "a,b*"},
	"uuid":      {"0190a7a5-7d4b-7c33-8d15-1b2c3d4e5f60", "0190a7a5-7d4b-7c33-8d15-1b2c3d4e5f60,0190a7a5-7d4b-7c33-8d15-1b2c3d4e5f61"},
	"boolean":   {"true", "true,false"},
	"number":    {"1", "1..", "..2", "1..2,4"},
	"date":      {"2026-01-31", "2026-01-01..", "..2026-01-31", "2026-01-01..2026-01-31,2026-03-01"},
	"date-time": {"2026-01-31", "2026-01-01..", "..2026-01-31T10:00:00Z"},
}

// queries returns the query strings of a list that search, sort, stack and list distinct values of each field.
func queries(fields []endpoint.SearchField) []string {
	all := []string{"limit=-1", "offset=1"}
	for _, f := range fields {
		all = append(all, "sort="+f.Name, "sort=-"+f.Name, "stack="+f.Name, "stack=-"+f.Name, "distinct="+f.Name,
			"distinct="+f.Name+"&sort=-"+f.Name)
		for _, value := range searchValues[f.Type] {
			search := fmt.Sprintf("search.%s=%s", f.Name, url.QueryEscape(value))
			all = append(all, search, search+"&sort="+f.Name, search+"&stack="+f.Name)
		}
	}
	return all
}
