//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// newRotatable returns a data directory with sealed values of several modules.
func newRotatable(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, dir)
	admin := p.admin()
	for n := range 3 {
		id := admin.with("Idempotency-Key", fmt.Sprint("key-", n)).create(t, "/v1/customers", customerBody(n))
		admin.do(t, "PUT", "/v1/customers/"+id+"/kyc", fmt.Sprintf(
			`{"documents": [{"type": "passport", "number": "X123456%d", "expiry_date": "2099-05-01", "country": "CHE"}]}`, n), 200)
	}
	if code := p.stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	return dir
}

func customerBody(n int) string {
	return fmt.Sprintf(`{"first_name":"Anna","last_name":"Keller","email":"anna%d@example.ch"}`, n)
}

// copyDir returns a copy of a data directory.
func copyDir(t *testing.T, dir string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(copied, 0o700); err != nil {
		t.Fatal(err)
	}
	return copied
}

// expectRotatable starts a server and checks everything that newRotatable has stored.
func expectRotatable(t *testing.T, dir string) {
	t.Helper()
	expectSuccess(t, run(t, nil, "check", "--data.dir", dir))
	p := start(t, dir)
	admin := p.admin()
	p.keyed().do(t, "GET", "/v1/public-endpoint", "", 200)
	for n := range 3 {
		replay := admin.with("Idempotency-Key", fmt.Sprint("key-", n)).do(t, "POST", "/v1/customers", customerBody(n), 201)
		if replay.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("customer %d was created again", n)
		}
		kyc := admin.do(t, "GET", "/v1/customers/"+idOf(t, replay.body)+"/kyc", "", 200)
		if want := fmt.Sprintf("X123456%d", n); strings.Count(kyc.body, want) != 1 {
			t.Errorf("no document %s in %s", want, kyc.body)
		}
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
	expectSuccess(t, run(t, nil, "check", "--data.dir", dir))
}

func TestKillPoints_KeyRotate(t *testing.T) {
	dir := newRotatable(t)
	whole := trace(t, command(t, nil, "key", "rotate", "--data.dir", copyDir(t, dir)), -1, "")
	if !strings.Contains(whole.stdout, "the master key was replaced") {
		t.Fatalf("got %q and %q", whole.stdout, whole.stderr)
	}
	eachPoint(t, whole, 26, func(t *testing.T, n int) {
		rotated := copyDir(t, dir)
		former, err := os.ReadFile(filepath.Join(rotated, "secret.key"))
		if err != nil {
			t.Fatal(err)
		}
		trace(t, command(t, nil, "key", "rotate", "--data.dir", rotated), n, "")
		expectSuccess(t, run(t, nil, "check", "--data.dir", rotated)) // as the kill has left it
		expectSuccess(t, run(t, nil, "audit", "key", "--data.dir", rotated))
		expectRotatable(t, rotated)
		expectSuccess(t, run(t, nil, "key", "rotate", "--data.dir", rotated))
		expectRotatable(t, rotated)
		if left, _ := filepath.Glob(filepath.Join(rotated, "secret.key.*")); left != nil {
			t.Errorf("killed at call %d: %v remain", n, left)
		}
		expectFailure(t, run(t, []string{"KONTOR_SECRET_KEY=" + strings.TrimSpace(string(former))}, "check", "--data.dir", rotated), "was replaced at")
	})
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// TestKill_DuringRotation kills a server under load while it replaces its master key. Acknowledged writes must exist, and their
// requests must be answered as before.
func TestKill_DuringRotation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	rounds := 2 * killRounds(t)
	var all []write
	for round := range rounds {
		p := start(t, dir)
		kill := func() {
			rotation := command(t, nil, "key", "rotate", "--data.dir", dir)
			key, _ := os.ReadFile(filepath.Join(dir, "secret.key"))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = rotation.Run() // it fails when the server is killed
			}()
			waitForKill(t, dir, string(key), round, ended)
			p.kill()
			<-ended
		}
		all = append(all, writeUntilDead(t, p, p.admin(), round, 60, kill)...)
		p.kill()
		expectSuccess(t, run(t, nil, "check", "--data.dir", dir))
	}
	p := start(t, dir)
	admin := p.admin()
	for _, w := range all {
		checkWrite(t, admin, w)
	}
	if got := admin.total(t, "/v1/customers?limit=-1"); got != len(all) {
		t.Errorf("%d customers for %d requests", got, len(all))
	}
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	expectSuccess(t, run(t, nil, "key", "rotate", "--data.dir", dir))
	status := expectSuccess(t, run(t, nil, "key", "status", "--data.dir", dir))
	if strings.Contains(status, "values of former generations") || strings.Contains(status, "not complete") {
		t.Errorf("after the last rotation: %s", status)
	}
	expectSuccess(t, run(t, nil, "check", "--data.dir", dir))
}

// waitForKill waits for one of several moments of a rotation, by the number of the round. A command that completes an earlier
// rotation does not replace the key.
func waitForKill(t *testing.T, dir, key string, round int, ended <-chan struct{}) {
	t.Helper()
	hasEnded := func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}
	switch round % 4 {
	case 0: // the next key is written
		waitUntil(t, func() bool { return exists(dir, "secret.key.next") || isReplaced(dir, key) || hasEnded() })
	case 1: // the key is replaced
		waitUntil(t, func() bool { return isReplaced(dir, key) || hasEnded() })
	case 2: // the command has ended
		<-ended
	}
}

func isReplaced(dir, key string) bool {
	now, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	return err == nil && string(now) != key
}
