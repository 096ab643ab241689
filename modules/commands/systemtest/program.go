// Package systemtest runs the built program as its users do: it starts servers, sends requests over HTTP, executes commands, kills
// processes and makes their system calls fail. The packages below it hold the tests; README.md lists them.
package systemtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
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
	// template is the data directory of a server that has started once, for the first [Start] of others.
	template struct {
		sync.Once
		dir string
	}
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
	return plainBinary()
})

// plainBinary is like [Binary], and never the program that looks for data races.
var plainBinary = sync.OnceValues(func() (string, error) {
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
	late := time.AfterFunc(testenv.Limit(), func() { // a server that started although it should have failed
		tb.Errorf("%v has not ended within %v", cmd.Args, testenv.Limit())
		_ = cmd.Process.Kill()
	})
	defer late.Stop()
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		tb.Fatal(err)
	}
	return Outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// backupProgress is a line that a backup prints every two seconds.
var backupProgress = regexp.MustCompile(`(?m)^ *\d+ % of \S+ MB, \S+ MB/s\n`)

// ExpectSuccess stops the test unless the command exited with 0 and printed nothing to standard error, except for the progress of a
// backup that is slow. It returns the standard output.
func ExpectSuccess(tb testing.TB, o Outcome) string {
	tb.Helper()
	if o.Code != 0 || backupProgress.ReplaceAllString(o.Stderr, "") != "" {
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
	Stdout Printed
	Stderr *Output
	ended  chan struct{}

	Listens func() // waits until the server listens or has ended; then url is set or empty
}

// Printed is the path of the file that holds the standard output of a process. Unlike a pipe, it has all that the process wrote before
// it logged that it listens.
type Printed string

func (p Printed) String() string {
	text, err := os.ReadFile(string(p))
	if err != nil {
		return err.Error()
	}
	return string(text)
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

// Start runs a server with the secrets of the tests and without rate limits. A data directory that does not exist is a copy
// of one that an earlier start has made: all are of one bank.
func Start(tb testing.TB, dir string, args ...string) *Process {
	tb.Helper()
	path, err := Binary()
	if err != nil {
		tb.Fatal(err)
	}
	return start(tb, path, dir, args...)
}

// StartPlain is like [Start], and never runs the program that looks for data races: a test that measures the memory needs the other one.
func StartPlain(tb testing.TB, dir string, args ...string) *Process {
	tb.Helper()
	path, err := plainBinary()
	if err != nil {
		tb.Fatal(err)
	}
	return start(tb, path, dir, args...)
}

func start(tb testing.TB, path, dir string, args ...string) *Process {
	tb.Helper()
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		setUp(tb, dir)
	}
	return StartProgram(tb, path, SecretsEnv, append([]string{"--data.dir", dir, "--rate_limits.enabled=false"}, args...)...)
}

// setUp copies the data directory of a server that has started once and stopped. A program that looks for data races would need
// seconds for the migrations.
func setUp(tb testing.TB, dir string) {
	tb.Helper()
	template.Do(func() {
		work, err := WorkDir()
		if err != nil {
			tb.Fatal(err)
		}
		path, err := plainBinary()
		if err != nil {
			tb.Fatal(err)
		}
		templateDir := filepath.Join(work, "template")
		if err := testenv.LinkEngineCache(templateDir); err != nil {
			tb.Fatal(err)
		}
		p := StartProgram(tb, path, SecretsEnv, "--data.dir", templateDir)
		if code := p.Stop(); code != 0 {
			tb.Fatalf("exit code %d: %s", code, p.Stderr)
		}
		template.dir = templateDir
	})
	if template.dir == "" {
		tb.Fatal("no template of a data directory")
	}
	copyDataDir(tb, template.dir, dir)
}

func copyDataDir(tb testing.TB, from, to string) {
	tb.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		tb.Fatal(err)
	}
	if err := os.Chmod(to, 0o700); err != nil {
		tb.Fatal(err)
	}
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
	p := &Process{TB: tb, Stdout: Printed(filepath.Join(tb.TempDir(), "stdout")), Stderr: &Output{}, ended: make(chan struct{})}
	p.Cmd = commandOf(path, environ, append(slices.Concat([]string{"serve", "--server.listen=127.0.0.1:0", "--metrics.listen=127.0.0.1:0"}, patience()), args...)...)
	stdout, err := os.Create(string(p.Stdout))
	if err != nil {
		tb.Fatal(err)
	}
	defer stdout.Close()
	p.Cmd.Stdout = stdout
	reader, writer := io.Pipe()
	p.Cmd.Stderr = io.MultiWriter(p.Stderr, writer)
	p.Cmd.WaitDelay = testenv.Limit() // a process of its own may keep the log open
	if err := testenv.Start(p.Cmd); err != nil {
		tb.Fatal(err)
	}
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
	go func() {
		_ = p.Cmd.Wait() // ProcessState holds the result
		writer.Close()
		close(p.ended)
	}()
	p.Listens = func() { tb.Helper(); p.await(listens, "listen") }
	return p
}

// patience returns the settings of a server that does not fail requests on a busy machine, and that takes its time to stop.
func patience() []string {
	const longest = 10 * time.Minute // that the settings accept
	limit := int(max(time.Second, min(testenv.Limit(), longest)).Seconds())
	return []string{fmt.Sprintf("--server.request_seconds=%d", limit), "--server.shutdown_seconds=3600"}
}

// await waits for something that the process does. A process that does not do it in time prints its goroutines and is ended, which fails
// the test.
func (p *Process) await(done <-chan struct{}, what string) {
	p.TB.Helper()
	timer := time.NewTimer(testenv.Limit())
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	}
	_ = p.Cmd.Process.Signal(syscall.SIGQUIT) // it may be suspended
	kill := time.AfterFunc(testenv.Limit(), func() { _ = p.Cmd.Process.Kill() })
	defer kill.Stop()
	<-p.ended
	<-done
	p.TB.Errorf("the server did not %s within %v:\n%s", what, testenv.Limit(), p.Stderr)
}

