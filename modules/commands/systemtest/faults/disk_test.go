package faults_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
)

const newCustomer = `{"first_name":"Anna","last_name":"Muster","email":"anna@example.ch"}`

// expectDiskFailure reports an error unless the server exits with 1 and prints one line with the file and the error.
func expectDiskFailure(t *testing.T, p *systemtest.Process, file, cause string) {
	t.Helper()
	if code := p.Code(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	lines := p.ErrorLines()
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
			p := systemtest.Start(t, dir)
			admin := p.Admin()
			kept := admin.Do(t, "POST", "/v1/customers", newCustomer, 201)
			var made struct{ ID string }
			kept.Decode(t, &made)
			path := filepath.Join(dir, c.file)
			if c.stop {
				p.WaitForCheckpoint()
			}
			systemtest.Inject(t, p, path, c.fault)
			if c.stop {
				_ = p.Cmd.Process.Signal(os.Interrupt) // the shutdown writes to the database
			} else if got, err := admin.Try("POST", "/v1/customers", newCustomer); err == nil && got.Status == 201 &&
				!strings.Contains(c.name, "checkpoint") && !strings.Contains(c.name, "sync of the mark") {
				t.Errorf("a write that did not reach the disk was acknowledged: %s", got.Body)
			}
			expectDiskFailure(t, p, path, "input/output error")

			p = systemtest.Start(t, dir)
			if got := p.Admin().Do(t, "GET", "/v1/customers/"+made.ID, "", 200); got.Body != kept.Body {
				t.Errorf("acknowledged %s, after the start %s", kept.Body, got.Body)
			}
			if code := p.Stop(); code != 0 {
				t.Errorf("exit code %d: %s", code, p.Stderr)
			}
			systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))
		})
	}
}

// On a full disk, reads succeed and writes are rejected. Once the disk has free space, writes succeed again.
func TestFaults_AFullDiskRejectsWritesOnly(t *testing.T) {
	p := systemtest.Start(t, filepath.Join(t.TempDir(), "data"))
	admin := p.Admin()
	release := systemtest.Inject(t, p, filepath.Join(p.Dir(), "kontor.db-wal"), "pwrite64:error=ENOSPC")
	rejected := admin.Do(t, "POST", "/v1/customers", newCustomer, 503)
	if rejected.Header.Get("Retry-After") == "" {
		t.Error("the response has no Retry-After")
	}
	admin.Do(t, "GET", "/v1/customers?limit=1", "", 200)
	p.Client().Do(t, "GET", "/readyz", "", 503)
	release()
	p.WaitUntilReady()
	admin.Do(t, "POST", "/v1/customers", newCustomer, 201)
	if code := p.Stop(); code != 0 || len(p.ErrorLines()) > 0 {
		t.Errorf("exit code %d, error output %q", code, p.ErrorLines())
	}
}

// TestFaults_TheStartReadsTheDisk checks the system calls of a start: it must sync both files and drop them from the page
// cache before it reads the first page.
func TestFaults_TheStartReadsTheDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := systemtest.Start(t, dir)
	p.Admin()
	p.Kill()
	out := filepath.Join(t.TempDir(), "trace")
	path, err := systemtest.Binary()
	if err != nil {
		t.Fatal(err)
	}
	db, log := filepath.Join(dir, "kontor.db"), filepath.Join(dir, "kontor.db-wal")
	trace := systemtest.Strace(t, "-f", "-y", "-P", db, "-P", log, "-e", "trace=fsync,fadvise64,pread64,read,mmap", "-e", "signal=none", "-o", out,
		path, "user", "role", systemtest.AdminEmail, "--data.dir", dir)
	if out, err := trace.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	calls, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{db, log} {
		// The end of a call is on another line where other threads have called meanwhile.
		synced := regexp.MustCompile(`fsync\(\d+<` + regexp.QuoteMeta(file) + `>`).FindStringIndex(string(calls))
		dropped := strings.Index(string(calls), "<"+file+">, 0, 0, POSIX_FADV_DONTNEED")
		if synced == nil || dropped < synced[0] || strings.Contains(string(calls), " = -1 ") {
			t.Errorf("%s was not synced and dropped: %.2000s", file, calls)
			continue
		}
		if before := string(calls[:dropped]); strings.Contains(before, "read(") && strings.Contains(before, "read64(") {
			t.Errorf("%s was read before it was dropped: %s", file, before)
		}
	}
}
