// Package treetest_test reads the files of the project: imports, statements, comments, documents. Each test enforces one rule of
// CONTRIBUTING.md or docs/architecture.md, and prints it when it fails.
//
// Tests name files by their paths in the project. They change to its root themselves, not in TestMain: the go command does not see
// what TestMain does, and would take the files for unchanged.
package treetest_test
