package sqlite_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"kontor/store"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// failingDisk is a database whose files fail on demand.
type failingDisk struct {
	*store.DB
	dir   string
	fatal atomic.Pointer[error] // what Options.Fatal was called with
	calls atomic.Int64          // of Options.Fatal
	log   lockedLog
	fail  atomic.Pointer[failure]
	after atomic.Int64 // operations that changed a file after the failure
}

// lockedLog is a log that is read while the database is open.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

type failure struct {
	op, file string
	errno    syscall.Errno
}

func newFailingDisk(t *testing.T) *failingDisk {
	t.Helper()
	d := &failingDisk{dir: storetest.Dir(t)}
	d.open(t)
	return d
}

func (d *failingDisk) open(t *testing.T) {
	t.Helper()
	db, err := openWith(t.Context(), store.Options{Dir: d.dir, Log: slog.New(slog.NewTextHandler(&d.log, nil)), Fatal: func(err error) {
		d.calls.Add(1)
		d.fatal.Store(&err)
	}})
	if err != nil {
		t.Fatal(err)
	}
	engineOf(db).Intercept(func(op, file string) syscall.Errno {
		if d.fatal.Load() != nil && op != "read" {
			d.after.Add(1)
		}
		if f := d.fail.Load(); f != nil && f.op == op && f.file == file {
			return f.errno
		}
		return 0
	})
	d.DB = db
	t.Cleanup(func() { db.Close() })
}

func (d *failingDisk) write(t *testing.T, name string) error {
	return d.InTx(t.Context(), func(tx *store.Tx) error {
		tx.Audit(store.AuditEntry{Action: "roles.create", RecID: name})
		return storetest.InsertRole(t.Context(), tx, name)
	})
}

