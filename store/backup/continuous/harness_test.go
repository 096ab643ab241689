package continuous_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
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

	jumped    time.Duration // of the time on the clock, has not passed
	confirmed string        // Options.Line
	holder    string        // Options.Holder
}

func newShipping(t *testing.T, target continuous.Target) *shipping {
	t.Helper()
	return shippingOf(t, storetest.Dir(t), target)
}

// shippingOf ships the database of a directory.
func shippingOf(t *testing.T, dir string, target continuous.Target) *shipping {
	t.Helper()
	clock := storetest.NewClock()
	s := &shipping{clock: clock, target: target, holder: "this machine"}
	s.db = storetest.OpenAgain(t, store.Options{Dir: dir, Clock: clock})
	s.begin(t)
	return s
}

// copyOf returns a database in a copy of the directory of another one, which is shipped to the same target.
func copyOf(t *testing.T, s *shipping) *shipping {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	copyFiles := func() error { return os.CopyFS(dir, os.DirFS(s.db.Dir())) }
	err := s.db.View(t.Context(), func(v *store.View) error { // the log is not emptied between the copies of the database and of the log
		return errors.Join(v.QueryRow(t.Context(), "SELECT COUNT(*) FROM audit_entries").Scan(new(int)), copyFiles())
	})
	if errors.Is(err, store.ErrClosed) {
		err = copyFiles()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, filepath.Join(dir, "secret.key")} {
		if err := os.Chmod(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c := &shipping{clock: s.clock, target: s.target, holder: "the machine of the copy"}
	c.db = storetest.OpenAgain(t, store.Options{Dir: dir, Clock: s.clock})
	c.begin(t)
	return c
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
	epoch := storetest.NewClock().Now()
	s.Shipper = continuous.New(recorder, continuous.Options{
		Target: s.target, Key: func() continuous.Key { return continuous.KeyOf(s.db.BackupKey()) }, WholeEvery: 24 * time.Hour, Retain: 30 * 24 * time.Hour,
		Spool: s.db.Dir(), Line: s.confirmed, Holder: s.holder, Elapsed: func() time.Duration { return s.clock.Now().Sub(epoch) - s.jumped },
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
}

// again ends the shipping, as a kill does, and begins it again.
func (s *shipping) again(t *testing.T) {
	t.Helper()
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	s.begin(t)
}

// stop ends the shipping in order and closes the database.
func (s *shipping) stop(t *testing.T) {
	t.Helper()
	if err := errors.Join(s.Stop(t.Context()), s.db.Close()); err != nil {
		t.Fatal(err)
	}
	s.close = func() error { return nil }
}

// jump changes the clock although no time passes.
func (s *shipping) jump(d time.Duration) {
	s.clock.Advance(d)
	s.jumped += d
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
	r, err := s.restoreWanted(t, continuous.Wanted{At: at})
	return r.AuditEntries, err
}

func (s *shipping) restoreWanted(t *testing.T, w continuous.Wanted) (continuous.Restored, error) {
	t.Helper()
	to := inspect.Source{Dir: filepath.Join(t.TempDir(), "data"), SecretKey: s.key(t)}
	r, err := continuous.Restore(t.Context(), s.target, w, to)
	if err != nil {
		if left, _ := os.ReadDir(to.Dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		return continuous.Restored{}, err
	}
	db := storetest.OpenAgain(t, store.Options{Dir: to.Dir, SecretKey: to.SecretKey})
	storetest.Audit(t, db, 1)
	return r, db.Close()
}

// look returns what the target holds.
func (s *shipping) look(t *testing.T) *continuous.Survey {
	t.Helper()
	survey, err := continuous.Look(t.Context(), s.target, continuous.KeyOf(s.db.BackupKey()))
	if err != nil {
		t.Fatal(err)
	}
	return survey
}

// list returns what the list of the target prints.
func (s *shipping) list(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	if err := s.look(t).Print(&out, true); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// names returns the names of the parts, in their order.
func (s *shipping) names(t *testing.T) (names []string) {
	t.Helper()
	objects, err := s.target.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if !strings.HasSuffix(o.Name, "/line.age") {
			names = append(names, o.Name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(path.Base(a), path.Base(b)) })
	return names
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
