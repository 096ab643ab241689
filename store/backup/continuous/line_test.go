package continuous_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kontor/store/backup/continuous"
)

// A clock that jumps changes neither which state is the newest, nor what is deleted.
func TestLine_ClockJumps(t *testing.T) {
	for name, jump := range map[string]time.Duration{"5 minutes": 5 * time.Minute, "400 days": 400 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newShipping(t, directory(t))
			early, wantEarly := s.write(t, 5)
			s.again(t)
			s.jump(jump)
			s.write(t, 5)
			s.jump(-jump)
			s.again(t)
			_, want := s.write(t, 5)
			if parts := len(s.names(t)); parts != 3 {
				t.Errorf("%d parts, want 3", parts)
			}
			if got, err := s.restore(t, 0); err != nil || got != want {
				t.Errorf("the newest: %d entries, %v; want %d", got, err, want)
			}
			if got, err := s.restore(t, early); err != nil || got != wantEarly {
				t.Errorf("before the jump: %d entries, %v; want %d", got, err, wantEarly)
			}
		})
	}
}

// Two servers on snapshots of one disk look the same. The later one waits until it is clear whether the other one lives, and then
// has a line of its own.
func TestLine_TwoWriters(t *testing.T) {
	s := newShipping(t, directory(t))
	s.holder = "the first machine"
	s.again(t)
	s.write(t, 5)
	line := s.Status().Line
	s.close()
	s.holder = "another machine" // the same database, as in a snapshot
	s.begin(t)
	if err := s.Ship(t.Context()); err == nil {
		t.Fatal("the second server did not wait")
	}
	touchStatus(t, s, line) // the first one lives
	if err := s.Ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status := s.Status(); status.Line == line || status.Displaced == nil || s.Check(t.Context()) == nil {
		t.Errorf("%+v", status)
	}
	_, want := s.write(t, 5)
	if r, err := s.restoreWanted(t, continuous.Wanted{Line: s.Status().Line}); err != nil || r.AuditEntries != want {
		t.Errorf("%d entries, %v; want %d", r.AuditEntries, err, want)
	}
	if got := s.list(t); !strings.Contains(got, "fork") || strings.Count(got, "line ") < 2 {
		t.Error(got)
	}

	// The second one is displaced later, while it ships. It notices that at the next change.
	own := s.Status().Line
	touchStatus(t, s, own)
	s.write(t, 1)
	if status := s.Status(); status.Line == own || status.Displaced == nil {
		t.Errorf("%+v", status)
	}
	// After a restart it still says so, until the operator confirms that it is the right one.
	s.again(t)
	s.write(t, 1)
	if s.Check(t.Context()) == nil {
		t.Error("after a restart the conflict is forgotten")
	}
	if _, err := s.restore(t, 0); err != nil && !errors.Is(err, continuous.ErrAmbiguous) {
		t.Error(err)
	}
	s.confirmed = s.Status().Line
	s.again(t)
	_, want = s.write(t, 1)
	if got, err := s.restore(t, 0); err != nil || got != want || s.Check(t.Context()) != nil {
		t.Errorf("confirmed: %d entries, %v; want %d; %v", got, err, want, s.Check(t.Context()))
	}
}

// touchStatus stores the status of another server in a line.
func touchStatus(t *testing.T, s *shipping, line string) {
	t.Helper()
	put(t, s.target, line+"/line.age", []byte("the status of another server"))
}

// A server whose machine was lost is waited for only for a while.
func TestLine_FormerServerIsDead(t *testing.T) {
	s := newShipping(t, directory(t))
	s.holder = "the first start of the machine"
	s.again(t)
	s.write(t, 5)
	line := s.Status().Line
	s.holder = "the second one"
	s.again(t)
	if err := s.Ship(t.Context()); err == nil {
		t.Fatal("it did not wait")
	}
	s.clock.Advance(time.Minute)
	_, want := s.write(t, 5)
	if got, err := s.restore(t, 0); err != nil || got != want || s.Status().Line != line {
		t.Errorf("%d entries, %v; want %d in the line %s: %+v", got, err, want, line, s.Status())
	}
}

