package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// The tests of this package run the built program as users do: they start it, send HTTP requests, and kill it.

// Secrets of every test server.
const (
	adminEmail    = "root@kontor.example"
	adminPassword = "seven plain words nobody else would choose"
	apiKey        = "a-key-of-our-own-0123456789"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if workDir != "" {
		os.RemoveAll(workDir)
	}
	os.Exit(code)
}

var workDir string // of the built program

// binary builds the program once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	var err error
	if workDir, err = os.MkdirTemp("", "kontor-test-"); err != nil {
		return "", err
	}
	path := filepath.Join(workDir, "kontor")
	build := exec.Command("go", "build", "-trimpath", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// command prepares a run of the program without the settings in the environment of the tester.
func command(tb testing.TB, environ []string, args ...string) *exec.Cmd {
	tb.Helper()
	path, err := binary()
	if err != nil {
		tb.Fatal(err)
	}
	return commandOf(path, environ, args...)
}

func commandOf(path string, environ []string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	for _, e := range os.Environ() {
		if !strings.HasPrefix(e, "KONTOR_") {
			cmd.Env = append(cmd.Env, e)
		}
	}
	cmd.Env = append(cmd.Env, environ...)
	return cmd
}

// ended is the result of a run of the program.
type ended struct {
	code           int
	stdout, stderr string
}

// run runs the program until it ends.
func run(tb testing.TB, environ []string, args ...string) ended {
	tb.Helper()
	return toEnd(tb, command(tb, environ, args...))
}

// runWithInput is run with a text on standard input.
func runWithInput(tb testing.TB, input string, args ...string) ended {
	tb.Helper()
	cmd := command(tb, nil, args...)
	cmd.Stdin = strings.NewReader(input)
	return toEnd(tb, cmd)
}

func toEnd(tb testing.TB, cmd *exec.Cmd) ended {
	tb.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // in case a server starts unexpectedly
	defer kill.Stop()
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	return ended{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// succeeds stops the test unless the run ended with 0 and without output on standard error.
func succeeds(tb testing.TB, e ended) string {
	tb.Helper()
	if e.code != 0 || e.stderr != "" {
		tb.Fatalf("exit code %d, stderr %q", e.code, e.stderr)
	}
	return e.stdout
}

// process is a running server.
type process struct {
	tb     testing.TB
	cmd    *exec.Cmd
	url    string
	stdout *output
	stderr *output
	code   func() int // waits for the end; may be called several times
}

// output collects the output of a process.
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

var givenSecrets = []string{"KONTOR_ADMIN_EMAIL=" + adminEmail, "KONTOR_ADMIN_PASSWORD=" + adminPassword, "KONTOR_API_KEY=" + apiKey}

// start runs a server with fixed secrets and without rate limits.
func start(tb testing.TB, dir string, args ...string) *process {
	tb.Helper()
	return startWith(tb, givenSecrets, append([]string{"--data.dir", dir, "--rate_limits.enabled=false"}, args...)...)
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

// startProgram is startWith for a program that wraps the server.
func startProgram(tb testing.TB, path string, environ []string, args ...string) *process {
	tb.Helper()
	p := &process{tb: tb, stdout: &output{}, stderr: &output{}}
	p.cmd = commandOf(path, environ, append([]string{"serve", "--server.listen=127.0.0.1:0"}, args...)...)
	p.cmd.Stdout = p.stdout
	reader, writer := io.Pipe()
	p.cmd.Stderr = io.MultiWriter(p.stderr, writer)
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	p.code = sync.OnceValue(func() int {
		_ = p.cmd.Wait() // the exit code has the result
		writer.Close()
		return p.cmd.ProcessState.ExitCode()
	})
	tb.Cleanup(p.kill)
	url := make(chan string, 1)
	go func() {
		url <- listening(reader)
		io.Copy(io.Discard, reader)
	}()
	go p.code()
	if p.url = <-url; p.url == "" {
		tb.Fatalf("the server ended with %d: %s", p.code(), p.stderr)
	}
	return p
}

// listening reads the log up to the line with the address of the server. It returns "" if the server ended before.
func listening(log io.Reader) string {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var entry struct{ Msg, Address string }
		if err := json.Unmarshal(lines.Bytes(), &entry); err == nil && entry.Msg == "listening" {
			return "http://" + entry.Address
		}
	}
	return ""
}

// kill ends the process abruptly, as a loss of power would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // the process may have ended by itself
	p.code()
}

// stop asks the process to end and returns its exit code.
func (p *process) stop() int {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.tb.Fatal(err)
	}
	return p.code()
}
