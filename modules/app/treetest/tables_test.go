package treetest_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kontor/store/testenv"
)

// buildNames are the packages whose statements take the names of tables from declarations of other packages: members From
// of list.Source, records.Table, records.Proof, find.Source and upload.Table, which the test reads where they are declared. Those of
// outbox.Options are in the statement Due beside them.
var buildNames = []string{"modules/kit/find", "modules/kit/list", "modules/kit/outbox", "modules/kit/records", "modules/kit/recordtype", "modules/kit/upload"}

// TestTables_HaveOneOwner reads all SQL of the program and compares it with the table of docs/architecture.md: a package
// names the tables of its owner and published views, and every table has an owner.
func TestTables_HaveOneOwner(t *testing.T) {
	t.Chdir(testenv.Root())
	schema := readSchema(t)
	owners := readOwners(t)
	for _, problem := range schema.compare(owners) {
		t.Error(problem)
	}
	sources := sourcesByPackage(t)
	named := 0
	for _, directory := range slices.Sorted(maps.Keys(sources)) {
		texts := textsOf(t, sources[directory])
		for _, text := range texts {
			names, _ := tablesIn(text.text)
			named += len(names)
		}
		for _, problem := range schema.foreign(owners, directory, texts) {
			t.Error(problem)
		}
	}
	if named < 300 {
		t.Errorf("only %d names of tables were found in the SQL of the program", named)
	}
	for _, o := range owners {
		documentation := packageComment(t, o.module)
		for _, view := range o.views {
			if !strings.Contains(documentation, view) {
				t.Errorf("%s publishes the view %s, and its package comment does not describe it", o.module, view)
			}
		}
	}
}

