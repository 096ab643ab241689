package continuous

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sort"

	"kontor/store/clock"
	"kontor/store/sqlite"
)

// Line is what a target holds of one incarnation of a database, or one chain of an earlier version.
type Line struct {
	ID  string // the incarnation, or the name of the chain
	Old bool   // a chain of an earlier version, which says neither its database nor its commits
	// Ours says that the line opens with the key of the survey. The following facts are known only then.
	Ours      bool
	Database  string
	Ancestors []sqlite.Ancestor

	status *lineStatus // nil if it is missing, or does not open
	parts  []part      // by their numbers
}

// State is a state of a database.
type State struct {
	Number  int64 // of its part
	Commits int64
	At      clock.Time
}

// Gap is a range of parts that are missing.
type Gap struct{ From, To int64 }

// String describes the gap.
func (g Gap) String() string {
	if g.From == g.To {
		return fmt.Sprintf("part %d is missing", g.From)
	}
	return fmt.Sprintf("parts %d to %d are missing", g.From, g.To)
}

func stateOf(p part) State { return State{Number: p.number, Commits: p.commits, At: p.at} }

// From returns the first state.
func (l *Line) From() State { return stateOf(l.parts[0]) }

// Top returns the newest state: the one with most commits.
func (l *Line) Top() State { return stateOf(slices.MaxFunc(l.parts, byCommits)) }

// Parts returns the number of parts.
func (l *Line) Parts() int { return len(l.parts) }

// Bytes returns the size of all parts.
func (l *Line) Bytes() (bytes int64) {
	for _, p := range l.parts {
		bytes += p.size
	}
	return bytes
}

// reached returns the newest commit that is known of the line, also when its part is missing.
func (l *Line) reached() (commits int64) {
	if l.status != nil {
		commits = l.status.Commits
	}
	if len(l.parts) > 0 {
		commits = max(commits, l.Top().Commits)
	}
	return commits
}

// newestNumber returns the number of the newest part that is known, or -1.
func (l *Line) newestNumber() int64 {
	number := int64(-1)
	if l.status != nil {
		number = l.status.Number
	}
	for _, p := range l.parts {
		number = max(number, p.number)
	}
	return number
}

// byCommits compares states by their commits. States of one commit are the same; the later part counts.
func byCommits(a, b part) int {
	return cmp.Or(cmp.Compare(a.commits, b.commits), cmp.Compare(a.number, b.number), cmp.Compare(a.at, b.at))
}

// Gaps returns the parts that are missing. Those before the first one were deleted when they were old enough.
func (l *Line) Gaps() (gaps []Gap) {
	next := l.newestNumber() + 1
	if len(l.parts) > 0 {
		next = l.parts[0].number
		if l.Old {
			next = 0
		}
	}
	for _, p := range l.parts {
		if p.number > next {
			gaps = append(gaps, Gap{next, p.number - 1})
		}
		next = max(next, p.number+1)
	}
	if last := l.newestNumber(); next <= last {
		gaps = append(gaps, Gap{next, last})
	}
	return gaps
}

// chain is the parts of one chain, by their numbers.
type chain []part

func (c chain) name() string { return c[0].chain }
func (c chain) first() part  { return c[0] }
func (c chain) last() part   { return c[len(c)-1] }

// chains returns the chains of the line in the order of their first parts.
func (l *Line) chains() (all []chain) {
	found := map[string]int{}
	for _, p := range l.parts {
		i, ok := found[p.chain]
		if !ok {
			i = len(all)
			found[p.chain] = i
			all = append(all, nil)
		}
		all[i] = append(all[i], p)
	}
	return all
}

// Headless returns the chains without their first, whole part. Nothing of them can be restored.
func (l *Line) Headless() (names []string) {
	for _, c := range l.chains() {
		if !c.first().whole {
			names = append(names, c.name())
		}
	}
	return names
}

// Forks returns pairs of chains that two servers have written at the same time.
func (l *Line) Forks() (pairs [][2]string) {
	all := l.chains()
	for i, a := range all {
		for _, b := range all[i+1:] {
			if overlap(a, b) {
				pairs = append(pairs, [2]string{a.name(), b.name()})
			}
		}
	}
	return pairs
}

