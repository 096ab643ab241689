package commands_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// settingsFile writes a settings file that only its user can read.
func settingsFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kontor.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// expectMistakes reports an error unless "kontor settings check" exits with 1 and prints one line for each mistake.
func expectMistakes(t *testing.T, o outcome, want ...string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(o.stdout, "\n"), "\n")
	if o.code != 1 || !strings.HasPrefix(o.stderr, "kontor: ") || !strings.Contains(o.stderr, "prevents the start") || len(lines) != len(want) {
		t.Fatalf("exit %d, stderr %q, stdout %q, want exit 1 and %d mistakes", o.code, o.stderr, o.stdout, len(want))
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, "mistake: ") || !strings.Contains(line, want[i]) {
			t.Errorf("line %d is %q, want a mistake with %q", i+1, line, want[i])
		}
	}
}

func TestSettingsCheck_FindsEveryMistake(t *testing.T) {
	file := settingsFile(t, "server:\n  lissten: 127.0.0.1:8080\nauth.otp_minutes: soon\nlog:\n  level: loud\n")
	expectMistakes(t, run([]string{"KONTOR_LOG_FORMT=json"}, "", "settings", "check", file),
		"KONTOR_LOG_FORMAT", "server.listen", "auth.otp_minutes", "log.level")
	expectMistakes(t, run(nil, "", "settings", "check", filepath.Join(t.TempDir(), "missing.yaml")), "missing.yaml")
	expectMistakes(t, run(nil, "", "settings", "check", settingsFile(t, "server: [")), "kontor.yaml:1: not valid YAML")
}

func TestSettingsCheck_LooksAtFilesAndDirectories(t *testing.T) {
	dir := t.TempDir()
	blocked := filepath.Join(dir, "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := settingsFile(t, "data.dir: "+filepath.Join(blocked, "data")+"\nserver:\n  tls_cert: "+filepath.Join(dir, "cert.pem")+
		"\n  tls_key: "+filepath.Join(dir, "key.pem")+"\naudit.export_file: "+filepath.Join(dir, "none", "audit.jsonl")+"\n")
	expectMistakes(t, run(nil, "", "settings", "check", file), "data.dir", "cert.pem", "audit.export_file")
	expectSuccess(t, run(nil, "", "settings", "check", "--no-files", file), "is valid.")
	shared := settingsFile(t, "data.url: postgres://kontor:geheim@127.0.0.1/kontor?sslmode=disable\n")
	missing := run(nil, "", "settings", "check", shared)
	expectMistakes(t, missing, "KONTOR_SECRET_KEY must be set")
	expectMistakes(t, run([]string{"KONTOR_SECRET_KEY=short"}, "", "settings", "check", shared), "KONTOR_SECRET_KEY")
	if strings.Contains(missing.stdout+missing.stderr, "geheim") {
		t.Errorf("the password is printed: %q, %q", missing.stdout, missing.stderr)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the check left %v (%v), want nothing new", entries, err)
	}
}

func TestSettingsCheck_SaysWhatDiffersAndWhatIsWeakened(t *testing.T) {
	expectSuccess(t, run(nil, "", "settings", "check", settingsFile(t, "")), "All settings have their defaults.")
	file := settingsFile(t, "server.listen: 0.0.0.0:8080\nrate_limits.enabled: false\nauth.oidc:\n  issuer: https://login.example\n  client_id: kontor\n  client_secret: s3cret-of-the-bank\n")
	o := run([]string{"KONTOR_XYZZY=1"}, "", "settings", "check", file)
	expectSuccess(t, o, "is valid.\n")
	for _, want := range []string{"warning: unknown environment variable KONTOR_XYZZY", "risk: server.listen: ", "risk: rate_limits.enabled: ", "\nserver.listen", "127.0.0.1:8080"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("stdout %q lacks %q", o.stdout, want)
		}
	}
	if strings.Contains(o.stdout, "s3cret") {
		t.Errorf("a secret is printed: %q", o.stdout)
	}
	strict := run(nil, "", "settings", "check", "--strict", file)
	if strict.code != 1 || !strings.Contains(strict.stderr, "--strict") || strings.Count(strict.stderr, "\n") != 1 {
		t.Errorf("exit %d, stderr %q", strict.code, strict.stderr)
	}
	expectSuccess(t, run(nil, "", "settings", "check", "--strict", settingsFile(t, "log.level: debug\n")), "log.level")
}

func TestSettingsCheck_PrintsJSON(t *testing.T) {
	type result struct {
		Valid              bool
		Mistakes, Warnings []string
		Changed            []struct{ Name, Source string }
		Risks              []struct{ Name, Meaning string }
	}
	parse := func(o outcome) (r result) {
		t.Helper()
		if err := json.Unmarshal([]byte(o.stdout), &r); err != nil {
			t.Fatalf("%v: %q", err, o.stdout)
		}
		return r
	}
	good := parse(run([]string{"KONTOR_LOG_LEVEL=debug"}, "", "settings", "check", "--json", settingsFile(t, "kyc.four_eyes: \"off\"\n")))
	if !good.Valid || len(good.Mistakes) > 0 || len(good.Changed) != 2 || len(good.Risks) != 1 || good.Risks[0].Name != "kyc.four_eyes" {
		t.Errorf("got %+v", good)
	}
	wrong := run(nil, "", "settings", "check", "--json", settingsFile(t, "kyc.four_eyes: maybe\n"))
	if got := parse(wrong); got.Valid || len(got.Mistakes) != 1 || wrong.code != 1 {
		t.Errorf("exit %d, %+v", wrong.code, got)
	}
}

func TestSettingsCheck_WarnsOfSecretsThatOthersCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // other permissions
	}
	file := settingsFile(t, "auth.oidc:\n  issuer: https://login.example\n  client_id: kontor\n  client_secret: s3cret\n")
	if o := run(nil, "", "settings", "check", file); strings.Contains(o.stdout, "risk: ") {
		t.Errorf("a private file is a risk: %q", o.stdout)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	expectSuccess(t, run(nil, "", "settings", "check", file), "risk: auth.oidc.client_secret: Every user of this machine")
}
