package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// The secrets of all test servers.
const (
	adminEmail    = "root@kontor.example"
	adminPassword = "seven plain words nobody else would choose"
	apiKey        = "a-key-of-our-own-0123456789"
)

var secretsEnv = []string{"KONTOR_ADMIN_EMAIL=" + adminEmail, "KONTOR_ADMIN_PASSWORD=" + adminPassword, "KONTOR_API_KEY=" + apiKey}

// process is a running server.
type process struct {
	tb     testing.TB
	cmd    *exec.Cmd
	url    string
	scrape string // URL of the metrics
	stdout *output
	stderr *output
	code   func() int // waits for the end and returns the exit code; may be called repeatedly
	ended  chan struct{}

	listens func() // waits until the server listens or has ended; then url is set or empty
}

// output collects what a process writes.
type output struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.data.String()
}

// start runs a server with the secrets of the tests and without rate limits.
func start(tb testing.TB, dir string, args ...string) *process {
	tb.Helper()
	return startWith(tb, secretsEnv, append([]string{"--data.dir", dir, "--rate_limits.enabled=false"}, args...)...)
}

// startWith runs a server on a free port and waits until it listens.
func startWith(tb testing.TB, environ []string, args ...string) *process {
	tb.Helper()
	path, err := binary()
	if err != nil {
		tb.Fatal(err)
	}
	return startProgram(tb, path, environ, args...)
}

// startProgram is like startWith for a program that runs the server, such as a script that sets limits.
func startProgram(tb testing.TB, path string, environ []string, args ...string) *process {
	tb.Helper()
	p := launchProgram(tb, path, environ, args...)
	if p.listens(); p.url == "" {
		tb.Fatalf("the server ended with %d: %s", p.code(), p.stderr)
	}
	return p
}

// launch starts a server on a free port and does not wait for it.
func launch(tb testing.TB, environ []string, args ...string) *process {
	tb.Helper()
	path, err := binary()
	if err != nil {
		tb.Fatal(err)
	}
	return launchProgram(tb, path, environ, args...)
}

func launchProgram(tb testing.TB, path string, environ []string, args ...string) *process {
	tb.Helper()
	p := &process{tb: tb, stdout: &output{}, stderr: &output{}, ended: make(chan struct{})}
	p.cmd = commandOf(path, environ, append([]string{"serve", "--server.listen=127.0.0.1:0", "--metrics.listen=127.0.0.1:0"}, args...)...)
	p.cmd.Stdout = p.stdout
	reader, writer := io.Pipe()
	p.cmd.Stderr = io.MultiWriter(p.stderr, writer)
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p.code = sync.OnceValue(func() int {
		_ = p.cmd.Wait() // ProcessState holds the result
		writer.Close()
		close(p.ended)
		return p.cmd.ProcessState.ExitCode()
	})
	tb.Cleanup(p.kill)
	listens := make(chan struct{})
	go func() {
		p.url, p.scrape = listening(reader)
		close(listens)
		io.Copy(io.Discard, reader)
	}()
	go p.code()
	p.listens = func() { <-listens }
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

// alive reports whether the process has not ended.
func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended already
	p.code()
}

// stop interrupts the process and returns its exit code.
func (p *process) stop() int {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.tb.Fatal(err)
	}
	return p.code()
}

// dir returns the data directory of the server.
func (p *process) dir() string {
	for i, arg := range p.cmd.Args {
		if arg == "--data.dir" {
			return p.cmd.Args[i+1]
		}
	}
	return ""
}
