package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFirstBoot_ShowsItsSecretsOnce searches all output and files for the secrets of the first start.
func TestFirstBoot_ShowsItsSecretsOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := startWith(t, nil, "--data.dir", dir)
	shown := first.stdout.String()
	secrets := map[string]string{"password": after(shown, "password"), "API key": after(shown, "API key")}
	admin := first.signIn(after(shown, "administrator"), secrets["password"])
	first.client("X-API-Key", secrets["API key"]).do(t, "GET", "/v1/public-endpoint", "", 200)
	admin.do(t, "GET", "/v1/users/me", "", 200)
	secrets["access token"] = strings.TrimPrefix(admin.headers[1], "Bearer ")
	for what, secret := range secrets {
		if len(secret) < 20 {
			t.Fatalf("%s is %q in %s", what, secret, shown)
		}
		if n := strings.Count(shown, secret); what != "access token" && n != 1 {
			t.Errorf("%s is shown %d times", what, n)
		}
	}
	lookFor(t, "a running server", dir, secrets, first.stderr.String())
	if code := first.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	lookFor(t, "a stopped server", dir, secrets, first.stderr.String())

	second := startWith(t, nil, "--data.dir", dir)
	second.signIn(after(shown, "administrator"), secrets["password"])
	if second.stop(); second.stdout.String() != "" {
		t.Errorf("the second start printed %q", second.stdout)
	}
	lookFor(t, "a second start", dir, secrets, second.stderr.String())
}

// after returns the word after a label.
func after(text, label string) string {
	_, rest, _ := strings.Cut(text, label)
	if words := strings.Fields(rest); len(words) > 0 {
		return words[0]
	}
	return ""
}

// lookFor searches log and files for secrets, and for file modes that permit others to read.
func lookFor(t *testing.T, when, dir string, secrets map[string]string, log string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %s has mode %v", when, path, info.Mode())
		}
		if entry.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		for what, secret := range secrets {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s: %s is in %s", when, what, path)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for what, secret := range secrets {
		if strings.Contains(log, secret) {
			t.Errorf("%s: %s is in the log", when, what)
		}
	}
}
