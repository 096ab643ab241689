package backup_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"kontor/store"
	"kontor/store/backup"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

func TestCreate_IsRestoredOnAnotherMachine(t *testing.T) {
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	storetest.Audit(t, db, 20)
	db.RegisterSealed(store.SealedColumn{Table: "t", Column: "c"})
	sealed, err := db.Seal("t", "c", "r", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kontor.backup")

	// Writes continue during the backup.
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				storetest.Audit(t, db, 1)
			}
		}
	})
	_, err = backup.Create(t.Context(), inspect.Source{Dir: dir}, file, backup.Options{WithKey: true})
	close(stop)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("backup has mode %v, err %v", info.Mode(), err)
	}
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: dir}, file, backup.Options{WithKey: true}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a backup was overwritten: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); left != nil {
		t.Errorf("left behind: %v", left)
	}

	target := filepath.Join(t.TempDir(), "data")
	report, err := backup.Restore(t.Context(), []string{file}, inspect.Source{Dir: target})
	if err != nil {
		t.Fatal(err)
	}
	if report.AuditEntries < 20 || !report.KeyChecked {
		t.Errorf("report %+v", report)
	}
	restored := storetest.OpenDir(t, target)
	if got, err := restored.Unseal("t", "c", "r", sealed); err != nil || string(got) != "secret" {
		t.Errorf("sealed value is %q, err %v", got, err)
	}
	if _, err := backup.Restore(t.Context(), []string{file}, inspect.Source{Dir: target}); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("restored over data: %v", err)
	}
}

func TestCreate_LeavesOutTheKey(t *testing.T) {
	dir := storetest.Dir(t)
	key, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kontor.backup")
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: dir}, file, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, bytes.TrimSpace(key)) {
		t.Error("the key is in the backup")
	}
	target := filepath.Join(t.TempDir(), "data")
	if report, err := backup.Restore(t.Context(), []string{file}, inspect.Source{Dir: target}); err != nil || report.KeyChecked {
		t.Fatalf("report %+v, err %v", report, err)
	}
	if _, err := store.Open(t.Context(), store.Options{Dir: target}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the key the start says %v", err)
	}
	db, err := store.Open(t.Context(), store.Options{Dir: target, SecretKey: string(key)})
	if err != nil {
		t.Fatal(err)
	}
	db.Close()
}

func TestRestore_RejectsDamagedBackups(t *testing.T) {
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	storetest.Audit(t, db, 20)
	good := filepath.Join(t.TempDir(), "good")
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: dir}, good, backup.Options{WithKey: true}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	expanded := expand(t, data)
	flipped := bytes.Clone(expanded)
	flipped[bytes.Index(flipped, []byte("marked.0007"))] ^= 1
	const described = `{"format":2,"id":"a","page_size":4096,"pages":1}`
	for name, broken := range map[string][]byte{
		"empty":                   {},
		"no tar":                  []byte(strings.Repeat("x", 2000)),
		"cut off":                 data[:len(data)/2],
		"not compressed":          expanded,
		"one bit":                 compress(t, flipped),
		"one bit of the checksum": append(bytes.Clone(data[:len(data)-1]), data[len(data)-1]^1),
		"more after the end":      compress(t, append(bytes.Clone(expanded), make([]byte, 100_000)...)),
		"climbs out":              compress(t, tarOf(t, "manifest.json", described, "../evil", "x")),
		"no manifest":             compress(t, tarOf(t, "kontor.db", "x")),
		"two manifests":           compress(t, tarOf(t, "manifest.json", described, "manifest.json", described)),
		"only a manifest":         compress(t, tarOf(t, "manifest.json", described)),
		"no sums":                 compress(t, tarOf(t, "manifest.json", described, "kontor.db", strings.Repeat("x", 4096))),
		"more than a page":        compress(t, tarOf(t, "manifest.json", described, "kontor.db", strings.Repeat("x", 4097))),
		"huge":                    compress(t, tarOf(t, "manifest.json", `{"format":2,"id":"a","page_size":4096,"pages":99999999999}`)),
		"newer":                   compress(t, tarOf(t, "manifest.json", `{"format":3}`, "kontor.db", "x")),
		"an increment":            compress(t, tarOf(t, "manifest.json", `{"format":2,"id":"a","base":"b","page_size":4096,"pages":1}`, "kontor.pages", "")),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "backup")
			if err := os.WriteFile(file, broken, 0o600); err != nil {
				t.Fatal(err)
			}
			target := filepath.Join(t.TempDir(), "data")
			_, err := backup.Restore(t.Context(), []string{file}, inspect.Source{Dir: target})
			if err == nil {
				t.Fatal("restored")
			}
			if left, _ := os.ReadDir(target); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if _, err := backup.Restore(t.Context(), []string{good}, inspect.Source{Dir: target}); err != nil {
				t.Errorf("a good backup afterwards: %v", err)
			}
		})
	}
}

func compress(t *testing.T, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

func expand(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	expanded, err := r.DecodeAll(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return expanded
}

// tarOf returns a tar file of pairs of name and content.
func tarOf(t *testing.T, pairs ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		if err := w.WriteHeader(&tar.Header{Name: pairs[i], Mode: 0o600, Size: int64(len(pairs[i+1]))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(pairs[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A backup of a running server has no mark. Without the key, the restore cannot make one; the first start does.
func TestRestore_WithoutKeyIsNoLoss(t *testing.T) {
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	storetest.Audit(t, db, 20)
	file, target := filepath.Join(t.TempDir(), "kontor.backup"), filepath.Join(t.TempDir(), "data")
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: dir}, file, backup.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), []string{file}, inspect.Source{Dir: target}); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	note := filepath.Join(target, "kontor.restored")
	recorded, err := os.ReadFile(note)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inspect.Check(t.Context(), inspect.Source{Dir: target, SecretKey: string(key)}, nil); err != nil {
		t.Errorf("check: %v", err)
	}
	if err := backup.ImportKey(t.Context(), target, string(key)); err != nil {
		t.Fatal(err)
	}
	restored := storetest.OpenDir(t, target)
	if _, err := os.Stat(note); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the start leaves %s: %v", note, err)
	}
	storetest.Audit(t, restored, 1)

	// Once something was written, the record counts no more.
	later, copied := filepath.Join(t.TempDir(), "later.backup"), filepath.Join(t.TempDir(), "data")
	if _, err := backup.Create(t.Context(), inspect.Source{Dir: target}, later, backup.Options{WithKey: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), []string{later}, inspect.Source{Dir: copied}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(copied, "kontor.mark")), os.WriteFile(filepath.Join(copied, "kontor.restored"), recorded, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Open(t.Context(), store.Options{Dir: copied}); !errors.Is(err, store.ErrLoss) {
		t.Errorf("a lost mark after later writes: %v", err)
	}
}

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
