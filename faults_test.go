package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const newCustomer = `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`

// strace returns a command that runs strace, which makes system calls fail or hang. It skips the test without strace.
func strace(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		tb.Skip("install strace to run this test")
	}
	return exec.Command("strace", args...)
}

// inject makes system calls of a running server on one file fail, until release is called. fault is an injection expression
// of strace.
func inject(t *testing.T, p *process, file, fault string) (release func()) {
	t.Helper()
	call, _, _ := strings.Cut(fault, ":")
	trace := strace(t, "-f", "-p", fmt.Sprint(p.cmd.Process.Pid), "-P", file, "-o", os.DevNull, "-e", "trace="+call, "-e", "inject="+fault)
	out, err := trace.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := trace.Start(); err != nil {
		t.Fatalf("strace is needed: %v", err)
	}
	lines := bufio.NewScanner(out)
	attached := false
	for !attached && lines.Scan() {
		attached = strings.Contains(lines.Text(), "attached")
	}
	if !attached {
		t.Fatal("strace did not attach")
	}
	go func() {
		for lines.Scan() { // so that strace does not block on a full pipe
		}
	}()
	ended := false
	release = func() {
		if !ended {
			ended = true
			_ = trace.Process.Signal(os.Interrupt)
			_ = trace.Wait()
		}
	}
	t.Cleanup(release)
	return release
}

// errorLines returns the lines on standard error that are not log lines.
func (p *process) errorLines() (lines []string) {
	for line := range strings.Lines(p.stderr.String()) {
		if !strings.HasPrefix(line, "{") {
			lines = append(lines, line)
		}
	}
	return lines
}

// expectDiskFailure reports an error unless the server exits with 1 and prints one line with the file and the error.
func expectDiskFailure(t *testing.T, p *process, file, cause string) {
	t.Helper()
	if code := p.code(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	lines := p.errorLines()
	if len(lines) != 1 || !strings.HasPrefix(lines[0], "kontor: ") || !strings.Contains(lines[0], file+": "+cause) {
		t.Errorf("got %q, want one line with %q", lines, file+": "+cause)
	}
}

// TestFaults_AFailedSyncOrWriteEndsTheProcess makes single system calls of the running server fail. A write that was
// acknowledged before must exist after the next start.
func TestFaults_AFailedSyncOrWriteEndsTheProcess(t *testing.T) {
	for _, c := range []struct {
		name, file, fault string
		stop              bool // the failure occurs during the shutdown
	}{
		{name: "sync of the log", file: "kontor.db-wal", fault: "fdatasync:error=EIO"},
		{name: "write of the log", file: "kontor.db-wal", fault: "pwrite64:error=EIO"},
		{name: "sync of the log in a checkpoint", file: "kontor.db-wal", fault: "fsync:error=EIO"},
		{name: "write of the database in a checkpoint", file: "kontor.db", fault: "pwrite64:error=EIO"},
		{name: "sync of the database in a checkpoint", file: "kontor.db", fault: "fsync:error=EIO"},
		{name: "write of the mark", file: "kontor.mark", fault: "pwrite64:error=EIO"},
		{name: "sync of the mark", file: "kontor.mark", fault: "fdatasync:error=EIO"},
		{name: "sync of the database at the shutdown", file: "kontor.db", fault: "fsync:error=EIO", stop: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			p := start(t, dir)
			admin := p.admin()
			kept := admin.do(t, "POST", "/v1/customers", newCustomer, 201)
			var made struct{ ID string }
			kept.into(t, &made)
			path := filepath.Join(dir, c.file)
			if c.stop {
				p.waitForCheckpoint()
			}
			inject(t, p, path, c.fault)
			if c.stop {
				_ = p.cmd.Process.Signal(os.Interrupt) // the shutdown writes to the database
			} else if got, err := admin.try("POST", "/v1/customers", newCustomer); err == nil && got.status == 201 &&
				!strings.Contains(c.name, "checkpoint") && !strings.Contains(c.name, "sync of the mark") {
				t.Errorf("a write that did not reach the disk was acknowledged: %s", got.body)
			}
			expectDiskFailure(t, p, path, "input/output error")

			p = start(t, dir)
			if got := p.admin().do(t, "GET", "/v1/customers/"+made.ID, "", 200); got.body != kept.body {
				t.Errorf("acknowledged %s, after the start %s", kept.body, got.body)
			}
			if code := p.stop(); code != 0 {
				t.Errorf("exit code %d: %s", code, p.stderr)
			}
			expectSuccess(t, run(t, nil, "check", "--data.dir", dir))
		})
	}
}

// waitForCheckpoint waits until all writes have been copied to the database file.
func (p *process) waitForCheckpoint() {
	p.tb.Helper()
	for !strings.Contains(p.scraper().do(p.tb, "GET", "/metrics", "", 200).body, "kontor_store_log_uncopied_pages 0\n") {
	}
}

// On a full disk, reads succeed and writes are rejected. Once the disk has free space, writes succeed again.
func TestFaults_AFullDiskRejectsWritesOnly(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	admin := p.admin()
	release := inject(t, p, filepath.Join(p.dir(), "kontor.db-wal"), "pwrite64:error=ENOSPC")
	rejected := admin.do(t, "POST", "/v1/customers", newCustomer, 503)
	if rejected.header.Get("Retry-After") == "" {
		t.Error("the response has no Retry-After")
	}
	admin.do(t, "GET", "/v1/customers?limit=1", "", 200)
	p.client().do(t, "GET", "/readyz", "", 503)
	release()
	p.client().do(t, "GET", "/readyz", "", 200)
	admin.do(t, "POST", "/v1/customers", newCustomer, 201)
	if code := p.stop(); code != 0 || len(p.errorLines()) > 0 {
		t.Errorf("exit code %d, error output %q", code, p.errorLines())
	}
}

// TestFaults_TheStartReadsTheDisk checks the system calls of a start: it must sync both files and drop them from the page
// cache before it reads the first page.
func TestFaults_TheStartReadsTheDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir)
	p.admin()
	p.kill()
	out := filepath.Join(t.TempDir(), "trace")
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	db, log := filepath.Join(dir, "kontor.db"), filepath.Join(dir, "kontor.db-wal")
	trace := strace(t, "-f", "-y", "-P", db, "-P", log, "-e", "trace=fsync,fadvise64,pread64,read,mmap", "-o", out,
		path, "user", "role", adminEmail, "--data.dir", dir)
	if out, err := trace.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	calls, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{db, log} {
		synced := strings.Index(string(calls), "<"+file+">) = 0") // the first is the fsync
		dropped := strings.Index(string(calls), "<"+file+">, 0, 0, POSIX_FADV_DONTNEED) = 0")
		if synced < 0 || dropped < synced {
			t.Errorf("%s was not synced and dropped: %.2000s", file, calls)
			continue
		}
		if before := string(calls[:dropped]); strings.Contains(before, "read(") && strings.Contains(before, "read64(") {
			t.Errorf("%s was read before it was dropped: %s", file, before)
		}
	}
}
