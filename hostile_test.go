package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// attack is one hostile request to the built program and the answer that repels it. The tables that use it are in the
// files hostile_*_test.go, one for each subject.
type attack struct {
	name         string
	by           *client // who sends the request; its headers go with it
	method, path string
	body         string
	status       int
	code         string   // expected error code; empty when any body will do
	contains     []string // texts that the answer must contain
	excludes     []string // texts that the answer must not contain
}

// repel sends each request and fails the test when the answer is not the expected one.
func repel(t *testing.T, attacks []attack) {
	t.Helper()
	for _, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			got, err := a.by.try(a.method, a.path, a.body)
			if err != nil {
				t.Fatal(err)
			}
			if got.status != a.status {
				t.Fatalf("%s %s: got %d %.300s, want %d", a.method, a.path, got.status, got.body, a.status)
			}
			if code := got.code(); a.code != "" && code != a.code {
				t.Errorf("%s %s: got code %q, want %q", a.method, a.path, code, a.code)
			}
			for _, text := range a.contains {
				if !strings.Contains(got.body, text) {
					t.Errorf("%s %s: %.300s does not contain %q", a.method, a.path, got.body, text)
				}
			}
			for _, text := range a.excludes {
				if strings.Contains(got.body, text) {
					t.Errorf("%s %s: %.300s contains %q", a.method, a.path, got.body, text)
				}
			}
		})
	}
}

// code returns the error code of an answer, or "" when it has none.
func (a answer) code() string {
	var envelope struct {
		Code string `json:"code"`
	}
	if json.Unmarshal([]byte(a.body), &envelope) != nil {
		return ""
	}
	return envelope.Code
}
