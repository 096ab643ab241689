package main

import (
	"strings"
	"testing"
)

// attack is a hostile request and the expected response. The tables of attacks are in the files hostile_*_test.go.
type attack struct {
	name         string
	by           *client
	method, path string
	body         string
	status       int
	code         string   // expected error code; empty means any body
	contains     []string // texts that the body must contain
	excludes     []string // texts that the body must not contain
}

// runAttacks sends each request and compares the response with the expected one.
func runAttacks(t *testing.T, attacks []attack) {
	t.Helper()
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			got, err := a.by.try(a.method, a.path, a.body)
			if err != nil {
				t.Fatal(err)
			}
			if got.status != a.status {
				t.Fatalf("%s %.200s: got %d %.300s, want %d", a.method, a.path, got.status, got.body, a.status)
			}
			if code := got.code(); a.code != "" && code != a.code {
				t.Errorf("%s %.200s: got code %q, want %q", a.method, a.path, code, a.code)
			}
			for _, text := range a.contains {
				if !strings.Contains(got.body, text) {
					t.Errorf("%s %.200s: %.300s does not contain %q", a.method, a.path, got.body, text)
				}
			}
			for _, text := range a.excludes {
				if strings.Contains(got.body, text) {
					t.Errorf("%s %.200s: %.300s contains %q", a.method, a.path, got.body, text)
				}
			}
		})
	}
}
