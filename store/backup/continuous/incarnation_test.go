package continuous_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/store"
	"kontor/store/backup/continuous"
	"kontor/store/inspect"
	"kontor/store/storetest"
)

// A copy or a restored database does not ship to the line that it comes from, nor beside it before the operator confirms it.
func TestLine_CopyIsNotShipped(t *testing.T) {
	s := newShipping(t, directory(t))
	s.write(t, 5)
	c := copyOf(t, s)
	storetest.Audit(t, c.db, 50)
	if err := c.Ship(t.Context()); !errors.Is(err, continuous.ErrUnconfirmed) {
		t.Fatalf("the copy: %v", err)
	}
	if c.Check(t.Context()) == nil {
		t.Error("the copy seems to be shipped")
	}
	_, want := s.write(t, 5)
	if got, err := s.restore(t, 0); err != nil || got != want || len(s.look(t).Lines) != 1 {
		t.Errorf("%d entries, %v; want %d\n%s", got, err, want, s.list(t))
	}
	elsewhere := &shipping{db: c.db, clock: c.clock, target: directory(t)}
	c.close()
	elsewhere.begin(t)
	if _, err := elsewhere.restore(t, 0); !errors.Is(err, continuous.ErrNoState) {
		t.Error(err)
	}
	elsewhere.write(t, 1)
	if _, err := elsewhere.restore(t, 0); err != nil {
		t.Errorf("at another place: %v", err)
	}

	// Confirmed, it continues the line, until the other one continues, too.
	c.confirmed = strings.Fields(elsewhere.list(t))[1]
	c.confirmed = strings.TrimSuffix(c.confirmed, ":")
	elsewhere.close()
	c.begin(t)
	_, wantCopy := c.write(t, 1)
	if got, err := c.restore(t, 0); err != nil || got != wantCopy {
		t.Errorf("confirmed: %d entries, %v; want %d\n%s", got, err, wantCopy, s.list(t))
	}
	first := s.Status().Line
	_, want = s.write(t, 1)
	if s.Status().Displaced == nil || s.Status().Line == first {
		t.Errorf("the former server still writes the line that the copy continues: %+v", s.Status())
	}
	if _, err := s.restore(t, 0); !errors.Is(err, continuous.ErrAmbiguous) || !strings.Contains(err.Error(), c.confirmed) {
		t.Errorf("two histories: %v", err)
	}
	if r, err := s.restoreWanted(t, continuous.Wanted{Line: c.confirmed}); err != nil || r.AuditEntries != wantCopy || len(r.Notes) == 0 {
		t.Errorf("the named line: %d entries, notes %q, %v; want %d", r.AuditEntries, r.Notes, err, wantCopy)
	}
	if r, err := s.restoreWanted(t, continuous.Wanted{Line: s.Status().Line}); err != nil || r.AuditEntries != want {
		t.Errorf("the other named line: %d entries, %v; want %d", r.AuditEntries, err, want)
	}
	if got := s.list(t); !strings.Contains(got, "fork: the line began because another server wrote") || !strings.Contains(got, c.confirmed+" continues the line") {
		t.Error(got)
	}
	if _, err := s.restoreWanted(t, continuous.Wanted{Line: "aaaaaaaaaaaaaaaa"}); !errors.Is(err, continuous.ErrNoState) {
		t.Errorf("an unknown line: %v", err)
	}
}

