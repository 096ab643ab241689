package binding_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"kontor/store/sqlite/internal/binding"
)

// open opens the database at path with a table.
func open(t *testing.T, path string) *binding.Conn {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := binding.Open(path, binding.ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for _, text := range []string{"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "CREATE TABLE a (n INTEGER)"} {
		if err := c.Run(text); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// A failure is reported with operation, file and error, and nothing is written afterwards.
func TestWatch_ReportsFailures(t *testing.T) {
	insert := func(c *binding.Conn) error { return c.Run("INSERT INTO a VALUES (1)") }
	checkpoint := func(c *binding.Conn) error {
		_, _, err := c.Checkpoint()
		return err
	}
	for _, c := range []struct {
		name string
		op   binding.Op
		kind binding.Kind
		do   func(*binding.Conn) error
		file string
	}{
		{"a write of the log", binding.Write, binding.Log, insert, "a.db-wal"},
		{"a sync of the log", binding.Sync, binding.Log, checkpoint, "a.db-wal"},
		{"a write of the database", binding.Write, binding.Database, checkpoint, "a.db"},
		{"a sync of the database", binding.Sync, binding.Database, checkpoint, "a.db"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.db")
			var failures []*binding.IOError
			armed, calls := false, 0
			w := &binding.Watch{Failed: func(err *binding.IOError) { failures = append(failures, err) }}
			w.SetIntercept(func(op binding.Op, kind binding.Kind, _ int64) syscall.Errno {
				if !armed || op == binding.Read {
					return 0
				}
				calls++
				if op == c.op && kind == c.kind {
					return syscall.EIO
				}
				return 0
			})
			remove, err := w.Add(path)
			if err != nil {
				t.Fatal(err)
			}
			defer remove()
			conn := open(t, path)
			if err := insert(conn); err != nil {
				t.Fatal(err)
			}
			armed = true
			if err := c.do(conn); err == nil {
				t.Fatal("it succeeded")
			}
			if len(failures) != 1 {
				t.Fatalf("%d failures were reported", len(failures))
			}
			if f := failures[0]; f.Op != c.op || f.Kind != c.kind || filepath.Base(f.Path) != c.file || !errors.Is(f, syscall.EIO) {
				t.Errorf("reported: %+v, %v", f, f)
			}
			before := calls
			for _, do := range []func(*binding.Conn) error{insert, checkpoint} {
				if err := do(conn); err == nil {
					t.Error("something was written after the failure")
				}
			}
			conn.Close()
			if calls != before || len(failures) != 1 {
				t.Errorf("%d operations reached the disk after the failure, %d failures", calls-before, len(failures))
			}
			if _, err := os.Stat(path + "-wal"); err != nil {
				t.Errorf("the log is gone: %v", err)
			}
		})
	}
}

// A full disk is no failure: writes succeed again when there is space.
func TestWatch_IgnoresAFullDisk(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		path := filepath.Join(t.TempDir(), "a.db")
		full := false
		w := &binding.Watch{Failed: func(err *binding.IOError) { t.Errorf("reported: %v", err) }}
		w.SetIntercept(func(op binding.Op, _ binding.Kind, _ int64) syscall.Errno {
			if full && op == binding.Write {
				return errno
			}
			return 0
		})
		remove, err := w.Add(path)
		if err != nil {
			t.Fatal(err)
		}
		defer remove()
		c := open(t, path)
		full = true
		var e *binding.Error
		if err := c.Run("INSERT INTO a VALUES (1)"); !errors.As(err, &e) || e.Primary() != 13 {
			t.Errorf("%v: got %v, want SQLITE_FULL", errno, err)
		}
		full = false
		if err := c.Run("INSERT INTO a VALUES (1)"); err != nil {
			t.Errorf("with room again: %v", err)
		}
	}
}

// A watch does not observe databases at other paths.
func TestWatch_ObservesOnlyItsDatabase(t *testing.T) {
	dir := t.TempDir()
	var seen []binding.Kind
	w := &binding.Watch{}
	w.SetIntercept(func(_ binding.Op, kind binding.Kind, _ int64) syscall.Errno {
		seen = append(seen, kind)
		return 0
	})
	remove, err := w.Add(filepath.Join(dir, "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	open(t, filepath.Join(dir, "b.db"))
	if len(seen) > 0 {
		t.Errorf("operations on another database were seen: %v", seen)
	}
	open(t, filepath.Join(dir, ".", "a.db"))
	if !slices.Contains(seen, binding.Log) || !slices.Contains(seen, binding.Database) {
		t.Errorf("only these files were seen: %v", seen)
	}
	remove()
	if again, err := w.Add(filepath.Join(dir, "a.db")); err != nil {
		t.Error(err)
	} else {
		again()
	}
}

// A page that cannot be read through the mapping is reported, and does not end the process with the stacks of all
// goroutines.
func TestWatch_ReportsABusError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	var failures []*binding.IOError
	w := &binding.Watch{Failed: func(err *binding.IOError) { failures = append(failures, err) }}
	remove, err := w.Add(path)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	c := open(t, path)
	for _, text := range []string{
		"CREATE TABLE b (n INTEGER)",
		"WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM r WHERE n < 20000) INSERT INTO b SELECT n FROM r",
	} {
		if err := c.Run(text); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := c.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	reader, err := binding.Open(path, binding.ReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"PRAGMA mmap_size = 1000000", "SELECT * FROM a"} { // maps the file
		if err := reader.Run(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(path, 8192); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the read did not fail")
			}
		}()
		_ = reader.Run("SELECT SUM(n) FROM b")
	}()
	if len(failures) != 1 || failures[0].Op != binding.Map || !errors.Is(failures[0], syscall.EIO) || failures[0].Path != path {
		t.Errorf("reported: %v", failures)
	}
}
