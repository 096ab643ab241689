package commands_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"kontor/store"
)

// newKeyEnviron returns the environment with a master key and the one before it. Either may be empty.
func newKeyEnviron(key, previous string) (environ []string) {
	if key != "" {
		environ = append(environ, "KONTOR_SECRET_KEY="+key)
	}
	if previous != "" {
		environ = append(environ, "KONTOR_SECRET_KEY_PREVIOUS="+previous)
	}
	return environ
}

func TestKeyRotate_WhileTheServerRuns(t *testing.T) {
	dir := newDataDir(t)
	former := keyOf(t, dir)
	p := start(t, nil, "--data.dir", dir)
	if info, err := os.Stat(filepath.Join(dir, "kontor.sock")); err != nil || info.Mode().Type() != fs.ModeSocket || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket: %v, %v", info, err)
	}
	expectSuccess(t, run(nil, "", "key", "status", "--data.dir", dir), "replaced 0 times")
	expectSuccess(t, run(nil, "", "key", "rotate", "--data.dir", dir), "the master key was replaced")
	o := run(nil, "", "key", "status", "--data.dir", dir)
	expectSuccess(t, o, "replaced 1 times")
	if strings.Contains(o.stdout, "values of former") || strings.Count(o.stdout, "signing key ") != 2 || !strings.Contains(o.stdout, "API keys with a hash of former generations: 1") {
		t.Errorf("status %q", o.stdout)
	}
	if keyOf(t, dir) == former {
		t.Error("the key file is as before")
	}
	expectSuccess(t, run(nil, "", "check", "--data.dir", dir), "is intact")
	expectSuccess(t, run(nil, "", "key", "rotate", "--signing", "--data.dir", dir), "stay valid")
	expectSuccess(t, run(nil, "", "key", "rotate", "--signing", "--compromised", "--data.dir", dir), "are rejected")
	if o := run(nil, "", "key", "status", "--data.dir", dir); strings.Count(o.stdout, "signing key ") != 1 {
		t.Errorf("status %q", o.stdout)
	}
	expectSuccess(t, run(nil, "", "key", "revoke-unused", "--days=1", "--data.dir", dir), "0 API keys")
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
	if _, err := os.Lstat(filepath.Join(dir, "kontor.sock")); err == nil {
		t.Error("the socket is still there")
	}
	expectSuccess(t, run(nil, "", "check", "--data.dir", dir), "is intact")
	expectFailure(t, run(newKeyEnviron(strings.TrimSpace(former), ""), "", "check", "--data.dir", dir), "was replaced at")
	// Without a server the command opens the directory itself.
	expectSuccess(t, run(nil, "", "key", "rotate", "--compromised", "--data.dir", dir), "the master key was replaced")
	expectSuccess(t, run(nil, "", "key", "status", "--data.dir", dir), "replaced 2 times")
	expectSuccess(t, run(nil, "", "check", "--data.dir", dir), "is intact")
}

func TestKeyRotate_TwoCommandsAtOnce(t *testing.T) {
	for name, serve := range map[string]bool{"with a server": true, "without a server": false} {
		dir := newDataDir(t)
		stop := func() int { return 0 }
		if serve {
			stop = start(t, nil, "--data.dir", dir).stop
		}
		var wait sync.WaitGroup
		outcomes := make([]outcome, 4)
		for i := range outcomes {
			wait.Go(func() { outcomes[i] = run(nil, "", "key", "rotate", "--data.dir", dir) })
		}
		wait.Wait()
		rotated := 0
		for _, o := range outcomes {
			switch {
			case o.code == 0:
				rotated++
			case !strings.Contains(o.stderr, "is running already") && !strings.Contains(o.stderr, "in use by"):
				t.Errorf("%s: %q", name, o.stderr)
			}
		}
		stop()
		if rotated == 0 {
			t.Errorf("%s: no command has rotated the key: %+v", name, outcomes)
		}
		expectSuccess(t, run(nil, "", "key", "status", "--data.dir", dir), fmt.Sprintf("replaced %d times", rotated))
		expectSuccess(t, run(nil, "", "check", "--data.dir", dir), "is intact")
	}
}

