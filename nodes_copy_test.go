package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kontor/store/postgres/postgrestest"
)

// TestCopy_MovesAnInstallation moves a server whose process was killed to PostgreSQL and back. The copies are killed, too.
func TestCopy_MovesAnInstallation(t *testing.T) {
	work := t.TempDir()
	dir, back, url := filepath.Join(work, "data"), filepath.Join(work, "back"), postgrestest.URL(t)
	p := start(t, dir)
	admin := p.admin()
	for n := range 30 {
		admin.do(t, "POST", "/v1/customers", fmt.Sprintf(`{"first_name":"Anna","last_name":"Muster %d","email":"anna@example.ch"}`, n), 201)
	}
	expectFailure(t, run(t, nil, "copy", "--from", dir, "--to", url), "in use by process")
	p.kill()
	text, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	key := "KONTOR_SECRET_KEY=" + strings.TrimSpace(string(text))
	served := []string{key, "KONTOR_DATA_URL=" + url}

	copyWithKills(t, nil, dir, url, func() {
		expectFailure(t, run(t, append(slices.Clone(served), secretsEnv...), "serve", "--server.listen=127.0.0.1:0"), "repeat kontor copy")
	})
	expectSuccess(t, run(t, served, "check"))
	first, second := startWith(t, served), startWith(t, served)
	for i, node := range []*process{first, second} {
		at := admin.at(node) // the access token was issued by the first server
		if n := at.total(t, "/v1/customers?limit=-1"); n != 30+i {
			t.Errorf("%d customers on node %d, want %d", n, i, 30+i)
		}
		at.do(t, "POST", "/v1/customers", `{"first_name":"Beat","last_name":"Muster","email":"beat@example.ch"}`, 201)
	}
	expectFailure(t, run(t, []string{key}, "copy", "--from", url, "--to", back), "nodes use it")
	for _, node := range []*process{first, second} {
		if code := node.stop(); code != 0 {
			t.Errorf("exit code %d: %s", code, node.stderr)
		}
	}
	copyWithKills(t, []string{key}, url, back, func() {
		expectFailure(t, run(t, []string{key}, "serve", "--server.listen=127.0.0.1:0", "--data.dir", back), "kontor copy")
	})
	expectSuccess(t, runWithInput(t, string(text), "key", "import", "-", "--data.dir", back))
	expectSuccess(t, run(t, nil, "check", "--data.dir", back))
	home := start(t, back)
	if n := admin.at(home).total(t, "/v1/customers?limit=-1"); n != 32 {
		t.Errorf("%d customers at home, want 32", n)
	}
	home.kill()
	start(t, back) // no write is missing
}

// copyWithKills copies, and kills the command after some of its lines. After each kill it calls incomplete, and the copy continues.
func copyWithKills(t *testing.T, environ []string, from, to string, incomplete func()) {
	t.Helper()
	for _, after := range []int{1, 7, 12} {
		cmd := command(t, environ, "copy", "--from", from, "--to", to)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range after {
			lines.Scan()
		}
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err == nil {
			t.Fatalf("the copy ended before it was killed after line %d", after)
		}
		incomplete()
	}
	if out := expectSuccess(t, run(t, environ, "copy", "--from", from, "--to", to)); !strings.Contains(out, "are the same on both sides") {
		t.Errorf("printed %q", out)
	}
}
