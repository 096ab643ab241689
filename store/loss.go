package store

import (
	"bytes"
	"crypto/hmac"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"kontor/store/internal/sqlite"
)

// ErrLoss says that a database lacks writes that were acknowledged. It opens when Options.AcceptLoss is set.
var ErrLoss = errors.New("acknowledged writes are missing")

// Loss says what a database lacks, compared with its mark.
type Loss struct {
	File    string // that is missing, damaged or older than it was
	Reason  string
	Commits int64 // that are missing; 0 when that is unknown
	Entries int64 // of the audit trail that are missing
	Since   Time  // of the newest entry that is there; 0 when there is none
	Until   Time  // of the newest commit that was acknowledged; 0 when that is unknown
}

// Error says what is missing and what to do.
func (l *Loss) Error() string {
	return l.summary() + "; put the files back or restore a backup, or go on without these writes: kontor serve --accept-loss"
}

func (l *Loss) summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", l.File, l.Reason)
	if l.Commits > 0 || l.Entries > 0 {
		fmt.Fprintf(&b, ": %d commits with %d audit entries are missing that were acknowledged", l.Commits, l.Entries)
	} else {
		b.WriteString(": writes that were acknowledged may be missing")
	}
	if l.Since > 0 {
		fmt.Fprintf(&b, " after %s", l.Since.Std().UTC().Format(time.RFC3339))
	}
	if l.Until > 0 {
		fmt.Fprintf(&b, ", up to %s", l.Until.Std().UTC().Format(time.RFC3339))
	}
	return b.String()
}

// Unwrap makes a Loss an ErrLoss.
func (l *Loss) Unwrap() error { return ErrLoss }

// unsyncedCommits is how many commits at the end of a log may lack a sync when the power fails: the group that is being
// synced, and one that was committed meanwhile.
const unsyncedCommits = 2

// evidence is what a start compares.
type evidence struct {
	path   string // of the database
	log    sqlite.LogScan
	found  position // in the database
	newest Time     // entry of the audit trail that is there
	mark   position
	marked bool
	hashAt func(seq int64) (hash string, err error) // of an entry of the trail; ErrNotFound
}

// compare returns a *Loss when the database lacks what was acknowledged.
func (e *evidence) compare() error {
	l := &Loss{File: e.path + "-wal", Since: e.newest}
	if e.marked {
		l.Until = e.mark.at
		l.Commits = max(e.mark.commits-e.found.commits, 0)
		l.Entries = max(e.mark.head.seq-e.found.head.seq, 0)
	}
	damaged := e.log.CommitsBeyond > unsyncedCommits
	switch {
	case damaged:
		l.Reason = fmt.Sprintf("is damaged behind its %d frames: %d intact frames with %d commits follow", e.log.Frames, e.log.Beyond, e.log.CommitsBeyond)
		return l
	case !e.marked && (e.found.commits == 0 || e.found.clean || e.log.Frames > 0):
		return nil // an installation without a mark gets one
	case !e.marked:
		l.File, l.Reason = strings.TrimSuffix(e.path, databaseName)+markName, "is missing, and so is the log of a database that was in use"
		return l
	case l.Commits > 0:
		l.Reason = e.shortfall()
		if e.mark.clean {
			l.File = e.path
		}
		return l
	}
	return e.compareTrail()
}

// shortfall says why commits are missing.
func (e *evidence) shortfall() string {
	switch {
	case e.mark.clean:
		return "is older than when it was closed"
	case e.log.Bytes == 0:
		return "is missing or empty"
	case e.log.Beyond > 0 || int64(e.log.Frames) == 0:
		return fmt.Sprintf("is damaged behind its %d frames", e.log.Frames)
	}
	return "was cut off, or rolled back with its database"
}

// compareTrail looks for the entry that the mark names as the newest.
//
// That it is gone although no commit is missing is no loss: somebody has changed the trail. The error is an *AuditBreak.
func (e *evidence) compareTrail() error {
	if !e.marked || e.mark.head.seq == 0 {
		return nil
	}
	hash, err := e.hashAt(e.mark.head.seq)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err == nil && hash == fmt.Sprintf("%x", e.mark.head.hash) {
		return nil
	}
	return &AuditBreak{Seq: e.mark.head.seq, Reason: "it is missing, or not the one that the mark beside the database names"}
}

