package commands_test

import (
	"os"
	"path/filepath"
	"testing"

	"kontor/store"
	"kontor/store/inspect"
)

const (
	noSandbox  = "is not a sandbox"
	isSandbox  = "is a sandbox, which may go back to an earlier state; serve it with --sandbox"
	keptInside = "is what a sandbox keeps"
	freePort   = "--server.listen=127.0.0.1:0"
)

// newPurposeDir creates a data directory for a purpose and returns its path.
func newPurposeDir(t *testing.T, purpose inspect.Purpose) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	db, err := store.Open(t.Context(), store.Options{Dir: dir, Purpose: purpose})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// files returns the names and contents of a directory, without those that each reader of the database changes.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "kontor.lock" || e.Name() == "kontor.db-shm" || e.IsDir() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[e.Name()] = string(content)
	}
	return found
}

func expectSameFiles(t *testing.T, dir string, before map[string]string) {
	t.Helper()
	after := files(t, dir)
	for name, content := range before {
		if after[name] != content {
			t.Errorf("%s has changed", name)
		}
	}
	for name := range after {
		if _, known := before[name]; !known {
			t.Errorf("%s is new", name)
		}
	}
}

// Production data are what they were after each attempt to serve them as a sandbox or as a demo.
func TestSandbox_RefusesProductionData(t *testing.T) {
	t.Parallel()
	dir := newPurposeDir(t, inspect.Production)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	for _, named := range []string{dir, link, filepath.Join(link, ".")} {
		expectFailure(t, run(nil, "", "serve", "--sandbox", freePort, "--data.dir", named), noSandbox)
		expectFailure(t, run(nil, "", "serve", "--demo", freePort, "--data.dir", named), "other data")
	}
	expectSameFiles(t, dir, before)
	expectSuccess(t, run(nil, "", "check", "--data.dir", dir), "is intact")

	// The files of an interrupted reset and of an interrupted demo lead no further.
	for name, content := range map[string]string{"sandbox.change": "", "demo.json": `{"complete":false}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	before = files(t, dir)
	expectFailure(t, run(nil, "", "serve", "--sandbox", freePort, "--data.dir", dir), noSandbox)
	expectFailure(t, run(nil, "", "serve", "--demo", freePort, "--data.dir", dir), "other data")
	expectSameFiles(t, dir, before)
}

// A restore keeps the purpose, in both directions.
func TestSandbox_StaysASandboxInBackups(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		purpose inspect.Purpose
		refused []string
		want    string
	}{
		{inspect.Sandbox, []string{"serve", freePort}, isSandbox},
		{inspect.Production, []string{"serve", freePort, "--sandbox"}, noSandbox},
	} {
		dir, copied := newPurposeDir(t, c.purpose), filepath.Join(t.TempDir(), "copy")
		file := filepath.Join(t.TempDir(), "file")
		if o := run(nil, "", "backup", "--with-key", file, "--data.dir", dir); o.code != 0 {
			t.Fatal(o.stderr)
		}
		expectSuccess(t, run(nil, "", "restore", file, "--data.dir", copied), "was restored")
		for _, dir := range []string{dir, copied} {
			before := files(t, dir)
			expectFailure(t, run(nil, "", append(c.refused, "--data.dir", dir)...), c.want)
			expectSameFiles(t, dir, before)
		}
	}
}

func TestSandbox_IsNotCopiedToPostgreSQL(t *testing.T) {
	t.Parallel()
	dir := newPurposeDir(t, inspect.Sandbox)
	expectFailure(t, run(nil, "", "copy", "--from", dir, "--to", absent(t)), "only a data directory can hold")
}

// The first start decides, also if it comes no further than the database.
func TestSandbox_IsDecidedByTheFirstStart(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	startSandbox(t, dir).stop()
	expectFailure(t, run(nil, "", "serve", freePort, "--data.dir", dir), isSandbox)
	expectSuccess(t, run(nil, "", "check", "--data.dir", dir), "is intact")
	expectSuccess(t, run(nil, "", "apikey", "list", "--data.dir", dir), "")
	startSandbox(t, dir).stop()
}

// The state that a sandbox has kept in production data has the master key, and people who have been erased since.
func TestServe_RefusesTheKeptStateOfASandbox(t *testing.T) {
	t.Parallel()
	dir := newPurposeDir(t, inspect.Production)
	for _, name := range []string{"sandbox", "sandbox.kept", "sandbox.old"} {
		kept := filepath.Join(dir, name)
		if err := os.Mkdir(kept, 0o700); err != nil {
			t.Fatal(err)
		}
		expectFailure(t, run(nil, "", "serve", freePort, "--data.dir", dir), name+" "+keptInside)
		expectFailure(t, run(nil, "", "check", "--data.dir", dir), name+" "+keptInside)
		if err := os.Remove(kept); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "sandbox")); err != nil {
		t.Fatal(err)
	}
	expectFailure(t, run(nil, "", "serve", freePort, "--data.dir", dir), keptInside)
	if err := os.Remove(filepath.Join(dir, "sandbox")); err != nil {
		t.Fatal(err)
	}
	start(t, nil, "--data.dir", dir).stop()
}
