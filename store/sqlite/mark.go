package sqlite

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"
)

// position is how far a database has come. A start must find the same position again.
type position struct {
	commits int64
	head    engine.Anchor // the end of the audit trail
	at      clock.Time
	clean   bool // the process that wrote it closed the database in order
}

// MarkName is the file beside the database that records how far the log was acknowledged. A log that was lost, cut or
// damaged, and a database that was rolled back, look intact by themselves; compared with the mark they do not.
//
// The file has two slots, written in turn, so that one is always complete. A slot is written after the log was synced, so
// that it never promises more than the log holds. It is synced only now and then: after a crash of the process it is exact,
// after a loss of power it may be some seconds old.
const MarkName = "kontor.mark"

const (
	markMagic  = "kontorm1"
	markSlot   = 4096 // bytes from slot to slot, so that no two share a block of the disk
	markLength = len(markMagic) + 8*5 + sha256.Size
	markSigned = markLength + sha256.Size // with the keyed digest after it
)

// signer computes keyed digests for what is stored about positions.
type signer interface {
	Keyed(purpose string, data []byte) []byte
	FormerKeyed(purpose string, data []byte) []byte // nil unless the key is being replaced
}

// isSigned compares a keyed digest.
func isSigned(s signer, purpose string, data, digest []byte) bool {
	former := s.FormerKeyed(purpose, data)
	return hmac.Equal(digest, s.Keyed(purpose, data)) || former != nil && hmac.Equal(digest, former)
}

// mark is the open mark file of a database.
type mark struct {
	signer signer

	mu         sync.Mutex
	file       *os.File
	generation uint64 // of the newest slot
	last       position
}