// Another bank at the same place changes nothing.
func TestLine_AnotherBank(t *testing.T) {
	s := newShipping(t, directory(t))
	other := shippingOf(t, filepath.Join(t.TempDir(), "another bank"), s.target) // with a key of its own
	other.write(t, 3)
	_, want := s.write(t, 5)
	other.write(t, 3)
	r, err := s.restoreWanted(t, continuous.Wanted{})
	if err != nil || r.AuditEntries != want || !strings.Contains(strings.Join(r.Notes, "\n"), "foreign: "+other.Status().Line) {
		t.Errorf("%d entries, notes %q, %v; want %d", r.AuditEntries, r.Notes, err, want)
	}
	if got, err := other.restore(t, 0); err != nil || got != 6 {
		t.Errorf("the other bank: %d entries, %v", got, err)
	}
	if got := s.list(t); !strings.Contains(got, "foreign") || strings.Count(got, "foreign") != 1 {
		t.Error(got)
	}
}

// Whatever part is deleted, cut off, swapped or of another bank: a restore never returns an older state in silence.
func TestLine_EachPartMissingOrDamaged(t *testing.T) {
	s := newShipping(t, directory(t))
	for range 2 {
		s.write(t, 3)
		s.write(t, 3)
		s.again(t)
	}
	_, want := s.write(t, 3)
	other := shippingOf(t, filepath.Join(t.TempDir(), "another bank"), directory(t))
	other.write(t, 1)
	foreign := contentOf(t, other.target, other.names(t)[0])
	names := s.names(t) // two parts each of two chains, and one of the third chain
	if len(names) != 5 {
		t.Fatal(names)
	}
	line := s.Status().Line + "/line.age"
	for i, name := range names {
		content := contentOf(t, s.target, name)
		neighbour := contentOf(t, s.target, names[(i+1)%len(names)])
		for damage, changed := range map[string][]byte{"deleted": nil, "cut off": content[:len(content)*2/3], "swapped": neighbour, "foreign": foreign} {
			if changed == nil {
				if err := s.target.Delete(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			} else {
				put(t, s.target, name, changed)
			}
			isLast := i == len(names)-1
			got, err := s.restore(t, 0)
			if !isLast && (err != nil || got != want) {
				t.Errorf("%d %s: %d entries, %v; want %d: the last chain is whole", i, damage, got, err, want)
			}
			if isLast && err == nil {
				t.Errorf("%d %s: restored %d entries in silence", i, damage, got)
			}
			if isLast && err != nil && strings.Contains(err.Error(), "secret key") {
				t.Errorf("%d %s: misleading: %v", i, damage, err)
			}
			if isLast && damage == "deleted" && !errors.Is(err, continuous.ErrGap) {
				t.Errorf("%d %s: %v", i, damage, err)
			}
			if list := s.list(t); damage == "deleted" && i > 0 && !strings.Contains(list, "gap:") {
				t.Errorf("%d %s: the list says %q", i, damage, list)
			}
			if isLast {
				r, err := s.restoreWanted(t, continuous.Wanted{AllowGap: true})
				if err != nil || r.AuditEntries != 12 {
					t.Errorf("%d %s, with a gap allowed: %d entries, %v", i, damage, r.AuditEntries, err)
				}
			}
			put(t, s.target, name, content)
		}
	}
	// Within a chain, states after the part and in it are not restored in silence.
	at := s.look(t).Lines[0].From().At.Add(90 * time.Second)
	content := contentOf(t, s.target, names[1])
	if err := s.target.Delete(t.Context(), names[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.restore(t, at); !errors.Is(err, continuous.ErrGap) || !strings.Contains(err.Error(), "part 1 is missing") {
		t.Errorf("a time in a gap: %v", err)
	}
	if r, err := s.restoreWanted(t, continuous.Wanted{At: at, AllowGap: true}); err != nil || r.AuditEntries != 3 {
		t.Errorf("a time in a gap that is allowed: %d entries, %v", r.AuditEntries, err)
	}
	for damage, changed := range map[string][]byte{"swapped": contentOf(t, s.target, names[3]), "cut off": content[:200], "foreign": foreign} {
		put(t, s.target, names[1], changed)
		if _, err := s.restore(t, at); err == nil {
			t.Errorf("a time in a part that is %s was restored in silence", damage)
		}
		if r, err := s.restoreWanted(t, continuous.Wanted{At: at, AllowGap: true}); err != nil || r.AuditEntries != 3 {
			t.Errorf("a time in a part that is %s, with a gap allowed: %d entries, %v", damage, r.AuditEntries, err)
		}
	}
	put(t, s.target, names[1], content)
	// The status of the line only adds knowledge.
	for _, status := range [][]byte{nil, []byte("x"), contentOf(t, other.target, other.Status().Line+"/line.age")} {
		if err := s.target.Delete(t.Context(), line); err != nil {
			t.Fatal(err)
		}
		if status != nil {
			put(t, s.target, line, status)
		}
		r, err := s.restoreWanted(t, continuous.Wanted{})
		if err != nil || r.AuditEntries != want || !strings.Contains(strings.Join(r.Notes, "\n"), "line.age is missing or damaged") {
			t.Errorf("status %q: %d entries, notes %q, %v; want %d", status, r.AuditEntries, r.Notes, err, want)
		}
	}
}

// Chains of an earlier version are listed, and restored where their times leave no doubt.
func TestLine_ChainsOfAnEarlierVersion(t *testing.T) {
	s := newShipping(t, directory(t))
	target := directory(t)
	// The content of a part is what it was, but for facts that an earlier version does not look for.
	asOld := func(chain string, names []string) {
		for i, name := range names {
			at := strings.Split(filepath.Base(name), "-")[1]
			put(t, target, chain+"/000000000"+string(rune('0'+i))+"-"+at+".age", contentOf(t, s.target, name))
		}
	}
	s.write(t, 3)
	s.write(t, 3)
	first := s.names(t)
	s.again(t)
	_, want := s.write(t, 3)
	asOld("20260131T081530Z-abcdefgh", first)
	asOld("20260131T081730Z-abcdefgi", s.names(t)[2:])
	old := &shipping{db: s.db, clock: s.clock, target: target}
	r, err := old.restoreWanted(t, continuous.Wanted{Now: s.db.Now()})
	if err != nil || r.AuditEntries != want || !r.Line.Old {
		t.Errorf("%d entries, %v; want %d", r.AuditEntries, err, want)
	}
	if list := old.list(t); strings.Count(list, "old chain") != 2 {
		t.Error(list)
	}
	if _, err := old.restoreWanted(t, continuous.Wanted{Now: s.db.Now().Add(-time.Hour)}); !errors.Is(err, continuous.ErrAmbiguous) {
		t.Errorf("chains of the future: %v", err)
	}
	if r, err := old.restoreWanted(t, continuous.Wanted{Line: "20260131T081530Z-abcdefgh"}); err != nil || r.AuditEntries != 6 {
		t.Errorf("a named chain: %d entries, %v", r.AuditEntries, err)
	}
	// A line at the same place continues them.
	s.close()
	old.begin(t)
	_, want = old.write(t, 3)
	if got, err := old.restore(t, 0); err != nil || got != want {
		t.Errorf("after an upgrade: %d entries, %v; want %d", got, err, want)
	}
	// Deleting a part of them is a gap, too.
	old2 := &shipping{db: s.db, clock: s.clock, target: directory(t)}
	put(t, old2.target, "20260131T081530Z-abcdefgh/0000000000-1769847330123.age", contentOf(t, s.target, first[0]))
	put(t, old2.target, "20260131T081530Z-abcdefgh/0000000002-1769847390123.age", contentOf(t, s.target, first[1]))
	if _, err := old2.restoreWanted(t, continuous.Wanted{Now: s.db.Now()}); !errors.Is(err, continuous.ErrGap) {
		t.Errorf("a gap: %v", err)
	}
}