// Code waits for the end of the process and returns its exit code. It may be called repeatedly.
func (p *Process) Code() int {
	p.TB.Helper()
	p.await(p.ended, "end")
	return p.Cmd.ProcessState.ExitCode()
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
	p.TB.Helper()
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

// Strace returns a command that runs strace, which makes system calls fail or hang.
func Strace(tb testing.TB, args ...string) *exec.Cmd {
	tb.Helper()
	return exec.Command(testenv.Tool(tb, "strace"), args...)
}

// trace runs strace on all threads of a process until release is called, which sends it a signal.
func (p *Process) trace(end os.Signal, args ...string) (release func()) {
	p.TB.Helper()
	tracer := Strace(p.TB, append([]string{"-f", "-p", fmt.Sprint(p.Cmd.Process.Pid), "-o", os.DevNull}, args...)...)
	out, err := tracer.StderrPipe()
	if err != nil {
		p.TB.Fatal(err)
	}
	if err := testenv.Start(tracer); err != nil {
		p.TB.Fatal(err)
	}
	release = sync.OnceFunc(func() {
		_ = tracer.Process.Signal(end)
		_ = tracer.Wait()
	})
	p.TB.Cleanup(release)
	late := time.AfterFunc(testenv.Limit(), func() { _ = tracer.Process.Kill() })
	defer late.Stop()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "attached") {
			go io.Copy(io.Discard, out) // so that strace does not block on a full pipe
			return release
		}
	}
	p.TB.Fatal("strace did not attach")
	return nil
}

// Inject makes system calls of a running server on one file fail, until release is called. fault is an injection expression
// of strace.
func Inject(t *testing.T, p *Process, file, fault string) (release func()) {
	t.Helper()
	call, _, _ := strings.Cut(fault, ":")
	return p.trace(os.Interrupt, "-P", file, "-e", "trace="+call, "-e", "inject="+fault)
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
	return p.trace(os.Kill, "-e", "trace=fdatasync", "-e", "inject=fdatasync:delay_enter=600s") // the kernel resumes the stalled calls
}
