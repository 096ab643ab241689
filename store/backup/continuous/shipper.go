package continuous

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"kontor/store/backup"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/sqlite"
)

// Options configure a Shipper.
type Options struct {
	Target Target
	// Key returns the key of the objects. When it changes, a new chain begins.
	Key func() Key
	// Line is the incarnation that may begin a line although the target has lines of its ancestors; see [ErrUnconfirmed].
	Line string
	// WholeEvery is the time after which a new chain begins. Chains that ended longer ago than Retain are deleted; 0 keeps
	// all.
	WholeEvery, Retain time.Duration
	// Spool is the directory for the object that is being written, which is encrypted.
	Spool string
	// Holder names the directory of the database while the machine runs, see datadir.Mounted. Its former server has ended.
	Holder string
	// Elapsed returns a time that never jumps; nil is the time since New.
	Elapsed func() time.Duration
	Log     *slog.Logger
}

// Interval is the time between two looks for changes.
const Interval = time.Second

// Status says how far a Shipper has come.
type Status struct {
	Line      string     // the incarnation; empty before the first part
	At        clock.Time // the latest state in the target; 0 before the first
	Commits   int64      // of that state
	Shipped   uint64     // objects
	Bytes     int64      // of these
	Failing   error      // of the latest attempt; nil after one that succeeded
	Displaced error      // another server has written to the line; this one ships to a line of its own since
}

func (s Status) isDisplaced() bool { return s.Displaced != nil }

// A Shipper ships the changes of a database.
type Shipper struct {
	Options
	recorder *sqlite.Recorder
	stopping bool

	line  *ownLine // nil before the Shipper has joined its line
	wait  *joining // while it finds out whether it may
	stray error    // why it may not ship to the target at all

	chain    string // of the next part; empty: begin a new one
	newChain string // that an attempt has begun, which may be stored although it failed
	key      Key    // of the chain
	began    time.Duration
	previous string // id of the part before

	status atomic.Pointer[Status]
	cancel context.CancelFunc
	ended  chan struct{}
}

// New returns a Shipper, which owns the recorder. Nothing is shipped before Start.
func New(recorder *sqlite.Recorder, o Options) *Shipper {
	s := &Shipper{Options: o, recorder: recorder, ended: make(chan struct{})}
	if begun := time.Now(); s.Elapsed == nil {
		s.Elapsed = func() time.Duration { return time.Since(begun) } // monotonic
	}
	s.status.Store(&Status{})
	return s
}

// Status returns how far the Shipper has come.
func (s *Shipper) Status() Status { return *s.status.Load() }

// Start begins to ship in the background.
func (s *Shipper) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.loop(ctx)
}

