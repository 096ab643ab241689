package continuous

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kontor/store/backup"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sealing"
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

// deleteOld deletes the chains whose states are all older than the time to retain. The time is the one that the database was served
// since, which the parts prove: a clock that jumps deletes nothing. The newest chain of each line stays.
func (s *Shipper) deleteOld(ctx context.Context) error {
	if s.Retain <= 0 {
		return nil
	}
	now := s.line.elapsed()
	if now < s.Retain { // nothing can be old enough, and the list of a target is expensive
		return nil
	}
	survey, err := Look(ctx, s.Target, "")
	if err != nil {
		return err
	}
	var old []part
	var oldChains []*Line
	for _, l := range survey.Lines {
		switch upTo, superseded := s.line.Supersedes[l.ID]; {
		case l.Old:
			oldChains = append(oldChains, l)
		case l.ID == s.line.id:
			all := l.chains()
			for i := 0; i+1 < len(all) && now-all[i+1].first().elapsed >= s.Retain; i++ {
				old = append(old, all[i]...)
			}
		case superseded && len(l.parts) > 0 && l.Top().Commits <= upTo && now-s.line.SupersedesSince >= s.Retain:
			newest := slices.MaxFunc(l.parts, byCommits).chain
			old = append(old, slices.DeleteFunc(slices.Clone(l.parts), func(p part) bool { return p.chain == newest })...)
		}
	}
	// Chains of an earlier version are from before this line. Only those of this bank are deleted.
	for i := 0; i+1 < len(oldChains); i++ {
		if err := oldChains[i].identify(ctx, s.Target, s.key); err != nil {
			return err
		}
		if oldChains[i].Ours {
			old = append(old, oldChains[i].parts...)
		}
	}
	for _, p := range old {
		if err := s.Target.Delete(ctx, p.name()); err != nil {
			return fmt.Errorf("delete from %s: %w", s.Target, err)
		}
	}
	return nil
}

// lineStatus is the content of line.age: who writes a line, and how far it has come. The writer stores it with each part, and from time
// to time without one, so that another server recognises that it is alive.
type lineStatus struct {
	backup.Origin            // of the newest part
	At            clock.Time `json:"at"` // of its state

	Writer string `json:"writer"`           // random for each start of a server
	Beat   int64  `json:"beat"`             // grows with each status of the writer
	Holder string `json:"holder,omitempty"` // the data directory, while the machine runs, see datadir.Mounted
	Ended  bool   `json:"ended,omitempty"`  // the writer has stopped in order
	// Displaced says that the incarnation began because another server wrote to the line of its ancestor.
	Displaced bool `json:"displaced,omitempty"`
	// Supersedes says up to which commit the operator has given up other lines, when they let this one continue them.
	Supersedes map[string]int64 `json:"supersedes,omitempty"`
	// ContinuedBy is the incarnation that the operator let continue the line. Its former server must not write to it.
	ContinuedBy string `json:"continued_by,omitempty"`
	// SupersedesSince is the elapsed time of this line at that moment.
	SupersedesSince time.Duration `json:"supersedes_since,omitempty"`
}

func lineName(incarnation string) string { return incarnation + "/" + lineFile }

const maxStatus = 1 << 20 // bytes

// readStatus returns the status of a line as it is stored, or nil without one.
func readStatus(ctx context.Context, t Target, incarnation string) ([]byte, error) {
	in, err := t.Get(ctx, lineName(incarnation))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read from %s: %w", t, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxStatus))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read from %s: %w", t, err)
	}
	return data, nil
}

// openStatus opens a stored status. It returns nil if it does not open with the key, is damaged, or is of another line.
func (k Key) openStatus(incarnation string, data []byte) *lineStatus {
	if data == nil {
		return nil
	}
	plain, err := k.open(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(plain)
	s := &lineStatus{}
	if err != nil || json.Unmarshal(text, s) != nil || s.Incarnation != incarnation {
		return nil
	}
	return s
}

func (k Key) sealStatus(s lineStatus) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var sealed bytes.Buffer
	out, err := k.seal(&sealed)
	if err != nil {
		return nil, err
	}
	if _, err := out.Write(text); err != nil {
		return nil, err
	}
	err = out.Close()
	return sealed.Bytes(), err
}

// storeStatus stores the status of a line. It returns the stored form, also after an error: it may be stored all the same.
func storeStatus(ctx context.Context, t Target, key Key, status lineStatus) ([]byte, error) {
	sealed, err := key.sealStatus(status)
	if err != nil {
		return nil, err
	}
	if err := t.Put(ctx, lineName(status.Incarnation), int64(len(sealed)), bytes.NewReader(sealed)); err != nil {
		return sealed, fmt.Errorf("write to %s: %w", t, err)
	}
	return sealed, nil
}

// identify finds out whether the line opens with a key, and of which database it is: by its status, else by its newest whole part
// that opens.
func (l *Line) identify(ctx context.Context, t Target, key Key) error {
	if !l.Old {
		data, err := readStatus(ctx, t, l.ID)
		if err != nil {
			return err
		}
		if l.status = key.openStatus(l.ID, data); l.status != nil {
			l.Ours, l.Database, l.Ancestors = true, l.status.Database, l.status.Ancestors
			return nil
		}
	}
	for i := len(l.parts) - 1; i >= 0 && !l.Ours; i-- {
		if !l.parts[i].whole {
			continue
		}
		header, err := readHeader(ctx, t, key, l.parts[i])
		switch {
		case errors.Is(err, sealing.ErrWrongKey), errors.Is(err, engine.ErrCorrupt), errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case l.Old:
			l.Ours = true
		case header.Origin != nil && header.Origin.Incarnation == l.ID:
			l.Ours, l.Database, l.Ancestors = true, header.Origin.Database, header.Origin.Ancestors
		}
	}
	return nil
}

func readHeader(ctx context.Context, t Target, key Key, p part) (h backup.Header, err error) {
	ctx, cancel := context.WithCancel(ctx) // the rest of the part is not downloaded
	defer cancel()
	in, err := t.Get(ctx, p.name())
	if err != nil {
		return h, err
	}
	plain, err := opened(key, in)
	if err != nil {
		return h, err
	}
	defer plain.Close()
	return backup.ReadHeader(plain)
}
