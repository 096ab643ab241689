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

// strace prepares a run of strace, which makes system calls fail or hang. Without strace the test is skipped.
func strace(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		tb.Skip("install strace to run this test")
	}
	return exec.Command("strace", args...)
}

// inject makes system calls of a running server on one file fail, until the server has ended or release is called. fault is
// an injection in the syntax of strace.
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
		for lines.Scan() { // drain the output so that strace never blocks
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

// lastWords returns the lines on standard error that do not belong to the log.
func (p *process) lastWords() (said []string) {
	for line := range strings.Lines(p.stderr.String()) {
		if !strings.HasPrefix(line, "{") {
			said = append(said, line)
		}
	}
	return said
}

// diesOf expects that the server ends by itself with status 1 and one line that names the file and the error.
func diesOf(t *testing.T, p *process, file, cause string) {
	t.Helper()
	if code := p.code(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	said := p.lastWords()
	if len(said) != 1 || !strings.HasPrefix(said[0], "kontor: ") || !strings.Contains(said[0], file+": "+cause) {
		t.Errorf("it said %q, want one line with %q", said, file+": "+cause)
	}
}

// TestFaults_AFailedSyncOrWriteEndsTheProcess makes single system calls of the running server fail. Earlier acknowledged
// writes must exist after the next start.
func TestFaults_AFailedSyncOrWriteEndsTheProcess(t *testing.T) {
	for _, c := range []struct {
		name, file, fault string
		stop              bool // the failure occurs during shutdown
	}{
		{name: "sync of the log", file: "kontor.db-wal", fault: "fdatasync:error=EIO"},
		{name: "write of the log", file: "kontor.db-wal", fault: "pwrite64:error=EIO"},
		{name: "sync of the log in a checkpoint", file: "kontor.db-wal", fault: "fsync:error=EIO"},
		{name: "write of the database in a checkpoint", file: "kontor.db", fault: "pwrite64:error=EIO"},
		{name: "sync of the database in a checkpoint", file: "kontor.db", fault: "fsync:error=EIO"},
		{name: "write of the mark", file: "kontor.mark", fault: "pwrite64:error=EIO"},
		{name: "sync of the mark", file: "kontor.mark", fault: "fdatasync:error=EIO"},
		{name: "sync of the database at the end", file: "kontor.db", fault: "fsync:error=EIO", stop: true},
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
				_ = p.cmd.Process.Signal(os.Interrupt) // the shutdown writes a note to the database and fails
			} else if got, err := admin.try("POST", "/v1/customers", newCustomer); err == nil && got.status == 201 &&
				!strings.Contains(c.name, "checkpoint") && !strings.Contains(c.name, "sync of the mark") {
				t.Errorf("a write that the disk does not have was acknowledged: %s", got.body)
			}
			diesOf(t, p, path, "input/output error")

			p = start(t, dir)
			if got := p.admin().do(t, "GET", "/v1/customers/"+made.ID, "", 200); got.body != kept.body {
				t.Errorf("acknowledged %s, after the start %s", kept.body, got.body)
			}
			if code := p.stop(); code != 0 {
				t.Errorf("exit code %d: %s", code, p.stderr)
			}
			succeeds(t, run(t, nil, "check", "--data.dir", dir))
		})
	}
}

// waitForCheckpoint waits until all writes are in the database file, by polling the counter.
func (p *process) waitForCheckpoint() {
	p.tb.Helper()
	for !strings.Contains(p.client().do(p.tb, "GET", "/metrics", "", 200).body, "kontor_store_log_uncopied_pages 0\n") {
	}
}

// TestFaults_FullDiskRejectsWritesUntilSpaceIsFree checks that reads succeed on a full disk, and writes succeed again later.
func TestFaults_FullDiskRejectsWritesUntilSpaceIsFree(t *testing.T) {
	p := start(t, filepath.Join(t.TempDir(), "data"))
	admin := p.admin()
	release := inject(t, p, filepath.Join(p.dir(), "kontor.db-wal"), "pwrite64:error=ENOSPC")
	refused := admin.do(t, "POST", "/v1/customers", newCustomer, 503)
	if refused.header.Get("Retry-After") == "" {
		t.Error("the refusal has no Retry-After")
	}
	admin.do(t, "GET", "/v1/customers?limit=1", "", 200)
	p.client().do(t, "GET", "/readyz", "", 503)
	release()
	p.client().do(t, "GET", "/readyz", "", 200)
	admin.do(t, "POST", "/v1/customers", newCustomer, 201)
	if code := p.stop(); code != 0 || len(p.lastWords()) > 0 {
		t.Errorf("exit code %d, said %q", code, p.lastWords())
	}
}

// dir is the data directory that the server was started with.
func (p *process) dir() string {
	for i, arg := range p.cmd.Args {
		if arg == "--data.dir" {
			return p.cmd.Args[i+1]
		}
	}
	return ""
}

// TestFaults_TheStartReadsTheDisk checks the system calls of a start. Both files must be synced and dropped from the cache
// before the first page is read.
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
	if said, err := trace.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
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

// TestFaults_AMissingLogIsRefused checks that the start names the missing log. It serves only if the loss is accepted, and
// then records the loss in the audit trail.
func TestFaults_AMissingLogIsRefused(t *testing.T) {
	for name, damage := range map[string]func(log string) error{
		"missing":  os.Remove,
		"emptied":  func(log string) error { return os.Truncate(log, 0) },
		"cut off":  func(log string) error { return os.Truncate(log, 20_000) },
		"damaged":  func(log string) error { return flipByte(log, 5000) },
		"exchange": func(log string) error { return os.WriteFile(log, make([]byte, 8192), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			p := start(t, dir)
			admin := p.admin()
			p.waitForCheckpoint()
			inject(t, p, filepath.Join(dir, "kontor.db"), "pwrite64:error=ENOSPC") // no checkpoint from here on
			for range 20 {
				admin.do(t, "POST", "/v1/customers", newCustomer, 201)
			}
			p.kill()
			if err := damage(filepath.Join(dir, "kontor.db-wal")); err != nil {
				t.Fatal(err)
			}
			args := []string{"serve", "--server.listen=127.0.0.1:0", "--data.dir", dir}
			refused(t, run(t, givenSecrets, args...), "kontor.db-wal")
			refused(t, run(t, givenSecrets, args...), "--accept-loss")
			refused(t, run(t, nil, "check", "--data.dir", dir), "missing")

			p = start(t, dir, "--accept-loss")
			if n := p.admin().total(t, "/v1/audit?search.action=database.accept_loss"); n != 1 {
				t.Errorf("%d audit entries about the loss", n)
			}
			if code := p.stop(); code != 0 {
				t.Errorf("exit code %d: %s", code, p.stderr)
			}
			succeeds(t, run(t, nil, "check", "--data.dir", dir))
			if p := start(t, dir); p.stop() != 0 {
				t.Error("the loss is not over once it is accepted")
			}
		})
	}
}

func flipByte(path string, at int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, at); err != nil {
		return err
	}
	b[0] ^= 1
	_, err = f.WriteAt(b, at)
	return err
}