// encodeMark returns the content of a slot.
func encodeMark(s signer, generation uint64, p position) []byte {
	b := make([]byte, 0, markSigned)
	b = append(b, markMagic...)
	clean := uint64(0)
	if p.clean {
		clean = 1
	}
	for _, v := range [...]uint64{generation, clean, uint64(p.commits), uint64(p.head.Seq), uint64(p.at)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(b, p.head.Hash[:]...)
	return append(b, s.Keyed("mark", b)...)
}

// decodeMark reads a slot. ok is false for one that is empty, incomplete, or not written with this key.
func decodeMark(s signer, b []byte) (generation uint64, p position, ok bool) {
	if len(b) < markSigned || !bytes.HasPrefix(b, []byte(markMagic)) ||
		!isSigned(s, "mark", b[:markLength], b[markLength:markSigned]) {
		return 0, position{}, false
	}
	var v [5]uint64
	for i := range v {
		v[i] = binary.BigEndian.Uint64(b[len(markMagic)+8*i:])
	}
	p = position{clean: v[1] == 1, commits: int64(v[2]), head: engine.Anchor{Seq: int64(v[3])}, at: clock.Time(v[4])}
	copy(p.head.Hash[:], b[markLength-sha256.Size:])
	return v[0], p, true
}

// Mark is the content of the mark beside a database.
type Mark []byte

// ReadMark reads the mark of a directory; nil is none. To compare it with a database in use, read the mark first: the database
// holds what the mark promises from then on.
func ReadMark(d *datadir.Directory) (Mark, error) {
	data, err := os.ReadFile(d.File(MarkName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}

// readMark returns the position in the mark of a directory; nil when there is none, or none that can be read with the key.
func readMark(d *datadir.Directory, s signer) (generation uint64, p *position, err error) {
	data, err := ReadMark(d)
	if err != nil {
		return 0, nil, err
	}
	generation, p = data.newest(s)
	return generation, p, nil
}

// newest returns the newest complete slot, or nil.
func (m Mark) newest(s signer) (generation uint64, p *position) {
	for at := 0; at < len(m) && at <= markSlot; at += markSlot {
		if g, q, ok := decodeMark(s, m[at:]); ok && (p == nil || g > generation) {
			generation, p = g, &q
		}
	}
	return generation, p
}

// openMark opens the mark file, or creates it, and writes the position into it. The previous position must have been
// compared before.
func openMark(d *datadir.Directory, s signer, p position) (*mark, error) {
	generation, before, err := readMark(d, s)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(d.File(MarkName), os.O_RDWR|os.O_CREATE, datadir.FileMode)
	if err != nil {
		return nil, fmt.Errorf("data directory %s cannot be written: %w", d.Path(), datadir.Cause(err))
	}
	m := &mark{signer: s, file: file, generation: generation}
	if err = m.write(p); err == nil && before == nil {
		// Both slots at once: later writes need no more space.
		if err = m.write(p); err == nil {
			err = m.sync()
		}
		if err == nil {
			err = datadir.Sync(d.Path())
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return m, nil
}

// write writes a position into the older slot, without a sync.
func (m *mark) write(p position) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := m.generation + 1
	if _, err := m.file.WriteAt(encodeMark(m.signer, next, p), int64(next%2)*markSlot); err != nil {
		return err
	}
	m.generation, m.last = next, p
	return nil
}

// sync waits until the mark is on the disk.
func (m *mark) sync() error {
	if err := datadir.SyncFile(m.file); err != nil {
		return &fs.PathError{Op: "sync", Path: m.file.Name(), Err: err}
	}
	return nil
}

// finish records that the database was closed in order.
func (m *mark) finish() error {
	m.mu.Lock()
	p := m.last
	m.mu.Unlock()
	p.clean = true
	err := m.write(p)
	if err == nil {
		err = m.sync()
	}
	return errors.Join(err, m.file.Close())
}

// SyncMark makes the mark beside the database at a path durable, whichever process writes it.
func SyncMark(d *datadir.Directory) error {
	err := datadir.SyncClosed(d.File(MarkName))
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || isReadOnlyFileSystem(err) {
		return nil // there is nothing that this process could make durable
	}
	return fmt.Errorf("%s cannot be synced: %w", MarkName, datadir.Cause(err))
}

// unsyncedCommits is how many commits at the end of a log may lack a sync when the power fails: those of the group that is
// being synced and of one that was committed in the meantime.
const unsyncedCommits = 2

// comparison is the state of a database that a start compares with the mark.
type comparison struct {
	path   string // of the database
	log    binding.LogScan
	found  position   // in the database
	newest clock.Time // time of the newest audit entry in the database
	mark   *position  // nil without a mark

	restored    bool                      // there is no mark, because the key was missing at the restore
	checkAnchor func(engine.Anchor) error // compares an entry of the trail
}

// compare returns a *Loss when the database lacks acknowledged writes, and the error of the guard when the trail is not the
// one that the mark names.
func (c *comparison) compare() error {
	l := &engine.Loss{File: c.path + logSuffix, Since: c.newest}
	if c.mark != nil {
		l.Until = c.mark.at
		l.Commits = max(c.mark.commits-c.found.commits, 0)
		l.Entries = max(c.mark.head.Seq-c.found.head.Seq, 0)
	}
	switch {
	case c.log.CommitsBeyond > unsyncedCommits:
		l.Reason = fmt.Sprintf("is damaged after its %d frames: %d intact frames with %d commits follow", c.log.Frames, c.log.Beyond, c.log.CommitsBeyond)
		return l
	case c.mark == nil && (c.restored || c.found.commits == 0 || c.found.clean || c.log.Frames > 0):
		return nil // restored, or from before there were marks
	case c.mark == nil:
		l.File, l.Reason = strings.TrimSuffix(c.path, datadir.Database)+MarkName, "is missing, and so is the log of a database that was in use"
		return l
	case l.Commits > 0:
		l.Reason = c.reason()
		if c.mark.clean {
			l.File = c.path
		}
		return l
	case c.mark.head.Seq == 0:
		return nil
	}
	return c.checkAnchor(c.mark.head)
}

// reason says why commits are missing.
func (c *comparison) reason() string {
	switch {
	case c.mark.clean:
		return "is older than when it was closed"
	case c.log.Bytes == 0:
		return "is missing or empty"
	case c.log.Beyond > 0 || int64(c.log.Frames) == 0:
		return fmt.Sprintf("is damaged after its %d frames", c.log.Frames)
	}
	return "was cut off, or rolled back with its database"
}

// newComparison reads the position of the database on a connection.
func newComparison(ctx context.Context, conn *binding.Conn, path string, guard engine.Guard, mark *position) (*comparison, error) {
	c := &comparison{path: path, mark: mark, checkAnchor: func(a engine.Anchor) error { return guard.CheckAnchor(ctx, source{conn}, a) }}
	var err error
	if c.found, c.newest, err = readPosition(ctx, conn, guard); err != nil {
		return nil, explain(path, err)
	}
	c.restored = mark == nil && isRestored(conn, filepath.Dir(path))
	return c, nil
}

// cleanSuffix follows the number of commits in a database that was closed in order.
const cleanSuffix = " clean"

// signCommits returns how a position is stored in the database: the number of the commit, whether the database was closed
// in order, and a keyed digest, so that a rolled-back database cannot be made to look newer without the key. The audit trail
// records its own end.
func signCommits(s signer, p position) string {
	text := commitsText(p)
	return fmt.Sprintf("%s %x", text, s.Keyed("commits", []byte(text)))
}

// commitsText returns the signed part of a position.
func commitsText(p position) string {
	text := strconv.FormatInt(p.commits, 10)
	if p.clean {
		text += cleanSuffix
	}
	return text
}

// isCommits reports whether a text is what signCommits returns for a position, or returned under the key before.
func isCommits(s signer, p position, signed string) bool {
	text := commitsText(p)
	digest, ok := strings.CutPrefix(signed, text+" ")
	raw, err := hex.DecodeString(digest)
	return ok && err == nil && isSigned(s, "commits", []byte(text), raw)
}

// parseCommits reads what signCommits returned. A number that was changed counts as none.
func parseCommits(s signer, signed string) (p position) {
	number, _, _ := strings.Cut(signed, " ")
	for _, p.clean = range []bool{false, true} {
		var err error
		if p.commits, err = strconv.ParseInt(number, 10, 64); err == nil && isCommits(s, p, signed) {
			return p
		}
	}
	return position{}
}

// readPosition reads how far a database has come, and the time of its newest audit entry.
func readPosition(ctx context.Context, conn *binding.Conn, guard engine.Guard) (p position, newest clock.Time, err error) {
	commits, _, err := readMeta(conn, engine.MetaCommits)
	if err != nil {
		return p, 0, err
	}
	p = parseCommits(guard, commits)
	p.head, newest, err = guard.Anchor(ctx, source{conn})
	return p, newest, err
}

// scanStillLog scans a log to which a running server may append, or which may start again. A scan beside a write may read
// half a frame and what follows it. Damage is what two scans of one generation find in the same place.
func scanStillLog(path string) (scan binding.LogScan, err error) {
	const (
		tries = 10
		pause = 20 * time.Millisecond
	)
	var header []byte
	found := -1
	for range tries {
		before := header
		if header, err = logHeader(path); err != nil {
			return scan, err
		}
		if scan, err = binding.ScanLog(path); err != nil || scan.CommitsBeyond == 0 {
			return scan, err
		}
		if scan.Frames == found && bytes.Equal(before, header) {
			return scan, nil
		}
		found = scan.Frames
		time.Sleep(pause)
	}
	scan.Beyond, scan.CommitsBeyond = 0, 0
	return scan, nil
}

// logHeader reads the part of a log that changes when it starts again. It returns nil when there is no log.
func logHeader(path string) ([]byte, error) {
	f, err := os.Open(path + logSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	header := make([]byte, 32)
	n, err := io.ReadFull(f, header)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return header[:n], err
}
