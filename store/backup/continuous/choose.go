package continuous

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"kontor/store/clock"
	"kontor/store/sealing"
)

var (
	// ErrNoState says that a target holds no state of the wanted time.
	ErrNoState = errors.New("there is no backup of that time")
	// ErrAmbiguous says that a target holds several histories, and none of them continues all others.
	ErrAmbiguous = errors.New("the backup is ambiguous")
	// ErrGap says that parts are missing which a restore needs, or after which states may be missing.
	ErrGap = errors.New("the backup has a gap")
)

// Wanted says which state to restore.
type Wanted struct {
	At       clock.Time // the latest state that is not later; 0: the newest of all
	Line     string     // an incarnation or a chain; empty: the one that continues all others
	AllowGap bool       // restore the newest state that can be restored, although parts are missing or damaged
	// Now is the present time; chains of earlier versions that claim to be later are not trusted.
	Now clock.Time
}

func (w Wanted) includes(p part) bool { return w.At == 0 || p.at <= w.At }

// Choice is the state that a restore takes.
type Choice struct {
	Line *Line
	State
	parts []part
}

// choose returns the parts of the wanted state. Parts in damaged count as missing.
func (s *Survey) choose(w Wanted, damaged map[string]bool) (Choice, error) {
	if len(s.Lines) == 0 {
		return Choice{}, fmt.Errorf("%s holds no backup: %w", s.target, ErrNoState)
	}
	if w.Line != "" {
		return s.chooseNamed(w, damaged)
	}
	var lines, old []*Line
	for _, l := range s.Lines {
		switch {
		case !l.Ours:
		case l.Old:
			old = append(old, l)
		default:
			lines = append(lines, l)
		}
	}
	switch {
	case len(lines) > 0:
		return s.chooseAmong(lines, old, w, damaged)
	case len(old) > 0:
		return s.chooseOld(old, w, damaged)
	}
	return Choice{}, fmt.Errorf("%w: nothing in %s opens with it; it was encrypted with another key, or is of another bank", sealing.ErrWrongKey, s.target)
}

// chooseNamed chooses in one line, or in one chain of a line.
func (s *Survey) chooseNamed(w Wanted, damaged map[string]bool) (Choice, error) {
	for _, l := range s.Lines {
		isChain := !l.Old && slices.ContainsFunc(l.parts, func(p part) bool { return p.chain == w.Line })
		if l.ID != w.Line && !isChain {
			continue
		}
		if !l.Ours {
			return Choice{}, fmt.Errorf("%w: %s does not open with it", sealing.ErrWrongKey, w.Line)
		}
		chainName := ""
		if isChain {
			chainName = w.Line
		}
		c, err := l.choose(w, pick{chain: chainName, damaged: damaged})
		if errors.Is(err, ErrNoState) {
			err = s.nothingThen(w, []*Line{l})
		}
		return c, err
	}
	return Choice{}, fmt.Errorf("%s holds no incarnation %q; kontor restore --list shows them: %w", s.target, w.Line, ErrNoState)
}

// chooseAmong chooses among the lines of incarnations: in the one that continues all others.
func (s *Survey) chooseAmong(lines, old []*Line, w Wanted, damaged map[string]bool) (Choice, error) {
	ends := leaves(lines)
	var found []Choice
	for _, end := range ends {
		c, err := s.chooseOnPath(end, w, damaged)
		if errors.Is(err, ErrNoState) {
			continue
		}
		if err != nil {
			return c, err
		}
		if !slices.ContainsFunc(found, func(f Choice) bool { return f.Line == c.Line && f.Number == c.Number }) {
			found = append(found, c)
		}
	}
	begin := begins(lines)
	switch {
	case len(ends) == 0:
		return Choice{}, s.ambiguous(lines)
	case len(found) > 1:
		return Choice{}, s.ambiguous(ends)
	case len(found) == 0 && len(old) > 0:
		return s.chooseOld(old, w, damaged)
	case len(found) == 0:
		return Choice{}, s.nothingThen(w, lines)
	}
	for _, l := range old {
		if p := l.parts[len(l.parts)-1]; p.at > begin && w.includes(p) {
			return Choice{}, s.ambiguous(append(ends, l))
		}
	}
	return found[0], nil
}