// A failed write or sync of a data file ends the process; here, where Fatal returns, it stops all writes. No write is
// acknowledged and no file is changed, not even by Close. The next start has all acknowledged writes.
func TestDisk_FailureStopsAllWrites(t *testing.T) {
	checkpoint := func(t *testing.T, d *failingDisk) { engineOf(d.DB).Checkpoint() }
	closing := func(t *testing.T, d *failingDisk) {
		if err := d.Close(); !errors.Is(err, store.ErrIO) {
			t.Errorf("close reports %v", err)
		}
	}
	insert := func(t *testing.T, d *failingDisk) {
		if err := d.write(t, "lost"); !errors.Is(err, store.ErrIO) || !errors.Is(err, syscall.EIO) {
			t.Errorf("the write got %v", err)
		}
	}
	for _, c := range []struct {
		name string
		failure
		do func(*testing.T, *failingDisk)
	}{
		{"a write of the log", failure{"write", "kontor.db-wal", syscall.EIO}, insert},
		{"a sync of the log in a checkpoint", failure{"sync", "kontor.db-wal", syscall.EIO}, checkpoint},
		{"a write of the database in a checkpoint", failure{"write", "kontor.db", syscall.EIO}, checkpoint},
		{"a sync of the database in a checkpoint", failure{"sync", "kontor.db", syscall.EIO}, checkpoint},
		{"a sync for want of room", failure{"sync", "kontor.db", syscall.ENOSPC}, checkpoint},
		{"a sync of the log at the end", failure{"sync", "kontor.db-wal", syscall.EIO}, closing},
		{"a write of the database at the end", failure{"write", "kontor.db", syscall.EIO}, closing},
		{"a sync of the database at the end", failure{"sync", "kontor.db", syscall.EIO}, closing},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newFailingDisk(t)
			engineOf(d.DB).HoldCheckpoints() // One of its own could copy the log before the disk fails.
			if err := d.write(t, "kept"); err != nil {
				t.Fatal(err)
			}
			d.fail.Store(&c.failure)
			c.do(t, d)
			if n := d.calls.Load(); n != 1 {
				t.Fatalf("Fatal was called %d times", n)
			}
			said := (*d.fatal.Load()).Error()
			if !strings.Contains(said, filepath.Join(d.dir, c.file)+":") || !strings.Contains(said, c.errno.Error()) || strings.Contains(said, "\n") {
				t.Errorf("it says %q", said)
			}
			d.fail.Store(nil) // the disk works again, which must not matter
			if err := d.write(t, "later"); err == nil {
				t.Error("a write after the failure was acknowledged")
			}
			if err := d.Ready(t.Context()); err == nil {
				t.Error("ready after the failure")
			}
			engineOf(d.DB).Checkpoint()
			d.Close()
			if n := d.after.Load(); n != 0 {
				t.Errorf("%d operations reached the files after the failure", n)
			}
			if _, err := os.Stat(filepath.Join(d.dir, "kontor.db-wal")); err != nil {
				t.Errorf("the log: %v", err)
			}

			db := openDir(t, d.dir)
			var n int
			if err := db.QueryRow(t.Context(), "SELECT COUNT(*) FROM roles WHERE name = 'kept'").Scan(&n); err != nil || n != 1 {
				t.Errorf("after the start %d rows of the acknowledged write, %v", n, err)
			}
			if _, err := db.VerifyAudit(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// After a failed sync no write is acknowledged, and no second sync is tried.
func TestDisk_FailedSyncOfAGroup(t *testing.T) {
	d := newFailingDisk(t)
	engineOf(d.DB).OnSync(func() error { return syscall.EIO })
	if err := d.write(t, "a"); !errors.Is(err, store.ErrIO) || !errors.Is(err, syscall.EIO) || !store.Temporary(err) {
		t.Errorf("the write got %v", err)
	}
	engineOf(d.DB).OnSync(func() error {
		t.Error("a second sync was tried")
		return nil
	})
	if err := d.write(t, "b"); !errors.Is(err, store.ErrIO) {
		t.Errorf("a later write got %v", err)
	}
	if n := d.calls.Load(); n != 1 || !strings.Contains((*d.fatal.Load()).Error(), "kontor.db-wal: ") {
		t.Errorf("Fatal was called %d times, with %v", n, *d.fatal.Load())
	}
}

// A checkpoint that fails while a group is being synced keeps that group from being acknowledged.
func TestDisk_FailureDuringASync(t *testing.T) {
	d := newFailingDisk(t)
	if err := d.write(t, "first"); err != nil {
		t.Fatal(err)
	}
	engineOf(d.DB).HoldCheckpoints() // One of its own that runs already would keep the one below from syncing.
	engineOf(d.DB).OnSync(func() error {
		d.fail.Store(&failure{"sync", "kontor.db", syscall.EIO})
		engineOf(d.DB).Checkpoint() // as in the background; the writer is idle
		return nil
	})
	if err := d.write(t, "second"); !errors.Is(err, store.ErrIO) {
		t.Errorf("the write got %v", err)
	}
}

// A full disk is no failure: reads continue, writes are rejected and succeed again when there is space.
func TestDisk_FullDiskIsNoFailure(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		d := newFailingDisk(t)
		engineOf(d.DB).HoldCheckpoints() // one that began before a failure would succeed in it
		d.fail.Store(&failure{"write", "kontor.db-wal", errno})
		if err := d.write(t, "a"); !errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrIO) {
			t.Errorf("%v: the write got %v", errno, err)
		}
		if n := storetest.CountRoles(t, d.DB); n != 0 {
			t.Errorf("%d rows", n)
		}
		d.fail.Store(&failure{"write", "kontor.db", errno})
		for range 5 {
			if err := d.write(t, store.NewID()); err != nil {
				t.Errorf("%v: %v", errno, err)
			}
			engineOf(d.DB).Checkpoint()
		}
		d.fail.Store(nil)
		engineOf(d.DB).Checkpoint()
		if n := strings.Count(d.log.String(), "checkpoints fail"); n != 1 {
			t.Errorf("the log says %d times that checkpoints fail: %s", n, d.log.String())
		}
		if n := strings.Count(d.log.String(), "checkpoints succeed again"); n != 1 {
			t.Errorf("the log says %d times that checkpoints succeed: %s", n, d.log.String())
		}
		if n := d.calls.Load(); n != 0 {
			t.Errorf("Fatal was called %d times", n)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Commits that fail leave nothing behind in memory: a disk may be full for hours. Totals stay right.
func TestDisk_RejectedCommitsAreNotRemembered(t *testing.T) {
	d := newFailingDisk(t)
	count := func() int64 {
		t.Helper()
		n, err := d.CountRows(t.Context(), "roles", &store.Counting{
			SQL: `SELECT NULL AS value, count(*) AS rows FROM roles`, Rows: []store.KeyedTable{{Table: "roles", Key: "id"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	count() // commits are followed from here on
	if err := d.write(t, "first"); err != nil {
		t.Fatal(err)
	}
	d.fail.Store(&failure{"write", "kontor.db-wal", syscall.ENOSPC})
	for range 10 {
		if err := d.write(t, "rejected"); !errors.Is(err, store.ErrFull) {
			t.Fatalf("the write got %v", err)
		}
	}
	if n := engineOf(d.DB).Touched("roles"); n != 1 || count() != 1 {
		t.Errorf("%d touches, %d roles", n, count())
	}
	d.fail.Store(nil)
	if err := d.write(t, "second"); err != nil {
		t.Fatal(err)
	}
	if n := engineOf(d.DB).Touched("roles"); n != 2 || count() != 2 {
		t.Errorf("%d touches, %d roles", n, count())
	}
}

// A failed read is reported as ErrIO, not as damage and not as a full disk.
func TestDisk_FailedReadIsReported(t *testing.T) {
	d := newFailingDisk(t)
	d.fail.Store(&failure{"read", "kontor.db", syscall.EIO})
	err := d.InTx(t.Context(), func(tx *store.Tx) error {
		var n int
		return tx.QueryRow(t.Context(), "SELECT COUNT(*) FROM audit_entries a, idempotency_keys k").Scan(&n)
	})
	if !errors.Is(err, store.ErrIO) || errors.Is(err, store.ErrFull) || errors.Is(err, store.ErrCorrupt) {
		t.Errorf("the job got %v, want ErrIO", err)
	}
	if _, err := inspect.Check(t.Context(), inspect.Source{Dir: d.dir}, nil); !errors.Is(err, store.ErrIO) || errors.Is(err, store.ErrCorrupt) {
		t.Errorf("the check says %v, want ErrIO", err)
	}
	d.fail.Store(nil)
	if n := d.calls.Load(); n != 0 {
		t.Errorf("Fatal was called %d times for a read", n)
	}
}
