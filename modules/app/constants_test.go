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
	verbs     = regexp.MustCompile(`%[a-z]`) // of fmt: what is put together at run time is no constant
)

// constantStatements gives the statements that the sources of the modules hold as constants, without those that are
// already part of a known one: what a day does not come to, such as the way through a failure. One that ends within a
// parenthesis goes on at run time and is left out.
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
				whole := ok && statement.MatchString(text) && !verbs.MatchString(text) && strings.Count(text, "(") == strings.Count(text, ")")
				if whole && !strings.Contains(all, oneLine(text)) {
					found[text] = true
				}
				_, sum := e.(*ast.BinaryExpr)
				return !sum // a part of a sum is no statement
			})
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func oneLine(text string) string { return strings.TrimSpace(spaces.ReplaceAllString(text, " ")) }

// sources parses the packages of this directory and below it, tests aside.
func sources(t *testing.T) map[string][]*ast.File {
	t.Helper()
	packages, set := map[string][]*ast.File{}, token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, _ fs.DirEntry, err error) error {
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

// text is the value of an expression of literals and constants.
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