// The test of the test: statements that were changed to a foreign table are found, however they are written.
func TestTables_FindsForeignTables(t *testing.T) {
	t.Chdir(testenv.Root())
	schema, owners := readSchema(t), readOwners(t)
	source, err := os.ReadFile("modules/bank/payers/record.go")
	if err != nil {
		t.Fatal(err)
	}
	changed := map[string]string{ // statement in payers → finding
		strings.Replace(string(source), `From: "payers"`, `From: "users"`, 1):                                                   "users",
		fake("const q = `UPDATE customers SET x = 1`"):                                                                          "customers",
		fake("const q = `SELECT 1 FROM credentials WHERE id = $1`"):                                                             "credentials",
		fake("const q = `SELECT 1 FROM payers p JOIN users u ON u.id = p.id`"):                                                  "users",
		fake("const q = `SELECT 1 FROM payers p, users u`"):                                                                     "users",
		fake("const q = `select 1\n\tfrom users`"):                                                                              "users",
		fake("const q = `DELETE FROM \"main\".\"users\"`"):                                                                      "users",
		fake("const q = `INSERT INTO grants (id) VALUES ($1)`"):                                                                 "grants",
		fake("const name = \"users\"\nconst q = `SELECT 1 FROM ` + name"):                                                       "users",
		fake("const q = `SELECT 1 ` + rest\nconst rest = `FROM ` + `us` + `ers`"):                                               "users",
		fake("func q() string { return fmt.Sprintf(`SELECT 1 FROM %s WHERE x`, `users`) }"):                                     "users",
		fake("const form = `SELECT %s FROM %s`\nfunc q() string { return fmt.Sprintf(form, `id`, `tasks`) }"):                   "tasks",
		fake("var q = fmt.Sprintf(`SELECT 1 FROM payers WHERE id IN (%s)`, `SELECT rec_id FROM grants`)"):                       "grants",
		fake("var q = []string{`UPDATE payers SET x = 1`, `UPDATE users SET x = 1`}"):                                           "users",
		fake("var table = records.Table{From: `task_members LEFT JOIN tasks ON true`}"):                                         "task_members",
		fake("var r = records.Relation{SQL: `EXISTS (SELECT 1 FROM task_members t WHERE t.task_id = id)`}"):                     "task_members",
		fake("func q(table string) string { return `SELECT 1 FROM ` + table }"):                                                 "built",
		fake("func q(table string) string { return fmt.Sprintf(`DELETE FROM %s`, table) }"):                                     "built",
		fake("func q(table string) any { return &list.Source[int]{From: table} }"):                                              "built",
		fake("func q(b *strings.Builder, table string) { b.WriteString(`SELECT 1 FROM users WHERE `) }"):                        "users",
		fake("func q(l list) { l.run(`WITH x AS (SELECT 1 FROM payers) SELECT 1 FROM x WHERE id IN (SELECT id FROM chats)`) }"): "chats",
	}
	for text, want := range changed {
		problems := schema.foreign(owners, "modules/bank/payers", textsOf(t, map[string]string{"queries.go": text}))
		if !strings.Contains(strings.Join(problems, "\n"), want) {
			t.Errorf("%s was not found in\n%.300s", want, text)
		}
	}
	for _, allowed := range []string{
		string(source),
		fake("const q = `SELECT p.display_name FROM people p JOIN held_roles h ON h.user_id = p.id JOIN payers y ON true`"),
		fake("const q = `Choose one from users or update customers.`"),
		fake("const q = `SELECT 1 FROM payers -- not from users`"),
		fake("type x struct { A string `doc:\"SELECT x FROM users\"` }"),
	} {
		if problems := schema.foreign(owners, "modules/bank/payers", textsOf(t, map[string]string{"queries.go": allowed})); len(problems) > 0 {
			t.Errorf("got %q for\n%.300s", problems, allowed)
		}
	}
	// A table without an owner, one with two, a view that reads a foreign table, and one without a comment.
	bad := schemaOf(map[string]string{"0001_bad.sql": `-- +goose Up
CREATE TABLE lost (id TEXT);
CREATE TABLE payers (id TEXT);
CREATE TABLE users (id TEXT);
-- Published by payers.
CREATE VIEW payer_names AS SELECT p.id FROM payers p JOIN users u ON u.id = p.id;
CREATE VIEW silent AS SELECT id FROM users;
-- +goose Down
CREATE TABLE ignored (id TEXT);`})
	got := strings.Join(bad.compare([]owner{
		{module: "modules/bank/payers", tables: []string{"payers", "users"}, views: []string{"payer_names"}},
		{module: "modules/identity/directory", tables: []string{"users", "gone"}, views: []string{"silent"}},
	}), "\n")
	for _, want := range []string{"lost has no owner", "users has two owners", "gone of modules/identity/directory does not exist", "silent has no comment"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "ignored") {
		t.Errorf("the down part of a migration was read:\n%s", got)
	}
	got = strings.Join(bad.compare([]owner{{module: "modules/bank/payers", tables: []string{"payers", "lost"}, views: []string{"payer_names", "silent"}},
		{module: "modules/identity/directory", tables: []string{"users"}}}), "\n")
	if !strings.Contains(got, "the view payer_names of modules/bank/payers reads users") {
		t.Errorf("got %s", got)
	}
}

func fake(declarations string) string { return "package payers\n\n" + declarations + "\n" }

// owner is a row of the table in docs/architecture.md.
type owner struct {
	module        string
	tables, views []string
}

// readOwners reads the table.
func readOwners(t *testing.T) (owners []owner) {
	t.Helper()
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| Module | Tables | Published views |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/architecture.md has no table of owners")
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	names := func(cell string) (found []string) {
		for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
			found = append(found, match[1])
		}
		return found
	}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 {
			break
		}
		owners = append(owners, owner{names(cells[1])[0], names(cells[2]), names(cells[3])})
	}
	return owners
}

// ownerOf returns the module that a package belongs to: the longest path that it lies in, or the zero owner.
func ownerOf(owners []owner, directory string) (found owner) {
	for _, o := range owners {
		if (directory == o.module || strings.HasPrefix(directory, o.module+"/")) && len(o.module) > len(found.module) {
			found = o
		}
	}
	return found
}

// schema is what the migrations make.
type schema struct {
	tables map[string]bool
	views  map[string]view
}

type view struct {
	comment string // above it
	reads   []string
}

func readSchema(t *testing.T) schema {
	t.Helper()
	files, err := filepath.Glob("store/migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no migrations: %v", err)
	}
	migrations := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		migrations[file] = string(text)
	}
	return schemaOf(migrations)
}

