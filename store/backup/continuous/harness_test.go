package continuous_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"kontor/store"
	"kontor/store/backup/continuous"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// shipping is a database that is shipped to a target when the test says so.
type shipping struct {
	*continuous.Shipper
	db     *store.DB
	clock  *storetest.Clock
	target continuous.Target
	close  func() error // of the recorder
}

func newShipping(t *testing.T, target continuous.Target) *shipping {
	t.Helper()
	clock := storetest.NewClock()
	s := &shipping{clock: clock, target: target}
	s.db = storetest.OpenAgain(t, store.Options{Dir: storetest.Dir(t), Clock: clock})
	s.begin(t)
	return s
}

// begin begins to ship, as a start of the server does.
func (s *shipping) begin(t *testing.T) {
	t.Helper()
	recorder, err := s.db.Record()
	if err != nil {
		t.Fatal(err)
	}
	s.close = sync.OnceValue(recorder.Close)
	t.Cleanup(func() { s.close() })
	s.Shipper = continuous.New(recorder, continuous.Options{
		Target: s.target, Key: func() continuous.Key { return continuous.KeyOf(s.db.BackupKey()) }, WholeEvery: 24 * time.Hour, Retain: 30 * 24 * time.Hour,
		Spool: s.db.Dir(), Clock: s.clock, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
}

// write writes audit entries, ships them, and returns the time of the state and how many entries there are.
func (s *shipping) write(t *testing.T, entries int) (at store.Time, total int64) {
	t.Helper()
	storetest.Audit(t, s.db, entries)
	if err := s.Ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	at = s.db.Now()
	s.clock.Advance(time.Minute)
	return at, s.count(t)
}

func (s *shipping) count(t *testing.T) (n int64) {
	t.Helper()
	if err := s.db.QueryRow(t.Context(), "SELECT COUNT(*) FROM audit_entries").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func (s *shipping) key(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.db.Dir(), "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// restore restores the state of a time and returns how many audit entries it has. All of it is checked.
func (s *shipping) restore(t *testing.T, at store.Time) (int64, error) {
	t.Helper()
	to := inspect.Source{Dir: filepath.Join(t.TempDir(), "data"), SecretKey: s.key(t)}
	_, report, err := continuous.Restore(t.Context(), s.target, at, to)
	if err != nil {
		if left, _ := os.ReadDir(to.Dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		return 0, err
	}
	db := storetest.OpenAgain(t, store.Options{Dir: to.Dir, SecretKey: to.SecretKey})
	storetest.Audit(t, db, 1)
	return report.AuditEntries, nil
}

// faulty is a target that fails as a test says.
type faulty struct {
	continuous.Target
	put func(name string) error // before an object is stored; nil lets it through
	// afterwards is the same after it was stored.
	afterwards func(name string) error
}

var errTarget = errors.New("the target does not answer")

func (f *faulty) Put(ctx context.Context, name string, size int64, in io.ReadSeeker) error {
	if f.put != nil {
		if err := f.put(name); err != nil {
			return err
		}
	}
	if err := f.Target.Put(ctx, name, size, in); err != nil || f.afterwards == nil {
		return err
	}
	return f.afterwards(name)
}

func directory(t *testing.T) continuous.Target {
	t.Helper()
	target, err := continuous.Open(filepath.Join(t.TempDir(), "vault"))
	if err != nil {
		t.Fatal(err)
	}
	return target
}
