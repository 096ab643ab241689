package continuous_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"kontor/store"
	"kontor/store/backup/continuous"
	"kontor/store/inspect"
	"kontor/store/sealing"
	"kontor/store/storetest"
)

func TestRestore_AnyTimeThatWasShipped(t *testing.T) {
	s := newShipping(t, directory(t))
	var times []store.Time
	var totals []int64
	for range 4 {
		at, total := s.write(t, 50)
		times, totals = append(times, at), append(totals, total)
	}
	for i := range times {
		for _, at := range []store.Time{times[i], times[i].Add(59 * time.Second)} {
			if got, err := s.restore(t, at); err != nil || got != totals[i] {
				t.Errorf("at %s: %d entries, %v; want %d", at, got, err, totals[i])
			}
		}
	}
	if got, err := s.restore(t, 0); err != nil || got != totals[3] {
		t.Errorf("the latest: %d entries, %v; want %d", got, err, totals[3])
	}
	if _, err := s.restore(t, times[0].Add(-time.Millisecond)); !errors.Is(err, continuous.ErrNoState) {
		t.Errorf("before the first state: %v", err)
	}
	if _, err := (&shipping{db: s.db, target: directory(t)}).restore(t, 0); !errors.Is(err, continuous.ErrNoState) {
		t.Errorf("an empty target: %v", err)
	}
}

func TestShip_OnlyWhatHasChanged(t *testing.T) {
	s := newShipping(t, directory(t))
	s.write(t, 300)
	whole := s.Status()
	for range 3 {
		if err := s.Ship(t.Context()); err != nil || s.Status().Shipped != whole.Shipped {
			t.Fatalf("%v; shipped without a change: %+v", err, s.Status())
		}
	}
	s.write(t, 1)
	if more := s.Status(); more.Shipped != whole.Shipped+1 || more.Bytes-whole.Bytes > whole.Bytes/2 {
		t.Errorf("one entry took %d bytes after %d", more.Bytes-whole.Bytes, whole.Bytes)
	}
}

// A target that is away loses nothing: what has changed meanwhile comes with the next part. The same is true for a target that
// stores a part and then fails.
func TestShip_TargetFails(t *testing.T) {
	for name, when := range map[string]func(f *faulty, fail func(string) error){
		"before it stores": func(f *faulty, fail func(string) error) { f.put = fail },
		"after it stored":  func(f *faulty, fail func(string) error) { f.afterwards = fail },
	} {
		t.Run(name, func(t *testing.T) {
			target := &faulty{Target: directory(t)}
			s := newShipping(t, target)
			s.write(t, 50)
			s.again(t) // so that it fails at a new chain
			when(target, func(string) error { return errTarget })
			for range 3 {
				storetest.Audit(t, s.db, 20)
				if err := s.Ship(t.Context()); !errors.Is(err, errTarget) || !errors.Is(s.Status().Failing, errTarget) {
					t.Fatalf("%v, status %+v", err, s.Status())
				}
				s.clock.Advance(time.Second)
			}
			when(target, nil)
			_, want := s.write(t, 20)
			if got, err := s.restore(t, 0); err != nil || got != want || s.Status().Failing != nil || strings.Contains(s.list(t), "fork") {
				t.Errorf("%d entries, %v, status %+v; want %d\n%s", got, err, s.Status(), want, s.list(t))
			}
		})
	}
}

func TestShip_TargetFailsFromTheBeginning(t *testing.T) {
	target := &faulty{Target: directory(t), put: func(string) error { return errTarget }}
	s := newShipping(t, target)
	if err := s.Ship(t.Context()); !errors.Is(err, errTarget) {
		t.Fatal(err)
	}
	storetest.Audit(t, s.db, 20)
	target.put = nil
	_, want := s.write(t, 1)
	if got, err := s.restore(t, 0); err != nil || got != want {
		t.Errorf("%d entries, %v; want %d", got, err, want)
	}
}

// Each start begins a chain, and so does each day. Old chains are deleted when a newer one began long enough ago.
func TestShip_ChainsAndRetention(t *testing.T) {
	s := newShipping(t, directory(t))
	first, wantFirst := s.write(t, 20)
	s.again(t)
	s.write(t, 20)
	if names := s.names(t); len(names) != 2 || !strings.HasSuffix(names[0], "-whole.age") || !strings.HasSuffix(names[1], "-whole.age") {
		t.Fatalf("%v", names)
	}
	if got, err := s.restore(t, first); err != nil || got != wantFirst {
		t.Errorf("the chain of the first start: %d entries, %v; want %d", got, err, wantFirst)
	}
	for range 40 {
		s.clock.Advance(24 * time.Hour)
		s.write(t, 1)
	}
	l := s.look(t).Lines[0]
	if n := l.Parts(); n < 30 || n > 33 || len(l.Gaps()) > 0 {
		t.Fatalf("%d parts after 40 days, gaps %v", n, l.Gaps())
	}
	if _, err := s.restore(t, l.From().At); err != nil {
		t.Errorf("the oldest state: %v", err)
	}
}

