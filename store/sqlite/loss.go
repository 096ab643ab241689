package sqlite

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"
)

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
	var commits string
	err = readRow(conn, engine.SelectMeta, []any{engine.MetaCommits}, &commits)
	if err == nil {
		p = parseCommits(guard, commits)
	} else if !errors.Is(err, engine.ErrNotFound) {
		return p, 0, err
	}
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
