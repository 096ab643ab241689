package lifecycle_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/modules/commands/systemtest"
)

// TestFirstBoot_PrintsItsSecretsOnce also searches the files and the log of the server for the secrets of the first start.
func TestFirstBoot_PrintsItsSecretsOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := systemtest.StartWith(t, nil, "--data.dir", dir)
	shown := first.Stdout.String()
	secrets := map[string]string{"password": systemtest.WordAfter(shown, "password"), "API key": systemtest.WordAfter(shown, "API key")}
	admin := first.SignIn(systemtest.WordAfter(shown, "administrator"), secrets["password"])
	first.Client("X-API-Key", secrets["API key"]).Do(t, "GET", "/v1/public-endpoint", "", 200)
	admin.Do(t, "GET", "/v1/users/me", "", 200)
	secrets["access token"] = strings.TrimPrefix(admin.Headers[1], "Bearer ")
	for what, secret := range secrets {
		if len(secret) < 20 {
			t.Fatalf("%s is %q in %s", what, secret, shown)
		}
		if n := strings.Count(shown, secret); what != "access token" && n != 1 {
			t.Errorf("%s was printed %d times", what, n)
		}
	}
	expectNoSecrets(t, "a running server", dir, secrets, first.Stderr.String())
	if code := first.Stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	expectNoSecrets(t, "a stopped server", dir, secrets, first.Stderr.String())

	second := systemtest.StartWith(t, nil, "--data.dir", dir)
	second.SignIn(systemtest.WordAfter(shown, "administrator"), secrets["password"])
	if second.Stop(); second.Stdout.String() != "" {
		t.Errorf("the second start printed %q", second.Stdout)
	}
	expectNoSecrets(t, "a second start", dir, secrets, second.Stderr.String())
}

// unlessGone returns the error unless a running server has deleted the file meanwhile.
func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// expectNoSecrets checks that the log and the files contain no secret, and that other users cannot read the files.
func expectNoSecrets(t *testing.T, when, dir string, secrets map[string]string, log string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return unlessGone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return unlessGone(err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %s has mode %v", when, path, info.Mode())
		}
		if !entry.Type().IsRegular() { // directories, and the socket of the commands
			return nil
		}
		data, err := os.ReadFile(path)
		for what, secret := range secrets {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s: %s is in %s", when, what, path)
			}
		}
		return unlessGone(err)
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

// A sandbox takes no other data, and a server no sandbox, also if that was killed.
func TestFirstBoot_DecidesWhetherTheDataAreASandbox(t *testing.T) {
	production, sandbox := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "data")
	systemtest.StartWith(t, nil, "--data.dir", production).Stop()
	systemtest.StartWith(t, nil, "--sandbox", "--data.dir", sandbox).Kill()
	free := "--server.listen=127.0.0.1:0"
	before := systemtest.FileDigests(t, production)
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "serve", "--sandbox", free, "--data.dir", production), "is not a sandbox")
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "serve", "--demo", free, "--data.dir", production), "other data")
	if !systemtest.SameFiles(before, systemtest.FileDigests(t, production)) {
		t.Error("the files of production data have changed")
	}
	systemtest.ExpectFailure(t, systemtest.Run(t, nil, "serve", free, "--data.dir", sandbox), "is a sandbox")
	systemtest.StartWith(t, nil, "--data.dir", production).Stop()
	systemtest.StartWith(t, nil, "--sandbox", "--data.dir", sandbox).Stop()
}