// chooseOnPath chooses in a line or, before it began, in those of its ancestors.
func (s *Survey) chooseOnPath(l *Line, w Wanted, damaged map[string]bool) (Choice, error) {
	limit, ancestors := int64(0), l.Ancestors
	for {
		c, err := l.choose(w, pick{limit: limit, damaged: damaged})
		if !errors.Is(err, ErrNoState) {
			return c, err
		}
		for l = nil; l == nil; {
			if len(ancestors) == 0 {
				return c, err
			}
			last := ancestors[len(ancestors)-1]
			ancestors = ancestors[:len(ancestors)-1]
			if l, limit = s.line(last.Incarnation), last.Commits; l != nil && !l.Ours {
				l = nil
			}
		}
	}
}

// leaves returns the lines that no other one continues.
func leaves(lines []*Line) (ends []*Line) {
	for _, l := range lines {
		if !slices.ContainsFunc(lines, func(other *Line) bool { return other != l && other.continues(l) }) {
			ends = append(ends, l)
		}
	}
	return ends
}

// continues reports whether the line has all states of another one, or continues it as backup.line says.
func (l *Line) continues(other *Line) bool {
	reached := other.reached()
	if l.status != nil {
		if l.status.ContinuedBy == other.ID {
			return false // the operator has decided again since
		}
		if upTo, ok := l.status.Supersedes[other.ID]; ok && upTo >= reached {
			return true
		}
	}
	for _, a := range l.Ancestors {
		if a.Incarnation == other.ID && a.Commits >= reached {
			return true
		}
	}
	return false
}

// chooseOld chooses among chains of an earlier version. They are ordered by their times, which must leave no doubt.
func (s *Survey) chooseOld(old []*Line, w Wanted, damaged map[string]bool) (Choice, error) {
	var wanted *Line
	for _, l := range old {
		if w.includes(l.parts[0]) {
			wanted = l
		}
	}
	if wanted == nil {
		return Choice{}, s.nothingThen(w, old)
	}
	for _, l := range old {
		last := l.parts[len(l.parts)-1]
		if l != wanted && l.From().At <= wanted.From().At && last.at > wanted.From().At || w.Now != 0 && last.at > w.Now {
			return Choice{}, s.ambiguous(old)
		}
	}
	return wanted.choose(w, pick{damaged: damaged})
}

// pick restricts a choice in a line.
type pick struct {
	chain   string // empty: any
	limit   int64  // commits; 0: any
	damaged map[string]bool
}

// choose chooses the wanted state of a line.
func (l *Line) choose(w Wanted, only pick) (Choice, error) {
	var candidates []part
	for _, p := range l.parts {
		if w.includes(p) && (only.limit == 0 || p.commits <= only.limit) && (only.chain == "" || p.chain == only.chain) {
			candidates = append(candidates, p)
		}
	}
	if len(candidates) == 0 {
		if len(l.parts) == 0 && !w.AllowGap && l.status != nil {
			return Choice{}, fmt.Errorf("%w: all parts of %s are missing, up to commit %d; --allow-gap restores the line before it, if there is one", ErrGap, l.ID, l.reached())
		}
		return Choice{}, ErrNoState
	}
	if !l.Old {
		slices.SortStableFunc(candidates, byCommits)
	}
	var usable []part
	at := len(candidates) - 1
	for ; at >= 0 && usable == nil; at-- {
		usable = l.run(candidates[at], only.damaged)
	}
	if w.AllowGap {
		if usable == nil {
			return Choice{}, fmt.Errorf("%w: no state of %s is complete", ErrGap, l.ID)
		}
		return Choice{l, stateOf(usable[len(usable)-1]), usable}, nil
	}
	best := candidates[len(candidates)-1]
	if usable == nil || usable[len(usable)-1] != best {
		return Choice{}, l.gap(l.before(best), &best, usable)
	}
	if missing, ok := l.after(best, only.chain); ok && only.limit == 0 {
		return Choice{}, l.gap(missing, nil, usable)
	}
	if only.chain == "" && !l.Old {
		if err := l.rejectFork(w, best); err != nil {
			return Choice{}, err
		}
	}
	return Choice{l, stateOf(best), usable}, nil
}