// Nothing in the target can be read without the key, or changed unnoticed.
func TestRestore_RejectsOtherKeysAndChanges(t *testing.T) {
	s := newShipping(t, directory(t))
	s.write(t, 50)
	s.write(t, 50)
	names := s.names(t)
	if len(names) != 2 {
		t.Fatalf("%v", names)
	}
	to := inspect.Source{Dir: t.TempDir(), SecretKey: strings.Repeat("ab", 32)}
	if _, err := continuous.Restore(t.Context(), s.target, continuous.Wanted{}, to); !errors.Is(err, sealing.ErrWrongKey) {
		t.Errorf("another key: %v", err)
	}
	to.SecretKey = ""
	if _, err := continuous.Restore(t.Context(), s.target, continuous.Wanted{}, to); !errors.Is(err, sealing.ErrNoKey) {
		t.Errorf("no key: %v", err)
	}
	for _, name := range names {
		content := contentOf(t, s.target, name)
		if bytes.Contains(content, []byte("SQLite")) || bytes.Contains(content, []byte("marked.")) || bytes.Contains(content, []byte("manifest")) {
			t.Errorf("%s is not encrypted", name)
		}
		for _, at := range []int{5, len(content) / 2, len(content) - 1} {
			changed := bytes.Clone(content)
			changed[at] ^= 1
			put(t, s.target, name, changed)
			if _, err := s.restore(t, 0); err == nil {
				t.Errorf("%s was restored with a changed byte %d of %d", name, at, len(content))
			}
		}
		put(t, s.target, name, content[:len(content)/2])
		if _, err := s.restore(t, 0); err == nil {
			t.Errorf("%s was restored although it was cut off", name)
		}
		put(t, s.target, name, content)
	}
	// A part of another chain in the place of one.
	put(t, s.target, names[1], contentOf(t, s.target, names[0]))
	if _, err := s.restore(t, 0); err == nil {
		t.Error("a part was restored in the place of another")
	}
}

// After a rotation of the master key the new key restores what was shipped since.
func TestShip_NewMasterKey(t *testing.T) {
	s := newShipping(t, directory(t))
	former := s.key(t)
	before, wantBefore := s.write(t, 20)
	if _, err := s.db.RotateMasterKey(t.Context(), store.Rotation{}); err != nil {
		t.Fatal(err)
	}
	_, want := s.write(t, 20)
	if got, err := s.restore(t, 0); err != nil || got != want {
		t.Errorf("%d entries, %v; want %d", got, err, want)
	}
	if _, err := s.restore(t, before); !errors.Is(err, sealing.ErrWrongKey) {
		t.Errorf("the chain of the former key, with the new one: %v", err)
	}
	to := inspect.Source{Dir: t.TempDir(), SecretKey: former}
	if r, err := continuous.Restore(t.Context(), s.target, continuous.Wanted{At: before}, to); err != nil || r.AuditEntries != wantBefore {
		t.Errorf("the chain of the former key: %+v, %v", r, err)
	}
}

func TestOpen_RejectsBadAddresses(t *testing.T) {
	for _, address := range []string{
		"ftp://x/y", "file://host/path", "file:relative", "s3://", "s3://bucket?endpoint=x", "s3://bucket?endpoint=ftp://x",
		"s3://key:secret@bucket/x", "s3://bucket?regoin=x", "\x00",
	} {
		if target, err := continuous.Open(address); err == nil {
			t.Errorf("%q is %s", address, target)
		}
	}
}

func contentOf(t *testing.T, target continuous.Target, name string) []byte {
	t.Helper()
	in, err := target.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func put(t *testing.T, target continuous.Target, name string, data []byte) {
	t.Helper()
	if err := target.Put(t.Context(), name, int64(len(data)), bytes.NewReader(data)); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

// A server that is started again and again within one second begins a chain each time. The newest state is in the last one.
func TestRestore_ChainsOfOneSecond(t *testing.T) {
	s := newShipping(t, directory(t))
	var want int64
	for range 12 {
		storetest.Audit(t, s.db, 1)
		want++
		if err := s.Ship(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.clock.Advance(time.Millisecond)
		s.again(t)
	}
	if got, err := s.restore(t, 0); err != nil || got != want {
		t.Errorf("%d entries, %v; want %d", got, err, want)
	}
}
