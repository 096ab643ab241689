package continuous

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	// WholeEvery is the time after which a new chain begins. Chains that ended longer ago than Retain are deleted; 0 keeps
	// all.
	WholeEvery, Retain time.Duration
	// Spool is the directory for the object that is being written, which is encrypted.
	Spool string
	Clock clock.Clock
	Log   *slog.Logger
}

// Interval is the time between two looks for changes.
const Interval = time.Second

// Status says how far a Shipper has come.
type Status struct {
	At      clock.Time // the latest state in the target; 0 before the first
	Shipped uint64     // objects
	Bytes   int64      // of these
	Failing error      // of the latest attempt; nil after one that succeeded
}

// A Shipper ships the changes of a database.
type Shipper struct {
	Options
	recorder *sqlite.Recorder

	chain    string // of the next part; empty: begin a new one
	key      Key    // of the chain
	began    clock.Time
	number   int64  // of the next part
	previous string // id of the part before

	status atomic.Pointer[Status]
	cancel context.CancelFunc
	ended  chan struct{}
}

// New returns a Shipper, which owns the recorder. Nothing is shipped before Start.
func New(recorder *sqlite.Recorder, o Options) *Shipper {
	s := &Shipper{Options: o, recorder: recorder, ended: make(chan struct{})}
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
		if err := s.Ship(ctx); err != nil {
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
	return errors.Join(s.Ship(ctx), s.recorder.Close())
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
	case err != nil && was == nil:
		s.Log.Error("the continuous backup fails; it is tried again and again", "target", s.Target.String(), "cause", err)
	case err == nil && was != nil:
		s.Log.Info("the continuous backup works again", "target", s.Target.String())
	}
	return err
}

func (s *Shipper) ship(ctx context.Context) error {
	now := clock.Of(s.Clock.Now())
	key := s.Key()
	if s.chain != "" && (key != s.key || s.WholeEvery > 0 && now >= s.began.Add(s.WholeEvery)) {
		s.chain = ""
	}
	fresh := s.chain == ""
	if !fresh && !s.recorder.Changed() {
		return nil
	}
	taken, err := s.recorder.Take(ctx)
	if err != nil {
		return err
	}
	err = s.put(ctx, taken, key)
	if err = errors.Join(err, taken.Close()); err != nil || !fresh {
		return err
	}
	return s.deleteOld(ctx, now)
}

// spoolName is the name of the object that is being written. A killed process may leave it; the next object overwrites it.
const spoolName = "kontor.shipping"

// put stores a recording as the next part of the chain, or as the first one of a new chain.
func (s *Shipper) put(ctx context.Context, taken *sqlite.Recording, key Key) (err error) {
	chain, number, previous := s.chain, s.number, s.previous
	if chain == "" {
		number, previous = 0, ""
		chain = taken.At.Std().UTC().Format(chainTime) + "-" + strings.ToLower(rand.Text()[:chainID])
	}
	spool, err := os.OpenFile(filepath.Join(s.Spool, spoolName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, datadir.FileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spool.Close(), os.Remove(spool.Name())) }()
	id, err := s.write(ctx, spool, taken, previous, key)
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
	p := part{chain: chain, number: number, at: taken.At}
	if err := s.Target.Put(ctx, p.name(), size, spool); err != nil {
		return fmt.Errorf("write to %s: %w", s.Target, err)
	}
	taken.Keep()
	if number == 0 {
		s.chain, s.key, s.began = chain, key, taken.At
	}
	s.number, s.previous = number+1, id
	status := s.Status()
	s.status.Store(&Status{At: taken.At, Shipped: status.Shipped + 1, Bytes: status.Bytes + size, Failing: status.Failing})
	return nil
}

func (s *Shipper) write(ctx context.Context, out io.Writer, taken *sqlite.Recording, previous string, key Key) (id string, err error) {
	sealed, err := key.seal(out)
	if err != nil {
		return "", err
	}
	if id, _, err = backup.WriteRecording(ctx, taken, previous, sealed); err != nil {
		return "", err
	}
	return id, sealed.Close()
}

// deleteOld deletes the chains that ended, because another one began, before the time to retain. The first part goes first:
// without it, a chain does not count.
func (s *Shipper) deleteOld(ctx context.Context, now clock.Time) error {
	if s.Retain <= 0 {
		return nil
	}
	all, rest, err := chains(ctx, s.Target)
	if err != nil {
		return err
	}
	limit := now.Add(-s.Retain)
	var old []part
	for i, c := range all {
		if i+1 < len(all) && all[i+1].begin() < limit {
			old = append(old, c...)
		}
	}
	for _, p := range rest {
		if p.at < limit {
			old = append(old, p)
		}
	}
	for _, p := range old {
		if err := s.Target.Delete(ctx, p.name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete from %s: %w", s.Target, err)
		}
	}
	return nil
}
