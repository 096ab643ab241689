//go:build linux && amd64

package crash_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// The tests of this file kill the program before a system call, and expect that no manual repair is needed afterwards.
// The soak tier kills at every call, which takes a quarter of an hour. The full tier selects some calls.

// choose returns the indexes of the calls to kill at: those that rename or print, the calls after them, and others at equal
// intervals up to the limit.
func choose(run traced, limit int) []int {
	var points []int
	if testenv.Runs(testenv.Soak) {
		for n := range len(run.calls) + 1 {
			points = append(points, n)
		}
		return points
	}
	for n, call := range run.calls {
		if slices.Contains(naming, call) || slices.Contains(run.shown, n) {
			points = append(points, n, n+1)
		}
	}
	slices.Sort(points)
	points = slices.Compact(points)
	for len(points) > limit {
		points = slices.Delete(points, len(points)/2, len(points)/2+1)
	}
	spread := limit - len(points)
	for i := range spread {
		points = append(points, len(run.calls)*(i+1)/(spread+1))
	}
	slices.Sort(points)
	return slices.Compact(points)
}

// eachPoint runs f for each call to kill at, in parallel, because f mostly waits.
func eachPoint(t *testing.T, run traced, limit int, f func(t *testing.T, n int)) {
	t.Helper()
	points := choose(run, limit)
	t.Logf("killing at %d of %d calls", len(points), len(run.calls))
	for _, n := range points {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			t.Parallel()
			f(t, n)
		})
	}
}

// traceFirstStart traces a first start in a directory.
func traceFirstStart(t *testing.T, dir string, n int) traced {
	t.Helper()
	return trace(t, systemtest.Command(t, nil, "serve", "--server.listen=127.0.0.1:0", "--data.dir", dir), n, `"msg":"listening"`)
}

func TestKillPoints_FirstStart(t *testing.T) {
	whole := traceFirstStart(t, filepath.Join(t.TempDir(), "data"), -1)
	if len(whole.shown) == 0 || systemtest.WordAfter(whole.stdout, "password") == "" {
		t.Fatalf("a first start printed %q and %q", whole.stdout, whole.stderr)
	}
	eachPoint(t, whole, 14, func(t *testing.T, n int) {
		dir := filepath.Join(t.TempDir(), "data")
		killed := traceFirstStart(t, dir, n)
		next := systemtest.StartWith(t, nil, "--data.dir", dir)
		shown := [][2]string{}
		for _, text := range []string{killed.stdout, next.Stdout.String()} {
			if password, key := systemtest.WordAfter(text, "password"), systemtest.WordAfter(text, "API key"); password != "" || key != "" {
				shown = append(shown, [2]string{password, key})
			}
		}
		if len(shown) == 0 {
			t.Fatalf("killed at call %d: no start printed the secrets", n)
		}
		for _, secrets := range shown {
			next.SignIn("admin@kontor.localhost", secrets[0])
			next.Client("X-API-Key", secrets[1]).Do(t, "GET", "/v1/public-endpoint", "", 200)
		}
		if code := next.Stop(); code != 0 {
			t.Fatalf("killed at call %d: the exit code of the next start is %d: %s", n, code, next.Stderr)
		}
		systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))
		if slices.Contains(whole.shown, n) { // the next start printed the secrets for the last time
			third := systemtest.StartWith(t, nil, "--data.dir", dir)
			if third.Stop(); third.Stdout.String() != "" {
				t.Errorf("a third start printed %q", third.Stdout)
			}
		}
		expectNoLeftovers(t, dir, n)
	})
}

// expectNoLeftovers reports an error for temporary files in a data directory.
func expectNoLeftovers(t *testing.T, dir string, n int) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		for _, ending := range []string{".new", ".restoring", "-journal", ".new-wal", ".new-shm", ".restoring-wal", ".restoring-shm"} {
			if strings.HasSuffix(e.Name(), ending) {
				t.Errorf("killed at call %d: %s remains", n, e.Name())
			}
		}
	}
}

