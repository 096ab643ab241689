package app_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	spaces    = regexp.MustCompile(`\s+`)
	statement = regexp.MustCompile(`^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\s`)
	verbs     = regexp.MustCompile(`%(\[[0-9]+\])?[a-z]`) // of fmt: a text that is completed at run time
)

// constantStatements returns the statements that the modules declare as constants, without those that known contains. The
// scenario of a day does not reach them; most handle failures. Texts that are completed at run time, such as those that end
// inside a parenthesis or with a blank, are left out.
func constantStatements(t *testing.T, known []string) []string {
	t.Helper()
	all := oneLine(strings.Join(known, ";"))
	found := map[string]bool{}
	for _, files := range sources(t) {
		constants := constantsOf(files)
		for _, file := range files {
			ast.Inspect(file, func(n ast.Node) bool {
				e, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				text, ok := constants.text(e)
				whole := ok && statement.MatchString(text) && !verbs.MatchString(text) && strings.Count(text, "(") == strings.Count(text, ")") && !strings.HasSuffix(text, " ")
				if whole && !strings.Contains(all, oneLine(text)) {
					found[text] = true
				}
				_, sum := e.(*ast.BinaryExpr)
				return !sum // an operand of a concatenation is no statement
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func oneLine(text string) string { return strings.TrimSpace(spaces.ReplaceAllString(text, " ")) }

// sources parses the packages of all modules, without tests.
func sources(t *testing.T) map[string][]*ast.File {
	t.Helper()
	packages, set := map[string][]*ast.File{}, token.NewFileSet()
	err := filepath.WalkDir("..", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		packages[filepath.Dir(name)] = append(packages[filepath.Dir(name)], file)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return packages
}

// constants are the constants of a package, by name.
type constants map[string]ast.Expr

func constantsOf(files []*ast.File) constants {
	c := constants{}
	for _, file := range files {
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, spec := range group.Specs {
				declared := spec.(*ast.ValueSpec)
				for i, value := range declared.Values {
					c[declared.Names[i].Name] = value
				}
			}
		}
	}
	return c
}

// text returns the value of an expression of literals and constants.
func (c constants) text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return c.text(e.X)
	case *ast.Ident:
		value, ok := c[e.Name]
		if !ok {
			return "", false
		}
		return c.text(value)
	case *ast.BinaryExpr:
		x, known := c.text(e.X)
		y, also := c.text(e.Y)
		return x + y, known && also && e.Op == token.ADD
	}
	return "", false
}
