// Package testenv answers what a run of the tests asks of a test: which tier runs, how patient it is on a busy machine, which
// programs must exist, and that a child process ends with its test.
//
// There are three tiers. The default tier is plain "go test ./...": it needs Go alone. KONTOR_TEST=full adds all that needs
// other programs (PostgreSQL, browsers, strace) or much time; a missing program is a failure there. KONTOR_TEST=soak is the full
// tier with many more rounds of the random tests. modules/commands/systemtest/README.md lists what belongs to which tier.
package testenv

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Tier is how much of the tests runs.
type Tier int

// The tiers. Each contains those before it.
const (
	Default Tier = iota
	Full
	Soak
)

const (
	tierEnv     = "KONTOR_TEST"
	patienceEnv = "KONTOR_TEST_PATIENCE"
)

var current = sync.OnceValue(func() Tier {
	switch value := os.Getenv(tierEnv); value {
	case "":
		return Default
	case "full":
		return Full
	case "soak":
		return Soak
	default:
		panic(fmt.Sprintf("%s is %q, want full or soak", tierEnv, value))
	}
})

// Runs reports whether the tests of a tier run.
func Runs(tier Tier) bool { return current() >= tier }

// Need skips a test unless the tests of its tier run.
func Need(tb testing.TB, tier Tier) {
	tb.Helper()
	if !Runs(tier) {
		tb.Skipf("this test belongs to the full tier: set %s=full", tierEnv)
	}
}

// Main runs the tests of a package whose tests all belong to a tier, and returns the exit code. If the tier does not run, the go
// command prints "[no tests to run]" beside the name of the package.
func Main(m *testing.M, tier Tier) int {
	if !Runs(tier) {
		fmt.Println("testing: warning: no tests to run") //nolint:forbidigo // the go command searches the output for this line
		return 0
	}
	return m.Run()
}

// Rounds returns how often a random test repeats what it does in the tier that runs.
func Rounds(byDefault, full, soak int) int { return [...]int{byDefault, full, soak}[current()] }

// Checks sets how many cases a property test of rapid draws, in the tier that runs. It holds until the end of the test.
func Checks(tb testing.TB, byDefault, full, soak int) {
	tb.Helper()
	const name = "rapid.checks"
	before := flag.Lookup(name).Value.String()
	set := func(value string) {
		if err := flag.Set(name, value); err != nil {
			tb.Fatal(err)
		}
	}
	set(strconv.Itoa(Rounds(byDefault, full, soak)))
	tb.Cleanup(func() { set(before) })
}

// EngineCache returns a directory that keeps the compiled PDF engine for the tests of all packages, or "" for a user without a cache
// directory. Compiling it takes three seconds of processor time, and ten times as much with the race detector. Each version of the
// compiler has a directory of its own, because a test program does not know the versions of its modules.
func EngineCache() string {
	const compiler = "github.com/tetratelabs/wazero "
	modules, err := os.ReadFile(Path("go.mod"))
	_, after, found := strings.Cut(string(modules), compiler)
	dir, noCache := os.UserCacheDir()
	if err != nil || noCache != nil || !found {
		return ""
	}
	return filepath.Join(dir, "kontor-tests", "pdf-engine-"+strings.Fields(after)[0])
}

// LinkEngineCache lets a server with a data directory use [EngineCache].
func LinkEngineCache(dataDir string) error {
	shared := EngineCache()
	if shared == "" {
		return nil
	}
	if err := errors.Join(os.MkdirAll(shared, 0o700), os.MkdirAll(dataDir, 0o700)); err != nil {
		return err
	}
	return os.Symlink(shared, filepath.Join(dataDir, "cache"))
}

// Tool returns the path of a program. The test fails without it: only tests of the full tier need programs besides Go.
func Tool(tb testing.TB, name string) string {
	tb.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		tb.Fatalf("this test needs the program %s: %v", name, err)
	}
	return path
}

// Directory returns the directory that an environment variable names. The test fails without it. what names what must be installed
// there.
func Directory(tb testing.TB, variable, what string) string {
	tb.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		tb.Fatalf("this test needs %s: name its directory in %s", what, variable)
	}
	return dir
}

// limit is how long a test waits for something that must happen before it fails.
const limit = time.Minute

// Limit returns how long a test waits for something that must happen before it fails: a minute, times the number in
// KONTOR_TEST_PATIENCE. It exists to end a test that hangs. A test must not prove that something is fast with it.
var Limit = sync.OnceValue(func() time.Duration {
	text := os.Getenv(patienceEnv)
	if text == "" {
		return limit
	}
	factor, err := strconv.ParseFloat(text, 64)
	if err != nil || factor <= 0 {
		panic(fmt.Sprintf("%s is %q, want a positive number", patienceEnv, text))
	}
	return time.Duration(factor * float64(limit))
})

