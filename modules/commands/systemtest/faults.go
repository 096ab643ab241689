package systemtest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"kontor/store/testenv"
)

// Strace returns a command that runs strace, which makes system calls fail or hang.
func Strace(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	return exec.Command(testenv.Tool(tb, "strace"), args...)
}

// Inject makes system calls of a running server on one file fail, until release is called. fault is an injection expression
// of strace.
func Inject(t *testing.T, p *Process, file, fault string) (release func()) {
	t.Helper()
	call, _, _ := strings.Cut(fault, ":")
	trace := Strace(t, "-f", "-p", fmt.Sprint(p.Cmd.Process.Pid), "-P", file, "-o", os.DevNull, "-e", "trace="+call, "-e", "inject="+fault)
	out, err := trace.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := testenv.Start(trace); err != nil {
		t.Fatal(err)
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

// ErrorLines returns the lines on standard error that are not log lines.
func (p *Process) ErrorLines() (lines []string) {
	for line := range strings.Lines(p.Stderr.String()) {
		if !strings.HasPrefix(line, "{") {
			lines = append(lines, line)
		}
	}
	return lines
}

// WaitForCheckpoint waits until all writes have been copied to the database file.
func (p *Process) WaitForCheckpoint() {
	p.TB.Helper()
	scraper := p.Scraper() // one connection: the listener of the metrics accepts few
	testenv.Wait(p.TB, "a checkpoint", func() bool {
		return strings.Contains(scraper.Do(p.TB, "GET", "/metrics", "", 200).Body, "kontor_store_log_uncopied_pages 0\n")
	})
}

// StallSyncs makes each fdatasync of the process hang until release is called.
func (p *Process) StallSyncs() (release func()) {
	p.TB.Helper()
	tracer := Strace(p.TB, "-f", "-p", fmt.Sprint(p.Cmd.Process.Pid), "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=600s")
	output, err := tracer.StderrPipe()
	if err != nil {
		p.TB.Fatal(err)
	}
	if err := testenv.Start(tracer); err != nil {
		p.TB.Fatal(err)
	}
	release = func() {
		_ = tracer.Process.Kill() // the kernel resumes the stalled calls
		_ = tracer.Wait()
	}
	p.TB.Cleanup(release)
	var line [4096]byte
	n, err := output.Read(line[:]) // "Process … attached"
	if err != nil || !strings.Contains(string(line[:n]), "attached") {
		p.TB.Fatalf("strace printed %q, %v", line[:n], err)
	}
	go io.Copy(io.Discard, output)
	return release
}