var definition = regexp.MustCompile(`(?im)^((?:--[^\n]*\n)*)\s*(CREATE|DROP)\s+(TABLE|VIEW)\s+(?:IF\s+(?:NOT\s+)?EXISTS\s+)?(\w+)([^;]*);`)

func schemaOf(migrations map[string]string) schema {
	s := schema{map[string]bool{}, map[string]view{}}
	for _, name := range slices.Sorted(maps.Keys(migrations)) {
		up, _, _ := strings.Cut(migrations[name], "-- +goose Down")
		for _, d := range definition.FindAllStringSubmatch(up, -1) {
			comment, verb, kind, object, body := d[1], strings.ToUpper(d[2]), strings.ToUpper(d[3]), d[4], d[5]
			switch {
			case verb == "DROP":
				delete(s.tables, object)
				delete(s.views, object)
			case kind == "TABLE":
				s.tables[object] = true
			default:
				reads, _ := tablesIn(body)
				s.views[object] = view{comment, reads}
			}
		}
	}
	return s
}

// compare compares the schema with its owners.
func (s schema) compare(owners []owner) (problems []string) {
	owned := map[string][]string{}
	for _, o := range owners {
		for _, table := range slices.Concat(o.tables, o.views) {
			owned[table] = append(owned[table], o.module)
			_, isView := s.views[table]
			if isView != slices.Contains(o.views, table) || !isView && !s.tables[table] {
				problems = append(problems, fmt.Sprintf("%s of %s does not exist as docs/architecture.md says", table, o.module))
			}
		}
		for _, name := range o.views {
			v := s.views[name]
			if !strings.Contains(v.comment, "Published by") || !strings.Contains(v.comment, path.Base(o.module)) {
				problems = append(problems, fmt.Sprintf("the view %s has no comment \"Published by %s: …\" in its migration", name, path.Base(o.module)))
			}
			for _, read := range v.reads {
				if s.tables[read] && !slices.Contains(o.tables, read) {
					problems = append(problems, fmt.Sprintf("the view %s of %s reads %s", name, o.module, read))
				}
			}
		}
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(s.tables)), slices.Sorted(maps.Keys(s.views))) {
		switch len(owned[name]) {
		case 0:
			problems = append(problems, name+" has no owner in docs/architecture.md")
		case 1:
		default:
			problems = append(problems, fmt.Sprintf("%s has two owners: %s", name, strings.Join(owned[name], ", ")))
		}
	}
	return problems
}

// foreign returns what the texts of a package name and must not.
func (s schema) foreign(owners []owner, directory string, texts []sqlText) (problems []string) {
	own := ownerOf(owners, directory)
	for _, text := range texts {
		names, built := tablesIn(text.text)
		for _, name := range names {
			name = strings.ToLower(name)
			if s.tables[name] && !slices.Contains(own.tables, name) {
				problems = append(problems, fmt.Sprintf("%s:%d: %s names the table %s, which is not its own; use a published view or a function of its owner",
					text.pos.Filename, text.pos.Line, directory, name))
			}
		}
		if built && own.module != "store" && !slices.Contains(buildNames, directory) {
			problems = append(problems, fmt.Sprintf("%s:%d: %s names a table that is built when the program runs, so that nothing can check its owner",
				text.pos.Filename, text.pos.Line, directory))
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// sourcesByPackage returns the Go files of the program by directory and name, without tests and their helpers.
func sourcesByPackage(t *testing.T) map[string]map[string]string {
	t.Helper()
	sources := map[string]map[string]string{}
	for _, root := range []string{"main.go", "modules", "store", "server", "locales", "web"} {
		err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
			directory := filepath.ToSlash(filepath.Dir(file))
			helper := directory == "store/storetest" || directory == "store/engine/enginetest"
			if err != nil || entry.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || helper {
				return err
			}
			text, err := os.ReadFile(file)
			if sources[directory] == nil {
				sources[directory] = map[string]string{}
			}
			sources[directory][filepath.ToSlash(file)] = string(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return sources
}

// packageComment returns the comment of a package.
func packageComment(t *testing.T, directory string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var comment string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		comment += file.Doc.Text()
	}
	return comment
}
