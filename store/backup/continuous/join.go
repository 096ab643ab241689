package continuous

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kontor/store/backup"
	"kontor/store/sqlite"
)

const (
	// beatEvery is how often a server without changes shows that it writes a line, and looks whether another one does.
	beatEvery = 10 * time.Second
	// aliveFor is how long a server may seem to be alive after its last status.
	aliveFor = 3 * beatEvery
)

// ErrUnconfirmed says that a database was restored, copied or rolled back, and that the target has the line of the one that it comes
// from. The other one may still be served, so that only the operator can say which of them the backup continues.
var ErrUnconfirmed = errors.New("the continuous backup ships nothing before backup.line confirms it")

var (
	// errWaiting says that the server before may still write to the line.
	errWaiting = errors.New("another server may still write to the line of the continuous backup")
	errForked  = errors.New("the database is a new incarnation")
)

// ownLine is the line that a Shipper writes.
type ownLine struct {
	lineStatus
	id      string
	next    int64 // number of the next part
	elapsed func() time.Duration

	stored  []byte // the status, as it was stored last
	written time.Duration
	unsure  [][]byte // statuses since then whose storing failed; they may be stored all the same

	hasTakenOver bool // the lines that this one supersedes say so
}

// joining is the observation of a line that another server may write.
type joining struct {
	line    *Line
	stored  []byte // the status
	since   time.Duration
	related map[string]int64
}

// join finds the line of the database in the target, and whether this server may write it. It returns the recording to ship, which
// is another one if the database has become a new incarnation.
func (s *Shipper) join(ctx context.Context, taken *sqlite.Recording, key Key) (*sqlite.Recording, error) {
	for {
		err := s.tryJoin(ctx, taken, key)
		if err == nil {
			return taken, nil
		}
		if closed := taken.Close(); !errors.Is(err, errForked) || closed != nil {
			return nil, errors.Join(err, closed)
		}
		s.wait = nil
		if err := s.recorder.Fork(ctx); err != nil {
			return nil, err
		}
		if taken, err = s.recorder.Take(ctx); err != nil {
			return nil, err
		}
	}
}

func (s *Shipper) tryJoin(ctx context.Context, taken *sqlite.Recording, key Key) error {
	if s.wait == nil {
		if err := s.look(ctx, taken, key); err != nil || s.line != nil {
			return err
		}
	}
	w := s.wait
	if w.line.status == nil || !w.line.status.Ended && (s.Holder == "" || w.line.status.Holder != s.Holder) {
		now, err := readStatus(ctx, s.Target, w.line.ID)
		if err != nil {
			return err
		}
		if !bytes.Equal(now, w.stored) {
			s.displaced(w.line.ID)
			return errForked
		}
		if w.stored != nil && !s.stopping && s.Elapsed()-w.since < aliveFor {
			return errWaiting
		}
	}
	s.begin(w.line, w.stored, w.related)
	s.wait = nil
	return nil
}

// look compares the database with what the target holds. It begins a line for a new incarnation, and else sets s.wait.
func (s *Shipper) look(ctx context.Context, taken *sqlite.Recording, key Key) error {
	survey, err := Look(ctx, s.Target, key)
	if err != nil {
		return err
	}
	origin, err := backup.OriginOf(ctx, taken)
	if err != nil {
		return err
	}
	own := survey.line(taken.Incarnation)
	related := s.related(survey, origin)
	if own == nil {
		if err := s.mayBegin(taken, related); err != nil {
			s.stray = err
			return err
		}
		s.begin(&Line{ID: taken.Incarnation}, nil, related)
		return nil
	}
	if own.status != nil && own.status.ContinuedBy != "" && s.Line != own.ID {
		s.stray = fmt.Errorf("%w: the server of the incarnation %s continues the line %s of %s. If this server is the right one, stop that one, set backup.line=%s and start this one again",
			ErrUnconfirmed, own.status.ContinuedBy, own.ID, s.Target, own.ID)
		return s.stray
	}
	ahead, err := own.isAhead(ctx, taken)
	if err != nil {
		return err
	}
	if ahead {
		s.Log.Warn("the database lacks commits that were shipped: it was rolled back, and is a new incarnation", "target", s.Target.String(), "line", own.ID,
			"commits", taken.Commits, "shipped", own.reached())
		return errForked
	}
	s.wait = &joining{line: own, since: s.Elapsed(), related: related}
	s.wait.stored, err = readStatus(ctx, s.Target, own.ID)
	return err
}

// related returns the other lines of the database, and the newest commit of each.
func (s *Shipper) related(survey *Survey, origin backup.Origin) map[string]int64 {
	related := map[string]int64{}
	for _, l := range survey.Lines {
		isAncestor := slices.ContainsFunc(origin.Ancestors, func(a sqlite.Ancestor) bool { return a.Incarnation == l.ID })
		isSame := l.Ours && l.Database != "" && l.Database == origin.Database
		if !l.Old && l.ID != origin.Incarnation && (isAncestor || isSame) {
			related[l.ID] = l.reached()
		} else if !l.Ours && !l.Old && l.ID != origin.Incarnation {
			s.Log.Warn("the target of the continuous backup has a line of another bank, or of another master key", "target", s.Target.String(), "line", l.ID)
		}
	}
	return related
}

