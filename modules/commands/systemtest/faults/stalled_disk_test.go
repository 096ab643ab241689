//go:build linux

package faults_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// TestStalledDisk_ReportsUnknownOutcomes stalls all syncs. Reads must work, writes must report an unknown outcome, and
// readiness must fail. Once syncs work, a retry with the same idempotency key must return the outcome.
func TestStalledDisk_ReportsUnknownOutcomes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := systemtest.Start(t, dir)
	admin := p.Admin() // may take longer than the second below
	p.Stop()
	p = systemtest.Start(t, dir, "--server.request_seconds=1")
	create := func(name string) (systemtest.Answer, error) {
		by := p.Client(admin.Headers...).With("Idempotency-Key", "key-"+name)
		return by.Try("POST", "/v1/customers", fmt.Sprintf(`{"type":"individual","first_name":"A","last_name":%q,"email":"a@example.ch"}`, name))
	}
	release := p.StallSyncs()
	names := []string{"first", "second", "third"}
	results := make(chan string, len(names))
	for _, name := range names {
		go func() {
			got, err := create(name)
			for began := time.Now(); got.Code() == "common.deadline_exceeded" && time.Since(began) < testenv.Limit(); {
				got, err = create(name) // the second was over before its turn
			}
			if err != nil || got.Status != 503 || got.Header.Get("Retry-After") == "" {
				results <- fmt.Sprintf("%s: got %d %s, %v", name, got.Status, got.Body, err)
				return
			}
			results <- got.Code()
		}()
	}
	probe, scraper := p.Client(), p.Scraper()
	testenv.Wait(t, "the server to detect the stall", func() bool {
		got, err := probe.Try("GET", "/readyz", "")
		if err != nil || got.Status != 200 && got.Status != 503 {
			t.Fatalf("readiness got %d %s, %v", got.Status, got.Body, err)
		}
		return strings.Contains(got.Body, `"database":"failed"`) && strings.Contains(scraper.Do(t, "GET", "/metrics", "", 200).Body, "kontor_store_stalled 1")
	})
	testenv.Wait(t, "a read", func() bool {
		got, err := admin.At(p).Try("GET", "/v1/customers", "")
		return err == nil && got.Status == 200
	})
	for range names {
		if code := testenv.Receive(t, "the answer to a write", results); code != "common.outcome_unknown" {
			t.Errorf("a write got %s", code)
		}
	}
	release()
	for _, name := range names {
		testenv.Wait(t, "the outcome of the write "+name, func() bool { // until the syncs have completed
			got, err := create(name)
			if err != nil || got.Status != 503 && (got.Status != 201 || got.Header.Get("Idempotency-Replayed") != "true") {
				t.Fatalf("%s: the retry returned %d %s, %v", name, got.Status, got.Body, err)
			}
			return got.Status == 201
		})
	}
	p.WaitUntilReady()
	p.Stop()
	p = systemtest.Start(t, dir)
	if n := admin.At(p).Total(t, "/v1/customers?limit=-1"); n != len(names) {
		t.Errorf("%d customers, want %d", n, len(names))
	}
}
