package binding_test

import (
	"os"
	"path/filepath"
	"testing"

	"kontor/store/sqlite/internal/binding"
)

func FuzzScanLog(f *testing.F) {
	dir := f.TempDir()
	path := filepath.Join(dir, "a.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		f.Fatal(err)
	}
	c, err := binding.Open(path, binding.ReadWrite)
	if err != nil {
		f.Fatal(err)
	}
	for _, text := range []string{"PRAGMA page_size = 512", "PRAGMA journal_mode = WAL", "CREATE TABLE a (n INTEGER)",
		"INSERT INTO a VALUES (1)", "INSERT INTO a VALUES (2)"} {
		if err := c.Run(text); err != nil {
			f.Fatal(err)
		}
	}
	log, err := os.ReadFile(path + "-wal")
	c.Close()
	if err != nil {
		f.Fatal(err)
	}
	whole := scan(f, log)
	if whole.Frames != c.LogFrames() || whole.Commits != 3 || whole.Beyond != 0 || whole.Bytes != int64(len(log)) {
		f.Fatalf("found %+v, want %d frames and 3 commits", whole, c.LogFrames())
	}
	f.Add(log)
	f.Add(log[:len(log)-1])
	f.Add(log[:40])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := scan(t, data)
		if frames := (len(data) - 32) / (24 + 512); s.Frames+s.Beyond > max(frames, 0) || s.Commits > s.Frames || s.CommitsBeyond > s.Beyond {
			t.Errorf("found %+v in %d bytes", s, len(data))
		}
	})
}

func scan(t testing.TB, log []byte) binding.LogScan {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.db")
	if err := os.WriteFile(path+"-wal", log, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := binding.ScanLog(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
