package backup_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"kontor/store/backup"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// chain makes a backup and two increments of a database, and returns their names and the number of audit entries at each.
func chain(t *testing.T) (files []string, entries []int64) {
	t.Helper()
	dir := storetest.Dir(t)
	db := storetest.OpenDir(t, dir)
	source := inspect.Source{Dir: dir}
	var base string
	for _, name := range []string{"full", "first", "second"} {
		storetest.Audit(t, db, 300)
		file := filepath.Join(t.TempDir(), name)
		result, err := backup.Create(t.Context(), source, file, backup.Options{Base: base, WithKey: true})
		if err != nil {
			t.Fatal(err)
		}
		if base != "" && result.Changed >= result.Pages {
			t.Errorf("%s holds %d of %d pages", name, result.Changed, result.Pages)
		}
		report, err := inspect.Check(t.Context(), source, nil)
		if err != nil {
			t.Fatal(err)
		}
		base, files, entries = file, append(files, file), append(entries, report.AuditEntries)
	}
	return files, entries
}

func TestIncrement_RestoresEachState(t *testing.T) {
	files, entries := chain(t)
	for i := range files {
		target := filepath.Join(t.TempDir(), "data")
		report, err := backup.Restore(t.Context(), files[:i+1], inspect.Source{Dir: target})
		if err != nil {
			t.Fatal(err)
		}
		if report.AuditEntries != entries[i] {
			t.Errorf("after %d files: %d entries, want %d", i+1, report.AuditEntries, entries[i])
		}
		storetest.Audit(t, storetest.OpenDir(t, target), 1)
	}
}

func TestIncrement_RejectsGapsAndOtherOrders(t *testing.T) {
	files, _ := chain(t)
	full, first, second := files[0], files[1], files[2]
	for name, given := range map[string][]string{
		"nothing":             {},
		"without its base":    {first},
		"a gap":               {full, second},
		"twice":               {full, first, first},
		"backwards":           {full, second, first},
		"two complete":        {full, full},
		"complete at the end": {full, first, full},
	} {
		t.Run(name, func(t *testing.T) {
			target := filepath.Join(t.TempDir(), "data")
			if _, err := backup.Restore(t.Context(), given, inspect.Source{Dir: target}); err == nil {
				t.Fatal("restored")
			}
			if left, _ := os.ReadDir(target); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestWrite_StreamsAndReportsProgress(t *testing.T) {
	dir := storetest.Dir(t)
	storetest.Audit(t, storetest.OpenDir(t, dir), 100)
	var out bytes.Buffer
	var last, total int64
	result, err := backup.Write(t.Context(), inspect.Source{Dir: dir}, &out, backup.Options{
		WithKey: true, Progress: func(done, all int64) { last, total = done, all },
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != result.Database || total != result.Database || result.Compressed != int64(out.Len()) || result.Compressed >= result.Database {
		t.Errorf("progress %d of %d, %+v, %d bytes", last, total, result, out.Len())
	}
}

func FuzzRestore(f *testing.F) {
	dir := f.TempDir()
	f.Add([]byte{})
	f.Add([]byte("\x28\xb5\x2f\xfd\x04\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(dir, "backup")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		target := filepath.Join(t.TempDir(), "data")
		if _, err := backup.Restore(t.Context(), []string{file}, inspect.Source{Dir: target}); err == nil {
			t.Error("restored")
		}
	})
}
