package main

import (
	"os"
	"testing"
)

// The tests of this package build the program, run it as its users do, send requests over HTTP, and stop or kill it.

func TestMain(m *testing.M) {
	code := m.Run()
	if workDir != "" {
		os.RemoveAll(workDir)
	}
	os.Exit(code)
}
