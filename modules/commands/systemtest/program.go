// Package systemtest runs the built program as its users do: it starts servers, sends requests over HTTP, executes commands, kills
// processes and makes their system calls fail. The packages below it hold the tests; README.md lists them.
package systemtest

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

	"kontor/store/testenv"
)

const (
	binaryEnv     = "KONTOR_TEST_BINARY"
	raceBinaryEnv = "KONTOR_TEST_RACE_BINARY"
)

var (
	// withRace selects the program of KONTOR_TEST_RACE_BINARY.
	withRace bool
	// workDir is the directory of what the tests of a package share, such as the program.
	workDir string
)

// Main runs the tests of a package that belong to the full tier.
func Main(m *testing.M) { Exit(func() int { return testenv.Main(m, testenv.Full) }) }

// MainWithRace is like [Main] for tests that also look for data races in the program: it is the one that KONTOR_TEST_RACE_BINARY
// names, if it does.
func MainWithRace(m *testing.M) {
	withRace = true
	Main(m)
}

// Raced reports whether the program looks for data races, which takes several times the memory.
func Raced() bool { return withRace && os.Getenv(raceBinaryEnv) != "" }

// Exit runs the tests of a package, deletes what they share, and ends the process.
func Exit(run func() int) {
	code := run()
	if workDir != "" {
		os.RemoveAll(workDir)
	}
	os.Exit(code) //nolint:forbidigo // called by TestMain
}

// WorkDir returns the directory of what the tests of a package share.
var WorkDir = sync.OnceValues(func() (string, error) {
	var err error
	workDir, err = os.MkdirTemp("", "kontor-test-")
	return workDir, err
})

// Binary returns the path of the program that the environment names. Without a name, it builds the program once for the package.
var Binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(raceBinaryEnv); path != "" && withRace {
		return filepath.Abs(path)
	}
	if path := os.Getenv(binaryEnv); path != "" {
		return filepath.Abs(path)
	}
	return Build("kontor")
})

// Build builds the program with further flags of "go build", and returns its path.
func Build(name string, flags ...string) (string, error) {
	dir, err := WorkDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	build := exec.Command("go", append(append([]string{"build", "-trimpath", "-o", path}, flags...), ".")...)
	build.Dir = testenv.Root()
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
}

// Command returns a command that runs the program without the KONTOR_ variables of the environment.
func Command(tb testing.TB, environ []string, args ...string) *exec.Cmd {
	tb.Helper()
	path, err := Binary()
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

// Outcome is the result of a command.
type Outcome struct {
	Code           int
	Stdout, Stderr string
}

// Run executes a command of the program to its end.
func Run(tb testing.TB, environ []string, args ...string) Outcome {
	tb.Helper()
	return runToEnd(tb, Command(tb, environ, args...))
}

// RunWithInput is like [Run] with a text on standard input.
func RunWithInput(tb testing.TB, input string, args ...string) Outcome {
	tb.Helper()
	cmd := Command(tb, nil, args...)
	cmd.Stdin = strings.NewReader(input)
	return runToEnd(tb, cmd)
}

func runToEnd(tb testing.TB, cmd *exec.Cmd) Outcome {
	tb.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := testenv.Start(cmd); err != nil {
		tb.Fatal(err)
	}
	kill := time.AfterFunc(testenv.Limit(), func() { _ = cmd.Process.Kill() }) // a server that started although it should have failed
	defer kill.Stop()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	return Outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// ExpectSuccess stops the test unless the command exited with 0 and printed nothing to standard error. It returns the
// standard output.
func ExpectSuccess(tb testing.TB, o Outcome) string {
	tb.Helper()
	if o.Code != 0 || o.Stderr != "" {
		tb.Fatalf("exit code %d, stderr %q", o.Code, o.Stderr)
	}
	return o.Stdout
}

// ExpectFailure reports an error unless the command exited with 1, printed one line that contains want to standard error,
// and printed nothing else.
func ExpectFailure(t *testing.T, o Outcome, want string) {
	t.Helper()
	if o.Code != 1 || strings.Count(o.Stderr, "\n") != 1 || !strings.HasPrefix(o.Stderr, "kontor: ") || !strings.Contains(o.Stderr, want) {
		t.Errorf("exit code %d, stderr %q; want 1 and one line that contains %q", o.Code, o.Stderr, want)
	}
	if o.Stdout != "" {
		t.Errorf("a failed command printed %q", o.Stdout)
	}
}

// WordAfter returns the first word after label.
func WordAfter(text, label string) string {
	_, rest, _ := strings.Cut(text, label)
	if words := strings.Fields(rest); len(words) > 0 {
		return words[0]
	}
	return ""
}