func TestKeyRotate_KeyFromTheEnvironment(t *testing.T) {
	keys := []string{strings.Repeat("0a", 32), strings.Repeat("0b", 32), strings.Repeat("0c", 32), strings.Repeat("0d", 32)}
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, newKeyEnviron(keys[0], ""), "--data.dir", dir)
	at := []string{"--data.dir", dir}
	rotate := append([]string{"key", "rotate"}, at...)

	expectFailure(t, run(nil, "", rotate...), "set the new one in KONTOR_SECRET_KEY")
	expectFailure(t, run(newKeyEnviron(keys[1], keys[2]), "", rotate...), "is not the present secret key")
	expectFailure(t, run(newKeyEnviron("x", keys[2]), "", rotate...), "KONTOR_SECRET_KEY")
	expectSuccess(t, run(newKeyEnviron(keys[1], keys[0]), "", rotate...), "the master key was replaced") // through the server
	expectSuccess(t, run(newKeyEnviron(keys[1], ""), "", append([]string{"check"}, at...)...), "is intact")
	if code := p.stop(); code != 0 {
		t.Errorf("exit code %d: %s", code, p.stderr)
	}
	expectFailure(t, run(newKeyEnviron(keys[0], ""), "", "serve", "--server.listen=127.0.0.1:0", "--data.dir", dir), "was replaced at")
	expectSuccess(t, run(newKeyEnviron(keys[2], keys[1]), "", rotate...), "the master key was replaced") // without a server

	p = start(t, newKeyEnviron(keys[3], keys[2]), "--data.dir", dir) // at the start of a server
	expectSuccess(t, run(newKeyEnviron(keys[3], ""), "", append([]string{"key", "status"}, at...)...), "replaced 3 times")
	p.stop()
	expectSuccess(t, run(newKeyEnviron(keys[3], ""), "", append([]string{"check"}, at...)...), "is intact")
	if _, err := os.Stat(filepath.Join(dir, "secret.key")); err == nil {
		t.Error("a key file was written")
	}
}

func TestKeyRotate_RejectsWithoutChange(t *testing.T) {
	expectFailure(t, run(nil, "", "key", "rotate", "--data.dir", t.TempDir()), "there is no data")
	expectFailure(t, run(nil, "", "key", "status", "--data.dir", filepath.Join(t.TempDir(), "none")), "there is no data")
	expectFailure(t, run(nil, "", "key", "revoke-unused", "--days=0", "--data.dir", newDataDir(t)), "1 or more")

	dir := newDataDir(t)
	db, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	expectFailure(t, run(nil, "", "key", "rotate", "--data.dir", dir), "in use") // by a process without a socket
	// A socket that a killed process has left is no server.
	left, err := net.Listen("unix", filepath.Join(dir, "kontor.sock"))
	if err != nil {
		t.Fatal(err)
	}
	left.(*net.UnixListener).SetUnlinkOnClose(false)
	left.Close()
	expectFailure(t, run(nil, "", "key", "rotate", "--data.dir", dir), "in use")
}

// A directory whose path is too long for a socket is reached all the same.
func TestControl_LongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 120), "data")
	p := start(t, nil, "--data.dir", dir)
	expectSuccess(t, run(nil, "", "key", "rotate", "--data.dir", dir), "the master key was replaced")
	p.stop()
	if _, err := os.Lstat(filepath.Join(dir, "kontor.sock")); err == nil {
		t.Error("the socket is still there")
	}
}

// The socket answers malformed and hostile requests with an error, or closes the connection, and stays usable.
func TestControl_HostileRequests(t *testing.T) {
	dir := newDataDir(t)
	start(t, nil, "--data.dir", dir)
	for name, request := range map[string]string{
		"nothing": "\n", "not JSON": "rotate\n", "unknown": `{"command":"export"}` + "\n", "empty": "{}\n", "a list": "[]\n",
		"huge": `{"command":"` + strings.Repeat("x", 1<<20) + "\"}\n", "wrong type": `{"command":1}` + "\n", "null": "null\n",
		"keys without need": `{"command":"rotate","secret_key":"` + strings.Repeat("0a", 32) + `","previous_key":"` + strings.Repeat("0b", 32) + `"}` + "\n",
	} {
		conn, err := net.Dial("unix", filepath.Join(dir, "kontor.sock"))
		if err != nil {
			t.Fatal(err)
		}
		go conn.Write([]byte(request)) // the server may close the connection before it has read everything
		if name == "nothing" {
			conn.(*net.UnixConn).CloseWrite()
		}
		var answer struct{ Error string }
		if err := json.NewDecoder(conn).Decode(&answer); err == nil && answer.Error == "" {
			t.Errorf("%s: accepted", name)
		}
		conn.Close()
	}
	expectSuccess(t, run(nil, "", "key", "status", "--data.dir", dir), "replaced 0 times")
}
