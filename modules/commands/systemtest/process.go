package systemtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"kontor/store/testenv"
)

// The secrets of all test servers.
const (
	AdminEmail    = "root@kontor.example"
	AdminPassword = "seven plain words nobody else would choose"
	APIKey        = "a-key-of-our-own-0123456789"
)

// SecretsEnv are the settings that give a server the secrets of the tests.
var SecretsEnv = []string{"KONTOR_ADMIN_EMAIL=" + AdminEmail, "KONTOR_ADMIN_PASSWORD=" + AdminPassword, "KONTOR_API_KEY=" + APIKey}

// Process is a running server.
type Process struct {
	TB     testing.TB
	Cmd    *exec.Cmd
	URL    string
	scrape string // URL of the metrics
	Stdout *Output
	Stderr *Output
	Code   func() int // waits for the end and returns the exit code; may be called repeatedly
	ended  chan struct{}

	Listens func() // waits until the server listens or has ended; then url is set or empty
}

// Output collects what a process writes.
type Output struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.String()
}

// Start runs a server with the secrets of the tests and without rate limits.
func Start(tb testing.TB, dir string, args ...string) *Process {
	tb.Helper()
	return StartWith(tb, SecretsEnv, append([]string{"--data.dir", dir, "--rate_limits.enabled=false"}, args...)...)
}

// StartWith runs a server on a free port and waits until it listens.
func StartWith(tb testing.TB, environ []string, args ...string) *Process {
	tb.Helper()
	path, err := Binary()
	if err != nil {
		tb.Fatal(err)
	}
	return StartProgram(tb, path, environ, args...)
}

// StartProgram is like [StartWith] for a program that runs the server, such as a script that sets limits.
func StartProgram(tb testing.TB, path string, environ []string, args ...string) *Process {
	tb.Helper()
	p := launchProgram(tb, path, environ, args...)
	if p.Listens(); p.URL == "" {
		tb.Fatalf("the server ended with %d: %s", p.Code(), p.Stderr)
	}
	return p
}

// Launch starts a server on a free port and does not wait for it.
func Launch(tb testing.TB, environ []string, args ...string) *Process {
	tb.Helper()
	path, err := Binary()
	if err != nil {
		tb.Fatal(err)
	}
	return launchProgram(tb, path, environ, args...)
}

func launchProgram(tb testing.TB, path string, environ []string, args ...string) *Process {
	tb.Helper()
	p := &Process{TB: tb, Stdout: &Output{}, Stderr: &Output{}, ended: make(chan struct{})}
	p.Cmd = commandOf(path, environ, append([]string{"serve", "--server.listen=127.0.0.1:0", "--metrics.listen=127.0.0.1:0"}, args...)...)
	p.Cmd.Stdout = p.Stdout
	reader, writer := io.Pipe()
	p.Cmd.Stderr = io.MultiWriter(p.Stderr, writer)
	if err := testenv.Start(p.Cmd); err != nil {
		tb.Fatal(err)
	}
	p.Code = sync.OnceValue(func() int {
		_ = p.Cmd.Wait() // ProcessState holds the result
		writer.Close()
		close(p.ended)
		return p.Cmd.ProcessState.ExitCode()
	})
	tb.Cleanup(func() {
		p.Kill()
		if log := p.Stderr.String(); strings.Contains(log, "WARNING: DATA RACE") {
			tb.Errorf("the program has a data race:\n%s", log)
		}
	})
	listens := make(chan struct{})
	go func() {
		p.URL, p.scrape = listening(reader)
		close(listens)
		io.Copy(io.Discard, reader)
	}()
	go p.Code()
	p.Listens = func() { <-listens }
	return p
}

// listening reads the log until the server listens. It returns its URL and that of its metrics, or "" when the log ends
// before.
func listening(log io.Reader) (url, metrics string) {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var entry struct{ Msg, Address, Metrics string }
		if err := json.Unmarshal(lines.Bytes(), &entry); err == nil && entry.Msg == "listening" {
			return "http://" + entry.Address, "http://" + entry.Metrics
		}
	}
	return "", ""
}

// Alive reports whether the process has not ended.
func (p *Process) Alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// Kill ends the process with SIGKILL.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // it may have ended already
	p.Code()
}

// Stop interrupts the process and returns its exit code.
func (p *Process) Stop() int {
	p.TB.Helper()
	if err := p.Cmd.Process.Signal(os.Interrupt); err != nil {
		p.TB.Fatal(err)
	}
	return p.Code()
}

// Dir returns the data directory of the server.
func (p *Process) Dir() string {
	for i, arg := range p.Cmd.Args {
		if arg == "--data.dir" {
			return p.Cmd.Args[i+1]
		}
	}
	return ""
}
