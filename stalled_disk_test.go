//go:build linux

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
)

// stallSyncs makes each fdatasync of the process hang until release is called.
func (p *process) stallSyncs() (release func()) {
	p.tb.Helper()
	tracer := strace(p.tb, "-f", "-p", fmt.Sprint(p.cmd.Process.Pid), "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=600s")
	output, err := tracer.StderrPipe()
	if err != nil {
		p.tb.Fatal(err)
	}
	if err := tracer.Start(); err != nil {
		p.tb.Fatal(err)
	}
	release = func() {
		_ = tracer.Process.Kill() // the kernel resumes the stalled calls
		_ = tracer.Wait()
	}
	p.tb.Cleanup(release)
	var line [4096]byte
	n, err := output.Read(line[:]) // "Process … attached"
	if err != nil || !strings.Contains(string(line[:n]), "attached") {
		p.tb.Fatalf("strace printed %q, %v", line[:n], err)
	}
	go io.Copy(io.Discard, output)
	return release
}

// TestStalledDisk_ReportsUnknownOutcomes stalls all syncs. Reads must work, writes must report an unknown outcome, and
// readiness must fail. Once syncs work, a retry with the same idempotency key must return the outcome.
func TestStalledDisk_ReportsUnknownOutcomes(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"), "--server.request_seconds=1")
	admin := p.admin()
	create := func(name string) (*client, string) {
		return p.client(admin.headers...).with("Idempotency-Key", "key-"+name), fmt.Sprintf(`{"type":"individual","first_name":"A","last_name":%q,"email":"a@example.ch"}`, name)
	}
	release := p.stallSyncs()
	names := []string{"first", "second", "third"}
	results := make(chan string, len(names))
	for _, name := range names {
		by, body := create(name)
		go func() {
			got, err := by.try("POST", "/v1/customers", body)
			if err != nil || got.status != 503 || got.header.Get("Retry-After") == "" {
				results <- fmt.Sprintf("%s: got %d %s, %v", name, got.status, got.body, err)
				return
			}
			results <- got.code()
		}()
	}
	probe := p.client()
	for ready := 200; ready == 200; { // the server detects a stall after some seconds
		got, err := probe.try("GET", "/readyz", "")
		if err != nil {
			t.Fatal(err)
		}
		if ready = got.status; ready != 200 && (ready != 503 || !strings.Contains(got.body, `"database":"failed"`)) {
			t.Fatalf("readiness got %d %s", got.status, got.body)
		}
	}
	runAttacks(t, []attack{
		{name: "metrics", by: p.scraper(), method: "GET", path: "/metrics", status: 200, contains: []string{"kontor_store_stalled 1"}},
		{name: "reading", by: admin, method: "GET", path: "/v1/customers", status: 200},
	})
	for range names {
		if code := <-results; code != "common.outcome_unknown" {
			t.Errorf("a write got %s", code)
		}
	}
	release()
	for _, name := range names {
		by, body := create(name)
		got, err := by.try("POST", "/v1/customers", body)
		for err == nil && got.status == 503 { // until the syncs have completed
			got, err = by.try("POST", "/v1/customers", body)
		}
		if err != nil || got.status != 201 || got.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: the retry returned %d %s, %v", name, got.status, got.body, err)
		}
	}
	if n := admin.total(t, "/v1/customers?limit=-1"); n != len(names) {
		t.Errorf("%d customers, want %d", n, len(names))
	}
	admin.do(t, "GET", "/readyz", "", 200)
}
