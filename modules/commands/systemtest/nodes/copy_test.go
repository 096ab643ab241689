//go:build linux

package nodes_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"kontor/modules/commands/systemtest"
	"kontor/store/postgres/postgrestest"
	"kontor/store/testenv"
)

// TestCopy_MovesAnInstallation moves a server whose process was killed to PostgreSQL and back. The copies are killed, too.
func TestCopy_MovesAnInstallation(t *testing.T) {
	work := t.TempDir()
	dir, back, url := filepath.Join(work, "data"), filepath.Join(work, "back"), postgrestest.URL(t)
	p := systemtest.Start(t, dir)
	admin := p.Admin()
	for n := range 30 {
		admin.Do(t, "POST", "/v1/customers", fmt.Sprintf(`{"first_name":"Anna","last_name":"Muster %d","email":"anna@example.ch"}`, n), 201)
	}
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "copy", "--from", dir, "--to", url), "in use by process")
	p.Kill()
	text, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	key := "KONTOR_SECRET_KEY=" + strings.TrimSpace(string(text))
	served := []string{key, "KONTOR_DATA_URL=" + url}

	copyWithKills(t, nil, dir, url, func() {
		systemtest.ExpectFailure(t, systemtest.Run(t, append(slices.Clone(served), systemtest.SecretsEnv...), "serve", "--server.listen=127.0.0.1:0"), "repeat kontor copy")
	})
	systemtest.ExpectSuccess(t, systemtest.Run(t, served, "check"))
	first, second := systemtest.StartWith(t, served), systemtest.StartWith(t, served)
	for i, node := range []*systemtest.Process{first, second} {
		at := admin.At(node) // the access token was issued by the first server
		if n := at.Total(t, "/v1/customers?limit=-1"); n != 30+i {
			t.Errorf("%d customers on node %d, want %d", n, i, 30+i)
		}
		at.Do(t, "POST", "/v1/customers", `{"first_name":"Beat","last_name":"Muster","email":"beat@example.ch"}`, 201)
	}
	systemtest.ExpectFailure(t, systemtest.Run(t, []string{key}, "copy", "--from", url, "--to", back), "nodes use it")
	for _, node := range []*systemtest.Process{first, second} {
		if code := node.Stop(); code != 0 {
			t.Errorf("exit code %d: %s", code, node.Stderr)
		}
	}
	copyWithKills(t, []string{key}, url, back, func() {
		systemtest.ExpectFailure(t, systemtest.Run(t, []string{key}, "serve", "--server.listen=127.0.0.1:0", "--data.dir", back), "kontor copy")
	})
	systemtest.ExpectSuccess(t, systemtest.RunWithInput(t, string(text), "key", "import", "-", "--data.dir", back))
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", back))
	home := systemtest.Start(t, back)
	if n := admin.At(home).Total(t, "/v1/customers?limit=-1"); n != 32 {
		t.Errorf("%d customers at home, want 32", n)
	}
	home.Kill()
	systemtest.Start(t, back) // no write is missing
}

// lineByLine returns a pipe that holds one write, however short: a program that prints a line waits until the line before was read.
func lineByLine(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_DIRECT); err != nil {
		t.Fatal(err)
	}
	reader, writer = os.NewFile(uintptr(ends[0]), "reader"), os.NewFile(uintptr(ends[1]), "writer")
	t.Cleanup(func() { reader.Close() })
	if _, err := unix.FcntlInt(writer.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		t.Fatal(err)
	}
	return reader, writer
}

// copyWithKills copies, and kills the command after some of its lines. After each kill it calls incomplete, and the copy continues.
func copyWithKills(t *testing.T, environ []string, from, to string, incomplete func()) {
	t.Helper()
	for _, after := range []int{1, 7, 12} {
		cmd := systemtest.Command(t, environ, "copy", "--from", from, "--to", to)
		out, end := lineByLine(t)
		cmd.Stdout = end
		if err := testenv.Start(cmd); err != nil {
			t.Fatal(err)
		}
		end.Close()
		late := time.AfterFunc(testenv.Limit(), func() { _ = cmd.Process.Kill() })
		lines := bufio.NewScanner(out)
		for range after {
			if !lines.Scan() {
				t.Errorf("the copy ended before line %d", after)
			}
		}
		late.Stop()
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil {
			t.Fatalf("the copy ended before it was killed after line %d", after)
		}
		incomplete()
	}
	if out := systemtest.ExpectSuccess(t, systemtest.Run(t, environ, "copy", "--from", from, "--to", to)); !strings.Contains(out, "are the same on both sides") {
		t.Errorf("printed %q", out)
	}
}
