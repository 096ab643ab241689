package backup_test

import (
	"os"
	"path/filepath"
	"testing"

	"kontor/store/backup"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// put writes files into a directory.
func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCreate_DeletesWhatKilledBackupsHaveLeft(t *testing.T) {
	source, work := storetest.Dir(t), t.TempDir()
	stale, bare := filepath.Join(work, ".kontor-backup-1"), filepath.Join(work, ".kontor-backup-2")
	put(t, stale, map[string]string{"kontor.lock": "", "kontor.db": "part of a copy", "backup.tar": "part"})
	put(t, bare, nil)
	put(t, work, map[string]string{".kontor-backup-file": "not ours"})
	running, done, err := backup.WorkDirectory(work) // of a backup that is still running
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: source}, filepath.Join(work, "kontor.backup"), backup.Options{}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{stale: false, bare: false, running: true, filepath.Join(work, ".kontor-backup-file"): true} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	done()
	if _, err := os.Lstat(running); err == nil {
		t.Error("a finished backup leaves its directory")
	}
}