// The pause between two looks at a condition that another process brings about is a tenth of the time so far, within these bounds.
const (
	shortestPause = 5 * time.Millisecond
	longestPause  = 50 * time.Millisecond
)

// Wait polls until a condition holds that another goroutine or process brings about. It fails the test after [Limit]. what
// completes the sentence "waited for …".
func Wait(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	began := time.Now()
	tick := time.NewTicker(shortestPause)
	defer tick.Stop()
	for !holds() {
		waited := time.Since(began)
		if waited > Limit() {
			tb.Fatalf("waited for %s in vain for %s", what, Limit())
		}
		tick.Reset(max(shortestPause, min(waited/10, longestPause)))
		<-tick.C
	}
}

// Receive returns the next value of a channel, or the zero value once it is closed. It fails the test after [Limit]. what completes the
// sentence "waited for …".
func Receive[T any](tb testing.TB, what string, from <-chan T) T {
	tb.Helper()
	timer := time.NewTimer(Limit())
	defer timer.Stop()
	var value T
	select {
	case value = <-from:
	case <-timer.C:
		tb.Fatalf("waited for %s in vain for %s", what, Limit())
	}
	return value
}

// starter is a goroutine that starts processes on a thread of its own, which lives as long as the test process. The kernel binds a
// child to the thread that started it (see [Child]), and Go may end the threads of other goroutines.
var starter = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
})

// Start starts a process that the kernel kills when the test process ends, whatever ends it.
func Start(cmd *exec.Cmd) error {
	Child(cmd)
	started := make(chan error)
	starter() <- func() { started <- cmd.Start() }
	return <-started
}

// Root returns the root directory of the project. Tests run in the directories of their packages.
var Root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, found := os.Stat(filepath.Join(dir, "go.mod")); found == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			err = os.ErrNotExist
		}
		dir = filepath.Dir(dir)
	}
	panic("no directory above the test has a go.mod: " + err.Error())
})

// Path returns the path of a file that is named by its path in the project.
func Path(name string) string { return filepath.Join(Root(), filepath.FromSlash(name)) }

// GoTool returns the path of a tool of the Go module in a folder of the project. The go command builds it once and keeps it in its
// cache.
func GoTool(tb testing.TB, folder, name string) string {
	tb.Helper()
	cmd := exec.Command("go", "-C", Path(folder), "tool", "-n", name)
	var problem strings.Builder
	cmd.Stderr = &problem
	path, err := cmd.Output()
	if err != nil {
		tb.Fatalf("build %s in %s: %v: %s", name, folder, err, problem.String())
	}
	return strings.TrimSpace(string(path))
}

// Program is a program that runs beside a test, such as a proxy or a provider.
type Program struct {
	tb    testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// Background starts a program that ends with its test, and at the latest with the test process. Its standard error
// appears with a test that fails. Its standard output is for [Program.Line], unless the caller has set it.
func Background(tb testing.TB, cmd *exec.Cmd) *Program {
	tb.Helper()
	p := &Program{tb: tb, cmd: cmd}
	if cmd.Stderr == nil {
		cmd.Stderr = tb.Output()
	}
	if cmd.Stdout == nil {
		output, err := cmd.StdoutPipe()
		if err != nil {
			tb.Fatal(err)
		}
		p.lines = bufio.NewScanner(output)
	}
	if err := Start(cmd); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Stop)
	return p
}

// Line returns the next line of the standard output that begins with a prefix. It fails the test if the program ends before.
func (p *Program) Line(prefix string) string {
	p.tb.Helper()
	for p.lines.Scan() {
		if strings.HasPrefix(p.lines.Text(), prefix) {
			return p.lines.Text()
		}
	}
	p.tb.Fatalf("%s has ended without a line %q", p.cmd.Path, prefix)
	return ""
}

// IgnoreOutput reads the rest of the standard output, so that the program never waits for a reader.
func (p *Program) IgnoreOutput() {
	go func() {
		for p.lines.Scan() {
		}
	}()
}

// Stop kills the program, which may have ended already. A program must not have processes of its own.
func (p *Program) Stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
}

// The ports of FreeAddress are below those that systems give to outgoing connections, one of which could take the port before the program.
const (
	firstPort = 15_000
	lastPort  = 32_000
)

// FreeAddress returns an address of this machine on which no program listens at the moment.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			return address
		}
	}
	tb.Fatal("100 ports of this machine are in use")
	return ""
}

// WaitForListener waits until a program accepts connections at an address.
func WaitForListener(tb testing.TB, address string) {
	tb.Helper()
	Wait(tb, "a program to listen at "+address, func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
}