// run returns the parts from the whole one of a chain to a part, or nil when one of them is missing.
func (l *Line) run(end part, damaged map[string]bool) []part {
	byNumber := map[int64]part{}
	for _, p := range l.parts {
		if p.chain == end.chain && !damaged[p.name()] {
			byNumber[p.number] = p
		}
	}
	var parts []part
	for n := end.number; ; n-- {
		p, ok := byNumber[n]
		if !ok {
			return nil
		}
		if parts = append(parts, p); p.whole {
			slices.Reverse(parts)
			return parts
		}
	}
}

// before returns the newest gap before a part in its chain.
func (l *Line) before(end part) Gap {
	next := end.number
	for i := len(l.parts) - 1; i >= 0; i-- {
		p := l.parts[i]
		if p.chain != end.chain || p.number > end.number {
			continue
		}
		if p.number < next-1 {
			return Gap{p.number + 1, next - 1}
		}
		next = p.number
	}
	return Gap{max(next-1, 0), max(next-1, 0)} // the whole part, with which the chain began
}

// after returns the gap that follows a part at once. A state in the gap may be the wanted one.
func (l *Line) after(p part, chain string) (missing Gap, found bool) {
	next := p.number + 1
	if l.status != nil && (chain == "" || l.status.Chain == chain) {
		next = max(next, l.status.Number+1)
	}
	for _, other := range l.parts {
		if other.number > p.number && (chain == "" || other.chain == chain) {
			next = other.number
			break
		}
	}
	return Gap{p.number + 1, next - 1}, next > p.number+1
}

// gap returns the error for missing parts. behind is the wanted state, if it is behind the gap. usable is the newest state that can
// be restored all the same.
func (l *Line) gap(missing Gap, behind *part, usable []part) error {
	text := ""
	if behind != nil {
		text = " before " + l.describe(stateOf(*behind)) + ", which cannot be restored"
	}
	if len(usable) == 0 {
		return fmt.Errorf("%w: in %s, %s%s; no state before can be restored", ErrGap, l.ID, missing, text)
	}
	return fmt.Errorf("%w: in %s, %s%s; --allow-gap restores the newest complete state before: %s", ErrGap, l.ID, missing, text, l.describe(stateOf(usable[len(usable)-1])))
}

// describe describes a state for messages.
func (l *Line) describe(s State) string {
	if l.Old {
		return s.At.String()
	}
	return fmt.Sprintf("commit %d of %s", s.Commits, s.At)
}

// rejectFork returns an error if another server has written states of the same incarnation beside the chain of the wanted one.
func (l *Line) rejectFork(w Wanted, best part) error {
	all := l.chains()
	i := slices.IndexFunc(all, func(c chain) bool { return c.name() == best.chain })
	for _, c := range all {
		if c.name() != best.chain && overlap(c, all[i]) && w.includes(c.last()) {
			return fmt.Errorf("%w: two servers have written the line of %s: the chain %s up to %s, and the chain %s up to %s; choose one with --incarnation=CHAIN",
				ErrAmbiguous, l.ID, best.chain, l.describe(stateOf(best)), c.name(), l.describe(stateOf(c.last())))
		}
	}
	return nil
}

func (s *Survey) ambiguous(lines []*Line) error {
	var texts []string
	for _, l := range lines {
		if len(l.parts) == 0 {
			continue
		}
		text := fmt.Sprintf("%s reaches %s", l.ID, l.describe(l.Top()))
		if l.Database != lines[0].Database {
			text += ", of another bank with the same master key"
		}
		texts = append(texts, text)
	}
	return fmt.Errorf("%w: %s holds several histories, and none continues all others: %s; choose one with --incarnation", ErrAmbiguous, s.target, strings.Join(texts, ", "))
}

// begins returns the time of the first state of some lines.
func begins(lines []*Line) (first clock.Time) {
	for _, l := range lines {
		if len(l.parts) > 0 && (first == 0 || l.From().At < first) {
			first = l.From().At
		}
	}
	return first
}

func (s *Survey) nothingThen(w Wanted, lines []*Line) error {
	first := begins(lines)
	if first == 0 {
		return fmt.Errorf("%s holds no part of the database: %w", s.target, ErrNoState)
	}
	return fmt.Errorf("%s begins at %s, after %s: %w", s.target, first, w.At, ErrNoState)
}
