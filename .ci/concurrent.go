// Command concurrent selects tests of some packages, for the race detector and for PostgreSQL: those that start goroutines, also by
// functions of their package, and those whose names begin with the text behind a package and "=". The first argument says what to
// print: "tests" prints a pattern for go test -run, "packages" the packages with such tests, and "others" those with other tests.
//
//	concurrent tests kontor/modules/identity/auth kontor/modules/app=TestScenario_ kontor/server/sse=Test
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	watched, tests := map[string]bool{}, map[string][]string{}
	for _, argument := range os.Args[2:] {
		name, prefix, more := strings.Cut(argument, "=")
		functions, err := functionsOf(strings.TrimPrefix(name, "kontor/"))
		if err != nil {
			fmt.Fprintln(os.Stderr, "reason:", err)
			os.Exit(1)
		}
		for test, f := range functions {
			if strings.HasPrefix(test, "Test") && test != "TestMain" {
				tests[name] = append(tests[name], test)
				watched[test] = watched[test] || more && strings.HasPrefix(test, prefix) || startsGoroutines(f, functions, map[string]bool{})
			}
		}
	}
	maps.DeleteFunc(watched, func(_ string, is bool) bool { return !is })
	if os.Args[1] == "tests" {
		fmt.Printf("^(%s)$\n", strings.Join(slices.Sorted(maps.Keys(watched)), "|"))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		if slices.ContainsFunc(tests[name], func(test string) bool { return watched[test] == (os.Args[1] == "packages") }) {
			fmt.Println(name)
		}
	}
}

// functionsOf returns the functions and methods in the test files of a folder.
func functionsOf(dir string) (map[string]*ast.FuncDecl, error) {
	paths, err := filepath.Glob(dir + "/*_test.go")
	found := map[string]*ast.FuncDecl{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			if f, is := d.(*ast.FuncDecl); is && f.Body != nil {
				found[f.Name.Name] = f
			}
		}
	}
	return found, err
}

// startsGoroutines reports whether a function has a go statement, calls a method Go or a function of synctest, or calls such a
// function or method of its package. Seen are the functions that have been looked at.
func startsGoroutines(f *ast.FuncDecl, functions map[string]*ast.FuncDecl, seen map[string]bool) (starts bool) {
	seen[f.Name.Name] = true
	ast.Inspect(f, func(n ast.Node) bool {
		called := ""
		switch n := n.(type) {
		case *ast.GoStmt:
			starts = true
		case *ast.SelectorExpr:
			from, _ := n.X.(*ast.Ident)
			starts = starts || n.Sel.Name == "Go" || from != nil && from.Name == "synctest"
			called = n.Sel.Name
		case *ast.Ident:
			called = n.Name
		}
		if g := functions[called]; g != nil && !seen[called] {
			starts = starts || startsGoroutines(g, functions, seen)
		}
		return !starts
	})
	return starts
}