// newBackup returns a data directory with one customer, and its backup, which contains the master key.
func newBackup(t *testing.T) (dir, file string) {
	t.Helper()
	dir, file = filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "kontor.backup")
	p := systemtest.Start(t, dir)
	p.Admin().Do(t, "POST", "/v1/customers", `{"first_name":"Anna","last_name":"Keller","email":"anna@example.ch"}`, 201)
	p.Stop()
	if o := systemtest.Run(t, nil, "backup", "--with-key", file, "--data.dir", dir); o.Code != 0 || !strings.Contains(o.Stderr, "contains the master key") {
		t.Fatalf("exit code %d, stderr %q", o.Code, o.Stderr)
	}
	return dir, file
}

// expectBackup checks that a data directory holds the data of newBackup.
func expectBackup(t *testing.T, dir string, n int) {
	t.Helper()
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))
	p := systemtest.Start(t, dir)
	if got := p.Admin().Total(t, "/v1/customers"); got != 1 {
		t.Errorf("killed at call %d: %d customers", n, got)
	}
	p.Stop()
	expectNoLeftovers(t, dir, n)
}

func TestKillPoints_Restore(t *testing.T) {
	_, file := newBackup(t)
	restore := func(dir string, n int) traced {
		return trace(t, systemtest.Command(t, nil, "restore", file, "--data.dir", dir), n, "")
	}
	whole := restore(filepath.Join(t.TempDir(), "data"), -1)
	eachPoint(t, whole, 12, func(t *testing.T, n int) {
		dir := filepath.Join(t.TempDir(), "data")
		restore(dir, n)
		_, err := os.Stat(filepath.Join(dir, "kontor.db"))
		if entries, _ := os.ReadDir(dir); err != nil && len(entries) > 0 {
			// A start must not create an empty database here.
			systemtest.ExpectFailure(t, systemtest.Run(t, nil, "serve", "--server.listen=127.0.0.1:0", "--data.dir", dir), "a restore into "+dir+" was interrupted: run it again")
		}
		if err != nil {
			systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "restore", file, "--data.dir", dir))
		}
		expectBackup(t, dir, n)
	})
}

func TestKillPoints_Backup(t *testing.T) {
	dir, _ := newBackup(t)
	backup := func(file string, n int) traced {
		return trace(t, systemtest.Command(t, nil, "backup", file, "--data.dir", dir), n, "")
	}
	whole := backup(filepath.Join(t.TempDir(), "kontor.backup"), -1)
	eachPoint(t, whole, 10, func(t *testing.T, n int) {
		work := t.TempDir()
		file := filepath.Join(work, "kontor.backup")
		backup(file, n)
		if _, err := os.Stat(file); err != nil {
			systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "backup", file, "--data.dir", dir))
		} else {
			systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "backup", filepath.Join(work, "next.backup"), "--data.dir", dir))
		}
		if left, _ := filepath.Glob(filepath.Join(work, ".*")); left != nil {
			t.Errorf("killed at call %d: %v remain", n, left)
		}
		restored := filepath.Join(t.TempDir(), "data")
		systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "restore", file, "--data.dir", restored))
		systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "import", filepath.Join(dir, "secret.key"), "--data.dir", restored))
		expectBackup(t, restored, n)
	})
}

func TestKillPoints_KeyImport(t *testing.T) {
	dir, _ := newBackup(t)
	file := filepath.Join(t.TempDir(), "kontor.backup")
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "backup", file, "--data.dir", dir))
	restore := func() string {
		restored := filepath.Join(t.TempDir(), "data")
		systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "restore", file, "--data.dir", restored))
		return restored
	}
	importKey := []string{"key", "import", filepath.Join(dir, "secret.key"), "--data.dir"}
	whole := trace(t, systemtest.Command(t, nil, append(importKey, restore())...), -1, "")
	eachPoint(t, whole, 10, func(t *testing.T, n int) {
		restored := restore()
		command := systemtest.Command(t, nil, append(slices.Clone(importKey), restored)...)
		trace(t, command, n, "")
		if key, err := os.ReadFile(filepath.Join(restored, "secret.key")); err == nil && len(key) != 65 {
			t.Errorf("killed at call %d: the key has %d bytes", n, len(key))
		}
		systemtest.ExpectSuccess(t, systemtest.Run(t, nil, append(slices.Clone(importKey), restored)...))
		expectBackup(t, restored, n)
	})
}
