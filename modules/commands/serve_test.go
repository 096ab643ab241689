package commands_test

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServe_FirstStartPrintsTheSecretsOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := start(t, nil, "--data.dir", dir)
	if status, body := first.call(t, http.MethodGet, "/readyz", ""); status != http.StatusOK {
		t.Errorf("/readyz: %d %s", status, body)
	}
	shown := first.stdout.String()
	password, key := wordAfter(shown, "password"), wordAfter(shown, "API key")
	if !first.canSignIn(t, wordAfter(shown, "administrator"), password) {
		t.Errorf("the printed password is wrong: %s", shown)
	}
	if code := first.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if log := first.stderr.String(); strings.Contains(log, password) || strings.Contains(log, key) || !strings.Contains(log, `"msg":"stopped"`) {
		t.Errorf("a secret is in the log, or its end is missing: %s", log)
	}

	again := start(t, nil, "--data.dir", dir)
	if again.stop(); again.stdout.String() != "" {
		t.Errorf("the second start printed %s", again.stdout)
	}
}

func TestServe_FirstStartUsesTheSecretsInTheEnvironment(t *testing.T) {
	t.Parallel()
	p := start(t, []string{
		"KONTOR_ADMIN_EMAIL=root@kontor.example", "KONTOR_ADMIN_PASSWORD=seven plain words nobody knows", "KONTOR_API_KEY=a-key-of-our-own-0123",
	}, "--data.dir", t.TempDir())
	if !p.canSignIn(t, "root@kontor.example", "seven plain words nobody knows") {
		t.Error("the administrator cannot sign in")
	}
	if shown := p.stdout.String(); strings.Contains(shown, "seven plain") || strings.Contains(shown, "a-key-of-our-own") {
		t.Errorf("a secret from the environment was printed: %s", shown)
	}
}

func TestServe_RejectsInvalidStarts(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, nil, "--data.dir", dir)
	expectFailure(t, run(nil, "", "serve", "--server.listen=127.0.0.1:0", "--data.dir", dir), "in use")
	expectFailure(t, run(nil, "", "user", "role", "admin@kontor.localhost", "--data.dir", dir), "in use")

	fresh := filepath.Join(t.TempDir(), "data")
	expectFailure(t, run(nil, "", "--server.listen", p.address, "--data.dir", fresh), "cannot listen on "+p.address+": address already in use")
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("a failed start created a data directory: %v", err)
	}

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expectFailure(t, run(nil, "", "serve", "--server.listen=127.0.0.1:0", "--data.dir", file), file)
	expectFailure(t, run(nil, "", "serve", "--server.listen=127.0.0.1:0", "--auth.otp_minutes=0"), "auth.otp_minutes")
	expectFailure(t, run(nil, "", "serve", "--server.listen=127.0.0.1:0", "--data.dir", newDataDir(t), "--auth.breached_passwords_file=/missing/hashes.txt"),
		"auth.breached_passwords_file: stat /missing/hashes.txt: no such file or directory")
	expectFailure(t, run(nil, "", "serve", "--server.listen=127.0.0.1:0", "--data.dir", newDataDir(t), "--auth.breached_passwords_file", file),
		"auth.breached_passwords_file: "+file+" is empty")
	expectFailure(t, run(nil, "", "serve", "--demo", "--server.listen=0.0.0.0:0", "--data.dir", fresh), "--demo-public")
	expectFailure(t, run(nil, "", "serve", "--demo", "--server.listen=:0", "--data.dir", fresh), "--demo-public")
	expectFailure(t, run(nil, "", "serve", "--sandbox", "--server.listen=0.0.0.0:0", "--data.dir", fresh), "--sandbox-public")
	here := []string{"serve", "--server.listen=127.0.0.1:0", "--data.dir", fresh}
	expectFailure(t, run(nil, "", append(here, "--server.console_dir=/nope")...), "server.console_dir /nope holds no console")
	expectFailure(t, run(nil, "", append(here, "--audit.export_file=/nope/audit.jsonl")...), "/nope is not a directory; create it")
	expectFailure(t, run(nil, "", append(here, "--audit.export_file=/")...), "audit.export_file / is a directory")
	expectFailure(t, run([]string{"KONTOR_SECRET_KEY=" + strings.Repeat("z", 40)}, "", here...), "KONTOR_SECRET_KEY: the secret key must be 32 bytes")
	if _, err := os.Stat(fresh); !os.IsNotExist(err) {
		t.Errorf("a rejected start created a data directory: %v", err)
	}
	expectFailure(t, run(nil, "", "--data.dir", fresh, "serve", "more"), "unexpected argument more")

	broken := newDataDir(t)
	junk := []byte(strings.Repeat("not a database ", 1000))
	if err := os.WriteFile(filepath.Join(broken, "kontor.db"), junk, 0o600); err != nil {
		t.Fatal(err)
	}
	expectFailure(t, run(nil, "", "serve", "--server.listen=127.0.0.1:0", "--data.dir", broken), "damaged")
	if now, err := os.ReadFile(filepath.Join(broken, "kontor.db")); err != nil || !bytes.Equal(now, junk) {
		t.Errorf("a damaged database was changed, %v", err)
	}
	wrong := []string{"KONTOR_SECRET_KEY=" + strings.Repeat("0", 64)}
	expectFailure(t, run(wrong, "", "serve", "--server.listen=127.0.0.1:0", "--data.dir", newDataDir(t)), "key")
}