// A restored database that continues a line which has ended has its whole history.
func TestLine_RestoredContinues(t *testing.T) {
	s := newShipping(t, directory(t))
	early, wantEarly := s.write(t, 5)
	s.write(t, 5)
	s.stop(t)
	c := copyOf(t, s)
	c.confirmed = lineToConfirm(t, c)
	c.again(t)
	_, want := c.write(t, 5)
	for at, want := range map[store.Time]int64{0: want, early: wantEarly} {
		if got, err := c.restore(t, at); err != nil || got != want {
			t.Errorf("%d entries, %v; want %d", got, err, want)
		}
	}
	if got := c.list(t); !strings.Contains(got, "it continues") {
		t.Error(got)
	}
	// Without its parts, the line that it continues is not the newest state in silence.
	for _, name := range c.names(t) {
		if strings.HasPrefix(name, c.Status().Line) {
			if err := c.target.Delete(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.restore(t, 0); !errors.Is(err, continuous.ErrGap) || !strings.Contains(err.Error(), "all parts of "+c.Status().Line) {
		t.Errorf("all parts of the newest line are deleted: %v", err)
	}
	if r, err := c.restoreWanted(t, continuous.Wanted{AllowGap: true}); err != nil || r.AuditEntries != 10 {
		t.Errorf("with a gap allowed: %d entries, %v; want 10", r.AuditEntries, err)
	}
}

// A restored database is an incarnation that the restore names, also when its directory is copied before its first start.
func TestLine_RestoredIsAnIncarnation(t *testing.T) {
	s := newShipping(t, directory(t))
	s.write(t, 5)
	to := inspect.Source{Dir: filepath.Join(t.TempDir(), "data"), SecretKey: s.key(t)}
	restored, err := continuous.Restore(t.Context(), s.target, continuous.Wanted{}, to)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to.Dir, "secret.key"), []byte(to.SecretKey), 0o600); err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "copied")
	if err := os.CopyFS(copied, os.DirFS(to.Dir)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{copied, filepath.Join(copied, "secret.key")} {
		if err := os.Chmod(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	moved := to.Dir + " moved"
	if err := os.Rename(to.Dir, moved); err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, dir := range []string{moved, copied, moved} {
		c := shippingOf(t, dir, directory(t))
		c.write(t, 1)
		if line := c.Status().Line; lines[dir] == "" {
			lines[dir] = line
		} else if line != lines[dir] {
			t.Errorf("%s: the second start is the incarnation %s, the first one %s", dir, line, lines[dir])
		}
		c.stop(t)
	}
	if first := s.Status().Line; lines[moved] != restored.Incarnation || lines[copied] == restored.Incarnation || lines[copied] == first || restored.Incarnation == first {
		t.Errorf("%s was restored from %s: started as %v", restored.Incarnation, first, lines)
	}
}

// A server that starts again after another one continued its line ships nothing, until the operator confirms it.
func TestLine_FormerServerStartsAgain(t *testing.T) {
	s := newShipping(t, directory(t))
	s.write(t, 5)
	c := copyOf(t, s)
	c.confirmed = lineToConfirm(t, c)
	c.again(t)
	_, wantCopy := c.write(t, 5)
	s.again(t)
	if line := lineToConfirm(t, s); line != s.look(t).Lines[0].ID {
		t.Errorf("the former server may continue as %q", line)
	}
	if got, err := s.restore(t, 0); err != nil || got != wantCopy {
		t.Errorf("%d entries, %v; want %d", got, err, wantCopy)
	}
	s.confirmed = lineToConfirm(t, s)
	s.again(t)
	if err := s.Ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := s.restore(t, 0); err != nil || got != 5 {
		t.Errorf("confirmed, without a change: %d entries, %v; want 5\n%s", got, err, s.list(t))
	}
	_, want := s.write(t, 1)
	if got, err := s.restore(t, 0); err != nil || got != want {
		t.Errorf("confirmed: %d entries, %v; want %d", got, err, want)
	}
	c.write(t, 1)
	if c.Status().Displaced == nil {
		t.Error("the copy still writes its line")
	}
}

// lineToConfirm returns the value of backup.line that the error of a server names, which ships nothing without it.
func lineToConfirm(t *testing.T, s *shipping) string {
	t.Helper()
	if err := s.Ship(t.Context()); !errors.Is(err, continuous.ErrUnconfirmed) {
		t.Fatal(err)
	}
	_, name, _ := strings.Cut(s.Status().Failing.Error(), "backup.line=")
	name, _, _ = strings.Cut(name, " ")
	return name
}

// A database that was put back to an earlier state is a new incarnation.
func TestLine_RolledBackDatabase(t *testing.T) {
	s := newShipping(t, directory(t))
	s.write(t, 3)
	s.stop(t)
	earlier := map[string][]byte{}
	for _, name := range []string{"kontor.db", "kontor.mark"} {
		data, err := os.ReadFile(filepath.Join(s.db.Dir(), name))
		if err != nil {
			t.Fatal(err)
		}
		earlier[name] = data
	}
	dir := s.db.Dir()
	open := func() {
		s.db = storetest.OpenAgain(t, store.Options{Dir: dir, Clock: s.clock})
		s.begin(t)
	}
	open()
	s.write(t, 3)
	s.stop(t)
	for name, data := range earlier { // in place: the file stays the same, as in a snapshot of the disk
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_TRUNC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(data); err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	}
	open()
	storetest.Audit(t, s.db, 9)
	if err := s.Ship(t.Context()); !errors.Is(err, continuous.ErrUnconfirmed) {
		t.Errorf("%v", err)
	}
	if got, err := s.restore(t, 0); err != nil || got != 6 {
		t.Errorf("%d entries, %v; want the 6 that were shipped", got, err)
	}
}

// The newest chain of each incarnation is never deleted, also when another line has continued it for long.
func TestLine_RetentionKeepsEachIncarnation(t *testing.T) {
	s := newShipping(t, directory(t))
	s.write(t, 5)
	s.again(t)
	_, want := s.write(t, 5)
	first := s.Status().Line
	s.stop(t)
	c := copyOf(t, s)
	c.confirmed = lineToConfirm(t, c)
	c.again(t)
	for range 6 {
		c.write(t, 1)
		c.clock.Advance(10 * 24 * time.Hour)
	}
	for _, l := range c.look(t).Lines {
		if l.ID == first && l.Parts() != 1 || l.ID != first && (l.Parts() < 3 || l.Parts() > 5) {
			t.Errorf("%s has %d parts after 60 days", l.ID, l.Parts())
		}
	}
	if r, err := c.restoreWanted(t, continuous.Wanted{Line: first}); err != nil || r.AuditEntries != want {
		t.Errorf("the former line: %d entries, %v; want %d", r.AuditEntries, err, want)
	}
	if _, err := c.restore(t, 0); err != nil {
		t.Error(err)
	}
}
