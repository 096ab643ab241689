//go:build linux && amd64

package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
	"kontor/store/testenv"
)

// newRotatable returns a data directory with sealed values of several modules.
func newRotatable(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	p := systemtest.Start(t, dir)
	admin := p.Admin()
	for n := range 3 {
		id := admin.With("Idempotency-Key", fmt.Sprint("key-", n)).Create(t, "/v1/customers", customerBody(n))
		admin.Do(t, "PUT", "/v1/customers/"+id+"/kyc", fmt.Sprintf(
			`{"documents": [{"type": "passport", "number": "X123456%d", "expiry_date": "2099-05-01", "country": "CHE"}]}`, n), 200)
	}
	if code := p.Stop(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	return dir
}

func customerBody(n int) string {
	return fmt.Sprintf(`{"first_name":"Anna","last_name":"Keller","email":"anna%d@example.ch"}`, n)
}

// expectRotatable starts a server and checks everything that newRotatable has stored.
func expectRotatable(t *testing.T, dir string) {
	t.Helper()
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))
	p := systemtest.Start(t, dir)
	admin := p.Admin()
	p.Keyed().Do(t, "GET", "/v1/public-endpoint", "", 200)
	for n := range 3 {
		replay := admin.With("Idempotency-Key", fmt.Sprint("key-", n)).Do(t, "POST", "/v1/customers", customerBody(n), 201)
		if replay.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("customer %d was created again", n)
		}
		kyc := admin.Do(t, "GET", "/v1/customers/"+systemtest.IDOf(t, replay.Body)+"/kyc", "", 200)
		if want := fmt.Sprintf("X123456%d", n); strings.Count(kyc.Body, want) != 1 {
			t.Errorf("no document %s in %s", want, kyc.Body)
		}
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.Stderr)
	}
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))
}

func TestKillPoints_KeyRotate(t *testing.T) {
	dir := newRotatable(t)
	whole := trace(t, systemtest.Command(t, nil, "key", "rotate", "--data.dir", systemtest.CopyDataDir(t, dir)), -1, "")
	if !strings.Contains(whole.stdout, "the master key was replaced") {
		t.Fatalf("got %q and %q", whole.stdout, whole.stderr)
	}
	eachPoint(t, whole, 26, func(t *testing.T, n int) {
		rotated := systemtest.CopyDataDir(t, dir)
		former, err := os.ReadFile(filepath.Join(rotated, "secret.key"))
		if err != nil {
			t.Fatal(err)
		}
		trace(t, systemtest.Command(t, nil, "key", "rotate", "--data.dir", rotated), n, "")
		systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", rotated)) // as the kill has left it
		systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "audit", "key", "--data.dir", rotated))
		expectRotatable(t, rotated)
		systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "rotate", "--data.dir", rotated))
		expectRotatable(t, rotated)
		if left, _ := filepath.Glob(filepath.Join(rotated, "secret.key.*")); left != nil {
			t.Errorf("killed at call %d: %v remain", n, left)
		}
		systemtest.ExpectFailure(t, systemtest.Run(t, []string{"KONTOR_SECRET_KEY=" + strings.TrimSpace(string(former))}, "check", "--data.dir", rotated), "was replaced at")
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
	rounds := 2 * testenv.Rounds(0, 3, 200)
	var all []systemtest.Write
	for round := range rounds {
		p := systemtest.Start(t, dir)
		kill := func() {
			rotation := systemtest.Command(t, nil, "key", "rotate", "--data.dir", dir)
			key, _ := os.ReadFile(filepath.Join(dir, "secret.key"))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = rotation.Run() // it fails when the server is killed
			}()
			waitForKill(t, dir, string(key), round, ended)
			p.Kill()
			testenv.Receive(t, "the end of the rotation", ended)
		}
		all = append(all, systemtest.WriteUntilDead(t, p, p.Admin(), round, 60, kill)...)
		p.Kill()
		systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))
	}
	p := systemtest.Start(t, dir)
	admin := p.Admin()
	for _, w := range all {
		systemtest.CheckWrite(t, admin, w)
	}
	if got := admin.Total(t, "/v1/customers?limit=-1"); got != len(all) {
		t.Errorf("%d customers for %d requests", got, len(all))
	}
	if code := p.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "rotate", "--data.dir", dir))
	status := systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "key", "status", "--data.dir", dir))
	if strings.Contains(status, "values of former generations") || strings.Contains(status, "not complete") {
		t.Errorf("after the last rotation: %s", status)
	}
	systemtest.ExpectSuccess(t, systemtest.Run(t, nil, "check", "--data.dir", dir))
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
		testenv.Wait(t, "the next key", func() bool { return exists(dir, "secret.key.next") || isReplaced(dir, key) || hasEnded() })
	case 1: // the key is replaced
		testenv.Wait(t, "the replaced key", func() bool { return isReplaced(dir, key) || hasEnded() })
	case 2: // the command has ended
		testenv.Receive(t, "the end of the rotation", ended)
	}
}

func isReplaced(dir, key string) bool {
	now, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	return err == nil && string(now) != key
}
