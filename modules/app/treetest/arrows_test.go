package treetest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kontor/store/testenv"
)

const modulePath = "kontor"

// TestArrows_PointDown compares the imports of every package, those of its tests aside, with the table of packages in
// docs/architecture.md. Every package may import the packages below its own path, such as store/engine below store.
func TestArrows_PointDown(t *testing.T) {
	t.Chdir(testenv.Root())
	found := importsByPackage(t)
	rows := packageRows(t, slices.Collect(maps.Keys(found)))
	for directory, imports := range found {
		may, ok := rows[directory]
		if !ok {
			t.Errorf("docs/architecture.md does not have a row for the package `%s`", directory)
		}
		for _, imported := range imports {
			below := strings.HasPrefix(imported, directory+"/")
			if ok && !below && !slices.Contains(may, imported) && !slices.Contains(may, "*") {
				t.Errorf("%s imports %s, which its row in docs/architecture.md does not contain. Modules declare an interface for what they need, and modules/app passes the implementation",
					directory, imported)
			}
		}
	}
	for directory := range rows {
		if _, ok := found[directory]; !ok {
			t.Errorf("docs/architecture.md has a row for `%s`, which is no package", directory)
		}
	}
}

var (
	packageRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| .* \\| (.+) \\|$")
	codeSpan   = regexp.MustCompile("(as )?`([^`]+)`")
)

// packageRows reads the table. The last cell of a row lists the packages that its package may import. It begins with "everything",
// "nothing", "the same" for the list of the row above, or "as" for that of another row; braces and an asterisk stand for several packages.
func packageRows(t *testing.T, packages []string) map[string][]string {
	t.Helper()
	document, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(document), "\n## Packages and imports\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string][]string{".": {"modules/commands"}} // the main function
	above := ""
	for _, cells := range packageRow.FindAllStringSubmatch(table, -1) {
		name, list := cells[1], cells[2]
		if _, twice := rows[name]; twice {
			t.Errorf("docs/architecture.md has two rows for `%s`", name)
		}
		var may []string
		switch first, _, _ := strings.Cut(list, " "); strings.TrimRight(first, ",:") {
		case "everything":
			may = []string{"*"}
		case "the":
			may = slices.Clone(rows[above])
		}
		for _, span := range codeSpan.FindAllStringSubmatch(list, -1) {
			if span[1] != "" {
				if _, ok := rows[span[2]]; !ok {
					t.Errorf("the row of `%s` refers to `%s`, which has no row above it", name, span[2])
				}
				may = append(may, rows[span[2]]...)
				continue
			}
			for _, one := range expand(span[2], packages) {
				if !slices.Contains(packages, one) {
					t.Errorf("the row of `%s` names `%s`, which is no package", name, one)
				}
				may = append(may, one)
			}
		}
		rows[name], above = may, name
	}
	return rows
}

// expand returns the packages that a pattern such as store/{clock,datadir} or server/* stands for.
func expand(pattern string, packages []string) (all []string) {
	if before, list, ok := strings.Cut(pattern, "{"); ok {
		for name := range strings.SplitSeq(strings.TrimSuffix(list, "}"), ",") {
			all = append(all, before+name)
		}
		return all
	}
	for _, name := range packages {
		if matched, err := path.Match(pattern, name); err == nil && matched {
			all = append(all, name)
		}
	}
	if all == nil {
		return []string{pattern}
	}
	return all
}

// TestArrows_FindsWrongRows is the test of the test: lists are read with all their forms.
func TestArrows_FindsWrongRows(t *testing.T) {
	t.Chdir(testenv.Root())
	found := importsByPackage(t)
	rows := packageRows(t, slices.Collect(maps.Keys(found)))
	for name, want := range map[string]string{
		"modules/app": "*", "modules/bank/payers": "modules/kit/recordtype", "modules/bank/invoices": "modules/bank/invoices/qrbill",
		"modules/duty/audit": "store/audittrail", "server": "server/endpoint", "store/backup": "store/erasures",
	} {
		if !slices.Contains(rows[name], want) {
			t.Errorf("the list of %s does not contain %s: %v", name, want, rows[name])
		}
	}
	for name, refused := range map[string]string{"modules/bank/payers": "modules/bank/customers", "store": "server", "server": "store", "modules/kit/types": "store"} {
		if slices.Contains(rows[name], refused) || slices.Contains(rows[name], "*") {
			t.Errorf("the list of %s contains %s", name, refused)
		}
	}
}

// importsByPackage returns the imports of each package within the project, by directory.
func importsByPackage(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return fs.SkipDir
		}
		if entry.IsDir() && name != "." && isModule(name) {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		directory := path.Dir(filepath.ToSlash(name))
		found[directory] = append(found[directory], ours(file.Imports)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// isModule reports whether a directory is a module of its own, such as a sample program.
func isModule(directory string) bool {
	_, err := os.Stat(filepath.Join(directory, "go.mod"))
	return err == nil
}

// ours keeps the imports that are packages of this module.
func ours(specs []*ast.ImportSpec) []string {
	var kept []string
	for _, spec := range specs {
		name, err := strconv.Unquote(spec.Path.Value)
		if below, ok := strings.CutPrefix(name, modulePath+"/"); ok && err == nil {
			kept = append(kept, below)
		}
	}
	return kept
}