func (s *Shipper) loop(ctx context.Context) {
	defer close(s.ended)
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	var pause time.Duration // after a failure
	for {
		if err := s.Ship(ctx); errors.Is(err, errWaiting) {
			pause = 0
		} else if err != nil {
			pause = min(max(2*pause, firstPause), longestPause)
			wait(ctx, pause)
		} else {
			pause = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// The pauses after the first failure in a row and after many. An attempt may have to read the whole database.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

func wait(ctx context.Context, pause time.Duration) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Stop ships what has changed until the context ends, and closes the recorder. Call it after the last write and before the
// database is closed.
func (s *Shipper) Stop(ctx context.Context) error {
	if s.cancel != nil {
		s.cancel()
		<-s.ended
	}
	s.stopping = true
	if s.stray != nil {
		return s.recorder.Close()
	}
	err := s.Ship(ctx)
	if err == nil && s.line != nil {
		s.line.Ended = true
		err = s.putStatus(ctx, s.Key())
	}
	return errors.Join(err, s.recorder.Close())
}

// Check returns why changes are not shipped as the settings say, or nil.
func (s *Shipper) Check(context.Context) error {
	status := s.Status()
	return errors.Join(status.Failing, status.Displaced)
}

// Ship ships what has changed, or all of the database in a new chain. It logs when the target begins to fail and when it
// works again.
func (s *Shipper) Ship(ctx context.Context) error {
	err := s.ship(ctx)
	status := s.Status()
	was := status.Failing
	if status.Failing = err; ctx.Err() != nil {
		return err
	}
	s.status.Store(&status)
	switch {
	case errors.Is(err, errWaiting) && was == nil:
		s.Log.Info("the continuous backup begins when it is clear that no other server writes to its line", "target", s.Target.String(), "seconds", aliveFor.Seconds())
	case errors.Is(err, errWaiting):
	case errors.Is(err, ErrUnconfirmed):
		if !errors.Is(was, ErrUnconfirmed) {
			s.Log.Error("the continuous backup ships nothing", "target", s.Target.String(), "cause", err)
		}
	case err != nil && (was == nil || errors.Is(was, errWaiting)):
		s.Log.Error("the continuous backup fails; it is tried again and again", "target", s.Target.String(), "cause", err)
	case err == nil && was != nil:
		s.Log.Info("the continuous backup works again", "target", s.Target.String())
	}
	return err
}

func (s *Shipper) ship(ctx context.Context) error {
	if s.stray != nil {
		return s.stray
	}
	key := s.Key()
	if s.line != nil && (s.recorder.Changed() || s.line.isDue(s.Elapsed())) {
		if err := s.checkOwner(ctx, key); err != nil {
			return err
		}
	}
	if s.line != nil && (key != s.key || s.WholeEvery > 0 && s.line.elapsed()-s.began >= s.WholeEvery) {
		s.chain = ""
	}
	fresh := s.chain == ""
	if !fresh && !s.recorder.Changed() {
		if s.line.isDue(s.Elapsed()) {
			return s.putStatus(ctx, key)
		}
		return nil
	}
	taken, err := s.recorder.Take(ctx)
	if err == nil && s.line == nil {
		taken, err = s.join(ctx, taken, key)
	}
	if err != nil {
		return err
	}
	err = s.put(ctx, taken, key)
	if err = errors.Join(err, taken.Close()); err != nil || !fresh {
		return err
	}
	return s.deleteOld(ctx)
}

// spoolName is the name of the object that is being written. A killed process may leave it; the next object overwrites it.
const spoolName = "kontor.shipping"

// put stores a recording as the next part of the chain, or as the first one of a new chain.
func (s *Shipper) put(ctx context.Context, taken *sqlite.Recording, key Key) (err error) {
	origin, err := backup.OriginOf(ctx, taken)
	if err != nil {
		return err
	}
	chain, previous := s.chain, s.previous
	if chain == "" {
		if s.newChain == "" {
			s.newChain = taken.At.Std().UTC().Format(chainTime) + "-" + strings.ToLower(rand.Text()[:chainID])
		}
		chain, previous = s.newChain, ""
	}
	origin.Chain, origin.Number, origin.Elapsed = chain, s.line.next, s.line.elapsed()
	spool, err := os.OpenFile(filepath.Join(s.Spool, spoolName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, datadir.FileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spool.Close(), os.Remove(spool.Name())) }()
	id, err := s.write(ctx, spool, taken, previous, origin, key)
	if err != nil {
		return err
	}
	size, err := spool.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	if _, err := spool.Seek(0, io.SeekStart); err != nil {
		return err
	}
	// The state is in the file: the log of the database need not wait for the target.
	if err := taken.Close(); err != nil {
		return err
	}
	p := part{
		line: origin.Incarnation, chain: chain, number: origin.Number, at: taken.At, commits: origin.Commits,
		elapsed: origin.Elapsed, whole: previous == "",
	}
	if err := s.Target.Put(ctx, p.name(), size, spool); err != nil {
		return fmt.Errorf("write to %s: %w", s.Target, err)
	}
	taken.Keep()
	if p.whole {
		s.chain, s.newChain, s.key, s.began = chain, "", key, origin.Elapsed
	}
	s.previous = id
	s.line.next++
	s.line.Origin, s.line.At = origin, taken.At
	status := s.Status()
	status.Line, status.At, status.Commits = origin.Incarnation, taken.At, origin.Commits
	status.Shipped++
	status.Bytes += size
	s.status.Store(&status)
	return s.putStatus(ctx, key)
}

func (s *Shipper) write(ctx context.Context, out io.Writer, taken *sqlite.Recording, previous string, origin backup.Origin, key Key) (id string, err error) {
	sealed, err := key.seal(out)
	if err != nil {
		return "", err
	}
	if id, _, err = backup.WriteRecording(ctx, taken, previous, origin, sealed); err != nil {
		return "", err
	}
	return id, sealed.Close()
}