// mayBegin returns ErrUnconfirmed unless the operator, or another server in the line before, has made this incarnation necessary.
func (s *Shipper) mayBegin(taken *sqlite.Recording, related map[string]int64) error {
	if len(related) == 0 || s.Line == taken.Incarnation || s.Status().isDisplaced() {
		return nil
	}
	var names []string
	for name := range related {
		names = append(names, name)
	}
	slices.Sort(names)
	return fmt.Errorf("%w: this data directory was restored, copied, moved from another disk, or rolled back. It is the incarnation %s, and %s has the line of %s. Set backup.url to another place, "+
		"or, if this server continues that line and no other one does, set backup.line=%[2]s and start it again", ErrUnconfirmed, taken.Incarnation, s.Target, strings.Join(names, ", "))
}

// isAhead reports whether a line has states that a database lacks.
func (l *Line) isAhead(ctx context.Context, taken *sqlite.Recording) (bool, error) {
	if l.reached() > taken.Commits {
		return true, nil
	}
	if l.status == nil {
		return false, nil
	}
	same, err := backup.Continues(ctx, taken, l.status.Seq, l.status.Hash)
	return !same, err
}

// begin makes a line the one that the Shipper writes. stored is its present status.
func (s *Shipper) begin(l *Line, stored []byte, related map[string]int64) {
	own := &ownLine{id: l.ID, next: l.newestNumber() + 1, stored: stored}
	var before time.Duration
	for _, p := range l.parts {
		before = max(before, p.elapsed)
	}
	if l.status != nil {
		before = max(before, l.status.Elapsed)
		own.Supersedes, own.SupersedesSince, own.Displaced = l.status.Supersedes, l.status.SupersedesSince, l.status.Displaced
	}
	joined := s.Elapsed()
	own.elapsed = func() time.Duration { return (before + s.Elapsed() - joined).Truncate(time.Millisecond) }
	status := s.Status()
	confirmed := s.Line == l.ID
	switch {
	case status.Displaced != nil:
		own.Displaced = true
	case confirmed && (l.status == nil || own.Displaced || l.status.ContinuedBy != ""):
		own.Supersedes, own.SupersedesSince, own.Displaced = related, own.elapsed(), false
	case own.Displaced:
		status.Displaced = displacedError(l.ID)
		s.status.Store(&status)
		s.Log.Error("the continuous backup ships to a line that began because another server wrote to the line before", "target", s.Target.String(), "line", l.ID)
	}
	own.Writer, own.Holder = rand.Text(), s.Holder
	s.line, s.chain, s.newChain = own, "", ""
}

func displacedError(line string) error {
	return fmt.Errorf("another server of a copy of this database writes, or wrote, to the line before %s; stop the wrong one, and set backup.line=%[1]s for the right one", line)
}

// isDue reports whether the server must show that it writes the line.
func (o *ownLine) isDue(now time.Duration) bool { return now-o.written >= beatEvery }

// checkOwner finds out whether another server writes the line. If so, this one leaves it, and becomes a new incarnation.
func (s *Shipper) checkOwner(ctx context.Context, key Key) error {
	found, err := readStatus(ctx, s.Target, s.line.id)
	if err != nil || found == nil || s.line.isOwn(key, found) {
		return err
	}
	s.displaced(s.line.id)
	s.line, s.chain, s.newChain = nil, "", ""
	return s.recorder.Fork(ctx)
}

// isOwn reports whether a stored status is of this server.
func (o *ownLine) isOwn(key Key, stored []byte) bool {
	isStored := func(one []byte) bool { return bytes.Equal(one, stored) }
	if isStored(o.stored) || slices.ContainsFunc(o.unsure, isStored) {
		return true
	}
	found := key.openStatus(o.id, stored)
	return found != nil && found.Writer == o.Writer && found.Beat < o.Beat // the target may answer late
}

// displaced records that another server writes to a line.
func (s *Shipper) displaced(line string) {
	status := s.Status()
	status.Displaced = fmt.Errorf("another server writes to the line %s of the continuous backup", line)
	s.status.Store(&status)
	s.Log.Error("another server writes to the line of the continuous backup, with a copy of this database; this server ends its shipping there and begins a line of its own",
		"target", s.Target.String(), "line", line)
}

// takeOver records in the lines that this one supersedes that it continues them. A server that still writes one of them notices that
// and leaves it; one that starts later does not begin.
func (s *Shipper) takeOver(ctx context.Context, key Key) error {
	for id := range s.line.Supersedes {
		stored, err := readStatus(ctx, s.Target, id)
		if err != nil {
			return err
		}
		status := key.openStatus(id, stored)
		if status == nil || status.ContinuedBy == s.line.id {
			continue
		}
		status.ContinuedBy = s.line.id
		if _, err := storeStatus(ctx, s.Target, key, *status); err != nil {
			return err
		}
	}
	return nil
}

// putStatus stores the status of the line.
func (s *Shipper) putStatus(ctx context.Context, key Key) error {
	s.line.Beat++
	sealed, err := storeStatus(ctx, s.Target, key, s.line.lineStatus)
	if err != nil {
		s.line.unsure = append(s.line.unsure, sealed)
		return err
	}
	s.line.stored, s.line.unsure, s.line.written = sealed, nil, s.Elapsed()
	if s.line.hasTakenOver {
		return nil
	}
	err = s.takeOver(ctx, key)
	s.line.hasTakenOver = err == nil
	return err
}
