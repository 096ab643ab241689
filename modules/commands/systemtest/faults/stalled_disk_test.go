//go:build linux

package faults_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
)

// TestStalledDisk_ReportsUnknownOutcomes stalls all syncs. Reads must work, writes must report an unknown outcome, and
// readiness must fail. Once syncs work, a retry with the same idempotency key must return the outcome.
func TestStalledDisk_ReportsUnknownOutcomes(t *testing.T) {
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"), "--server.request_seconds=1")
	admin := p.Admin()
	create := func(name string) (*systemtest.Client, string) {
		return p.Client(admin.Headers...).With("Idempotency-Key", "key-"+name), fmt.Sprintf(`{"type":"individual","first_name":"A","last_name":%q,"email":"a@example.ch"}`, name)
	}
	release := p.StallSyncs()
	names := []string{"first", "second", "third"}
	results := make(chan string, len(names))
	for _, name := range names {
		by, body := create(name)
		go func() {
			got, err := by.Try("POST", "/v1/customers", body)
			if err != nil || got.Status != 503 || got.Header.Get("Retry-After") == "" {
				results <- fmt.Sprintf("%s: got %d %s, %v", name, got.Status, got.Body, err)
				return
			}
			results <- got.Code()
		}()
	}
	probe := p.Client()
	for ready := 200; ready == 200; { // the server detects a stall after some seconds
		got, err := probe.Try("GET", "/readyz", "")
		if err != nil {
			t.Fatal(err)
		}
		if ready = got.Status; ready != 200 && (ready != 503 || !strings.Contains(got.Body, `"database":"failed"`)) {
			t.Fatalf("readiness got %d %s", got.Status, got.Body)
		}
	}
	systemtest.RunAttacks(t, []systemtest.Attack{
		{Name: "metrics", By: p.Scraper(), Method: "GET", Path: "/metrics", Status: 200, Contains: []string{"kontor_store_stalled 1"}},
		{Name: "reading", By: admin, Method: "GET", Path: "/v1/customers", Status: 200},
	})
	for range names {
		if code := <-results; code != "common.outcome_unknown" {
			t.Errorf("a write got %s", code)
		}
	}
	release()
	for _, name := range names {
		by, body := create(name)
		got, err := by.Try("POST", "/v1/customers", body)
		for err == nil && got.Status == 503 { // until the syncs have completed
			got, err = by.Try("POST", "/v1/customers", body)
		}
		if err != nil || got.Status != 201 || got.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: the retry returned %d %s, %v", name, got.Status, got.Body, err)
		}
	}
	if n := admin.Total(t, "/v1/customers?limit=-1"); n != len(names) {
		t.Errorf("%d customers, want %d", n, len(names))
	}
	admin.Do(t, "GET", "/readyz", "", 200)
}
