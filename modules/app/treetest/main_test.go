// Package treetest_test reads the files of the project: imports, statements, comments, documents. Each test enforces one rule of
// CONTRIBUTING.md or docs/architecture.md, and prints it when it fails.
package treetest_test

import (
	"log"
	"os"
	"testing"

	"kontor/store/testenv"
)

// The tests name files by their paths in the project.
func TestMain(m *testing.M) {
	if err := os.Chdir(testenv.Root()); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
