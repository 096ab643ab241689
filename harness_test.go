package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// workDir is the directory of the built program.
var workDir string

// binary builds the program once for all tests, and returns its path.
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

// command returns a command that runs the program without the KONTOR_ variables of the environment.
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

// outcome is the result of a command.
type outcome struct {
	code           int
	stdout, stderr string
}

// run executes a command of the program to its end.
func run(tb testing.TB, environ []string, args ...string) outcome {
	tb.Helper()
	return runToEnd(tb, command(tb, environ, args...))
}

// runWithInput is like run with a text on standard input.
func runWithInput(tb testing.TB, input string, args ...string) outcome {
	tb.Helper()
	cmd := command(tb, nil, args...)
	cmd.Stdin = strings.NewReader(input)
	return runToEnd(tb, cmd)
}

func runToEnd(tb testing.TB, cmd *exec.Cmd) outcome {
	tb.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // a server that started although it should have failed
	defer kill.Stop()
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// expectSuccess stops the test unless the command exited with 0 and printed nothing to standard error. It returns the
// standard output.
func expectSuccess(tb testing.TB, o outcome) string {
	tb.Helper()
	if o.code != 0 || o.stderr != "" {
		tb.Fatalf("exit code %d, stderr %q", o.code, o.stderr)
	}
	return o.stdout
}

// expectFailure reports an error unless the command exited with 1, printed one line that contains want to standard error,
// and printed nothing else.
func expectFailure(t *testing.T, o outcome, want string) {
	t.Helper()
	if o.code != 1 || strings.Count(o.stderr, "\n") != 1 || !strings.HasPrefix(o.stderr, "kontor: ") || !strings.Contains(o.stderr, want) {
		t.Errorf("exit code %d, stderr %q; want 1 and one line that contains %q", o.code, o.stderr, want)
	}
	if o.stdout != "" {
		t.Errorf("a failed command printed %q", o.stdout)
	}
}

// wordAfter returns the first word after label.
func wordAfter(text, label string) string {
	_, rest, _ := strings.Cut(text, label)
	if words := strings.Fields(rest); len(words) > 0 {
		return words[0]
	}
	return ""
}

// waitUntil polls until a condition holds that another process brings about.
func waitUntil(tb testing.TB, condition func() bool) {
	tb.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	end := time.After(time.Minute)
	for !condition() {
		select {
		case <-tick.C:
		case <-end:
			tb.Fatal("the condition did not hold within a minute")
		}
	}
}
