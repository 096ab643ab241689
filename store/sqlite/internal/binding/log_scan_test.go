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

// ComparePages finds each change of a closed database, also a missing end.
func TestComparePages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := binding.Open(path, binding.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{"PRAGMA journal_mode = WAL", "CREATE TABLE a (b)", "INSERT INTO a VALUES (zeroblob(600000))"} {
		if err := conn.Run(statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(content []byte) bool {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		intact, err := binding.ComparePages(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		return intact
	}
	if !compare(whole) {
		t.Error("a database that was closed differs")
	}
	for _, at := range []int{0, 20, 24, 28, 500, 4096, 4095, len(whole) / 2, len(whole) - 1} {
		changed := append([]byte(nil), whole...)
		changed[at] ^= 4
		if compare(changed) {
			t.Errorf("a change of byte %d is not found", at)
		}
	}
	for _, length := range []int{0, 50, 4096, len(whole) / 2, len(whole) - 1} {
		if compare(whole[:length]) {
			t.Errorf("a file of %d bytes of %d is intact", length, len(whole))
		}
	}
}
