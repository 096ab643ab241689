package treetest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"kontor/store/testenv"
)

// machineTime are the files of modules that read the clock of the machine: for durations and for deadlines of connections.
var machineTime = []string{
	"modules/duty/audit/export_syslog.go", "modules/identity/auth/hashing/hasher.go", "modules/bank/files/scan.go",
	"modules/bank/files/content.go", "modules/bank/invoices/qrbill/reader.go", "modules/kit/outbound/outbound.go", "modules/kit/outbox/attempt.go",
	"modules/reach/notifications/feed.go", "modules/developer/playground/reset.go", "modules/kit/streams/follow.go",
}

// TestClock_ModulesReadTheClockOfTheStore rejects time.Now in modules. Nodes share the clock of the database, and tests move it.
func TestClock_ModulesReadTheClockOfTheStore(t *testing.T) {
	t.Chdir(testenv.Root())
	var found []string
	for directory, files := range sourcesByPackage(t) {
		if !strings.HasPrefix(directory, "modules/") || strings.HasPrefix(directory, "modules/commands") || strings.HasPrefix(directory, "modules/demo") {
			continue
		}
		for name, text := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "Now" {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && !slices.Contains(found, name) {
						found = append(found, name)
					}
				}
				return true
			})
		}
	}
	slices.Sort(found)
	for _, name := range found {
		if !slices.Contains(machineTime, name) {
			t.Errorf("%s reads time.Now: take the time from the store, whose clock all nodes share", name)
		}
	}
	for _, name := range machineTime {
		if !slices.Contains(found, name) {
			t.Errorf("%s does not read time.Now any more: remove it from this list", name)
		}
	}
}