func overlap(a, b chain) bool {
	return a.first().number <= b.last().number && b.first().number <= a.last().number
}

// Survey is what a target holds.
type Survey struct {
	target Target
	Lines  []*Line // by their first states
}

// Look returns what a target holds. With a key it recognises the lines of the database.
func Look(ctx context.Context, t Target, key Key) (*Survey, error) {
	objects, err := t.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", t, err)
	}
	s := &Survey{target: t}
	lines := map[string]*Line{}
	lineOf := func(id string, old bool) *Line {
		if lines[id] == nil {
			lines[id] = &Line{ID: id, Old: old}
			s.Lines = append(s.Lines, lines[id])
		}
		return lines[id]
	}
	for _, o := range objects {
		if p, ok := parsePart(o); ok && p.isOld() {
			l := lineOf(p.chain, true)
			l.parts = append(l.parts, p)
		} else if ok {
			l := lineOf(p.line, false)
			l.parts = append(l.parts, p)
		} else if incarnation, ok := parseLine(o); ok {
			lineOf(incarnation, false)
		}
	}
	for _, l := range s.Lines {
		l.parts = inOrder(l.parts)
		if key != "" {
			if err := l.identify(ctx, t, key); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(s.Lines, func(a, b *Line) int {
		if len(a.parts) == 0 || len(b.parts) == 0 {
			return cmp.Compare(len(b.parts), len(a.parts))
		}
		return cmp.Or(cmp.Compare(a.From().At, b.From().At), cmp.Compare(a.ID, b.ID))
	})
	return s, nil
}

// line returns the line of an incarnation, or nil.
func (s *Survey) line(id string) *Line {
	for _, l := range s.Lines {
		if l.ID == id {
			return l
		}
	}
	return nil
}

// inOrder returns the parts of a line by their numbers. Of two with one number in one chain, the earlier one was stored although
// the target reported a failure: the later one, which was stored instead, holds its pages, too.
func inOrder(parts []part) []part {
	sort.Slice(parts, func(i, j int) bool {
		a, b := parts[i], parts[j]
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.chain, b.chain), cmp.Compare(b.commits, a.commits), cmp.Compare(b.at, a.at)) < 0
	})
	return slices.CompactFunc(parts, func(a, b part) bool { return a.number == b.number && a.chain == b.chain })
}

// Print prints the lines of a target, with their gaps and forks. Without a key it does not say whose lines they are.
func (s *Survey) Print(out io.Writer, withKey bool) error {
	var text bytes.Buffer
	for _, l := range s.Lines {
		s.printLine(&text, l, withKey)
	}
	_, err := text.WriteTo(out)
	return err
}

func (s *Survey) printLine(text *bytes.Buffer, l *Line, withKey bool) {
	printf := func(format string, args ...any) { fmt.Fprintf(text, format+"\n", args...) }
	kind := "line"
	if l.Old {
		kind = "old chain"
	}
	owner := ""
	if withKey && !l.Ours {
		owner = " (foreign: of another bank, or of another master key)"
	} else if withKey {
		owner = s.fork(l)
	}
	if len(l.parts) == 0 {
		printf("%s %s: no parts%s", kind, l.ID, owner)
	} else if from, to := l.From(), l.Top(); l.Old {
		printf("%s %s: %s to %s, %d parts, %.1f MB%s", kind, l.ID, from.At, to.At, l.Parts(), megabytes(l), owner)
	} else {
		printf("%s %s: commits %d to %d, %s to %s, %d parts in %d chains, %.1f MB%s", kind, l.ID, from.Commits, to.Commits, from.At, to.At,
			l.Parts(), len(l.chains()), megabytes(l), owner)
	}
	for _, problem := range l.problems() {
		printf("  %s", problem)
	}
	if l.status != nil && l.status.ContinuedBy != "" {
		printf("  %s continues the line, as backup.line says", l.status.ContinuedBy)
	}
	if l.status != nil && l.status.Displaced {
		printf("  fork: the line began because another server wrote to the line before")
	}
}

func megabytes(l *Line) float64 { return float64(l.Bytes()) / 1e6 }