// cleanSuffix follows the number of commits in a database that was closed in order.
const cleanSuffix = " clean"

// signCommits is how a position is kept in the database: the number of the commit, whether the database was closed in
// order, and a keyed digest, so that nobody without the key makes a database that was rolled back look newer. The audit
// trail holds its own end.
func (s *secrets) signCommits(p position) string {
	text := strconv.FormatInt(p.commits, 10)
	if p.clean {
		text += cleanSuffix
	}
	return fmt.Sprintf("%s %x", text, s.keyed("commits", []byte(text)))
}

// readCommits reads what signCommits has written. A number that was changed counts as none.
func (s *secrets) readCommits(signed string) (p position) {
	number, _, _ := strings.Cut(signed, " ")
	for _, p.clean = range []bool{false, true} {
		var err error
		if p.commits, err = strconv.ParseInt(number, 10, 64); err == nil && hmac.Equal([]byte(signed), []byte(s.signCommits(p))) {
			return p
		}
	}
	return position{}
}

// readPosition reads how far a database has come.
func (s *secrets) readPosition(conn *sqlite.Conn) (p position, newest Time, err error) {
	var commits, hash string
	err = readKept(conn, selectMeta, []any{metaCommits}, &commits)
	if err == nil {
		p = s.readCommits(commits)
	} else if !errors.Is(err, ErrNotFound) {
		return p, 0, err
	}
	err = readKept(conn, selectEnd, nil, &p.head.seq, &hash, &newest)
	if errors.Is(err, ErrNotFound) {
		return p, 0, nil
	}
	if err == nil {
		p.head.hash, err = parseHash(hash)
	}
	return p, newest, err
}

const (
	selectEnd  = `SELECT seq, hash, at FROM audit_entries ORDER BY seq DESC LIMIT 1`
	selectHash = `SELECT hash FROM audit_entries WHERE seq = $1`
)

// findMark returns the position in the mark, or nil when there is none, or no key to read it with. To compare it with a
// database in use, read it before: what it promises is there from then on.
func (d *directory) findMark(s *secrets) (*position, error) {
	if s == nil {
		return nil, nil
	}
	_, p, err := d.readMark(s)
	if errors.Is(err, errNoMark) {
		return nil, nil
	}
	return &p, err
}

// checkMark compares a database, which may be in use, with a mark that was read before, or with none.
func (d *directory) checkMark(mark *position, s *secrets) error {
	path := d.file(databaseName)
	conn, _, err := openExisting(path)
	if err != nil {
		return err
	}
	defer conn.Close()
	e, err := gather(conn, path, s, mark)
	if err != nil {
		return err
	}
	if e.log, err = scanStillLog(path); err != nil {
		return fmt.Errorf("%w: %w", ErrIO, err)
	}
	return e.compare()
}

// scanStillLog scans a log that a running server may append to or begin anew. A scan beside a write may read half a frame
// and what follows it; damage is what two scans of one generation find in the same place.
func scanStillLog(path string) (scan sqlite.LogScan, err error) {
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
		if scan, err = sqlite.ScanLog(path); err != nil || scan.CommitsBeyond == 0 {
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

// logHeader reads the part of a log that changes when it begins anew. It returns nil when there is no log.
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

// gather reads what there is to compare with a mark.
func gather(conn *sqlite.Conn, path string, s *secrets, mark *position) (e *evidence, err error) {
	e = &evidence{path: path}
	if mark != nil {
		e.mark, e.marked = *mark, true
	}
	if e.found, e.newest, err = s.readPosition(conn); err != nil {
		return nil, explain(path, err)
	}
	e.hashAt = func(seq int64) (hash string, err error) {
		err = readKept(conn, selectHash, []any{seq}, &hash)
		return hash, err
	}
	return e, nil
}
