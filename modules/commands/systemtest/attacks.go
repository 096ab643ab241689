package systemtest

import (
	"strings"
	"testing"
)

// Attack is a hostile request and the expected response. The tables of attacks are in the files hostile_*_test.go.
type Attack struct {
	Name         string
	By           *Client
	Method, Path string
	Body         string
	Status       int
	Code         string   // expected error code; empty means any body
	Contains     []string // texts that the body must contain
	Excludes     []string // texts that the body must not contain
}

// RunAttacks sends each request and compares the response with the expected one.
func RunAttacks(t *testing.T, attacks []Attack) {
	t.Helper()
	for _, a := range attacks {
		t.Run(a.Name, func(t *testing.T) {
			got, err := a.By.Try(a.Method, a.Path, a.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != a.Status {
				t.Fatalf("%s %.200s: got %d %.300s, want %d", a.Method, a.Path, got.Status, got.Body, a.Status)
			}
			if code := got.Code(); a.Code != "" && code != a.Code {
				t.Errorf("%s %.200s: got code %q, want %q", a.Method, a.Path, code, a.Code)
			}
			for _, text := range a.Contains {
				if !strings.Contains(got.Body, text) {
					t.Errorf("%s %.200s: %.300s does not contain %q", a.Method, a.Path, got.Body, text)
				}
			}
			for _, text := range a.Excludes {
				if strings.Contains(got.Body, text) {
					t.Errorf("%s %.200s: %.300s contains %q", a.Method, a.Path, got.Body, text)
				}
			}
		})
	}
}
