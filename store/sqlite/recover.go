package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/sqlite/internal/binding"
)

// readFromDisk makes later reads of the database and its log come from the disk, and scans the log.
//
// After a failed sync, the system may keep pages in its cache that are not on the disk, and treat them as clean. A recovery
// from such pages would acknowledge writes on top of data that the next loss of power removes. So the pages are written, if
// possible, and dropped.
func readFromDisk(path string) (binding.LogScan, error) {
	for _, name := range []string{path, path + logSuffix} {
		if err := dropCached(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return binding.LogScan{}, fmt.Errorf("%w: %w", engine.ErrIO, err)
		}
	}
	scan, err := binding.ScanLog(path)
	if err != nil {
		return scan, fmt.Errorf("%w: %w", engine.ErrIO, err)
	}
	return scan, nil
}

func dropCached(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	return dropPages(f)
}

// compareWithMark rejects a database that lacks acknowledged writes, unless AcceptLoss is set.
func (e *Engine) compareWithMark(ctx context.Context, conn *binding.Conn, path string, scan binding.LogScan) error {
	_, mark, err := readMark(e.dir, e.guard)
	if err != nil {
		return err
	}
	c, err := newComparison(ctx, conn, path, e.guard, mark)
	if err != nil {
		return err
	}
	c.log = scan
	err = c.compare()
	loss, isLoss := errors.AsType[*engine.Loss](err)
	switch {
	case isLoss && e.config.AcceptLoss:
		e.report.Loss = loss
		return nil
	case isLoss, isStorageError(err):
		return err
	case err != nil:
		// Going on would append to what is left of the trail, and overwrite the mark.
		return e.guard.Tampered(err)
	case mark == nil && c.found.commits > 0:
		e.log.Warn("there is no mark to compare the database with; creating a new one", "file", e.dir.File(MarkName))
	}
	return nil
}

// takeUp starts to serve a database that was verified.
func (e *Engine) takeUp(ctx context.Context, conn *binding.Conn, path string, scan binding.LogScan) error {
	if e.report.Loss != nil {
		if err := e.verifyRemainder(ctx, path); err != nil {
			return fmt.Errorf("the rest of %s is inconsistent; restore a backup: %w", path, err)
		}
	}
	p, newest, err := readPosition(ctx, conn, e.guard)
	if err != nil {
		return explain(path, err)
	}
	found := p
	p.clean, p.at = false, newest
	lineage, saved, err := readLineage(conn, e.dir, found.commits)
	if err != nil {
		return explain(path, err)
	}
	if !saved {
		err := lineage.save(conn)
		if saved = err == nil; !saved {
			e.log.Warn("the new incarnation could not be recorded at the start; the first commit does", "err", err)
		}
	}
	if err := e.emptyLog(conn); err != nil { // also makes the incarnation durable
		return err
	}
	if e.mark, err = openMark(e.dir, e.guard, p); err != nil {
		return err
	}
	if saved {
		if err := e.dir.Remove(RestoredName); err != nil {
			return errors.Join(err, e.mark.file.Close())
		}
	}
	if scan.Bytes == 0 {
		// The log is a new file: a sync of the file alone need not make its name durable.
		err = datadir.Sync(e.dir.Path())
	}
	if err == nil {
		err = e.start(conn, found, lineage, saved)
	}
	if err != nil {
		e.mark.file.Close()
		return err
	}
	conn.DropLog()
	e.disk.serving.Store(true)
	return nil
}

// verifyRemainder verifies all of a database that lacks writes: a log with a gap can leave pages and rows of different
// times, which must not be served.
func (e *Engine) verifyRemainder(ctx context.Context, path string) error {
	f, err := OpenFile(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Begin(ctx); err != nil {
		return err
	}
	if _, err := f.Verify(ctx); err != nil {
		return err
	}
	if err := e.guard.VerifyAll(ctx, f); err != nil {
		return err
	}
	missing, err := e.Unprotected(ctx, f)
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("triggers are missing: %v", missing)
	}
	return err
}

// emptyLog copies the log into the database and empties it, so that the start serves from what the disk has, and the log
// does not grow from start to start. If another process uses the log, or the disk is full, the start continues.
func (e *Engine) emptyLog(conn *binding.Conn) error {
	err := translate(conn.EmptyLog())
	if err == nil {
		return nil
	}
	if failure := e.disk.err(); failure != nil {
		return failure
	}
	e.log.Warn("the log could not be emptied at the start", "err", err)
	return nil
}

// recordCleanEnd records in the database that it is complete by itself, for a copy of it that comes without its mark.
func (e *Engine) recordCleanEnd(conn *binding.Conn) {
	p := e.writer.position
	if p.commits == 0 || p.clean {
		return
	}
	p.clean = true
	if err := putMeta(conn, engine.MetaCommits, signCommits(e.guard, p)); err != nil {
		e.log.Warn("the orderly end could not be recorded in the database", "err", err)
	}
}

// Lineage says which history of commits a database continues. A database that is restored, copied or rolled back may go another way
// than the one that it comes from, so that from its first write it is an incarnation of its own. Commits have numbers within their
// incarnation; those up to the number of an ancestor are of that ancestor.
//
// A database recognises that it is a copy by the identity of its file, which it records beside its incarnation, and that it was
// restored by the file that the restore leaves. Where the system does not identify files, the target of a continuous backup recognises
// what was copied or rolled back.
type Lineage struct {
	Incarnation string     `json:"incarnation"`
	Ancestors   []Ancestor `json:"ancestors,omitempty"` // the oldest first
	File        string     `json:"file,omitempty"`      // identity of the database file
}

// Ancestor is an incarnation that another one comes from.
type Ancestor struct {
	Incarnation string `json:"incarnation"`
	Commits     int64  `json:"commits"` // the newest commit of the ancestor that the other one has
}

const (
	incarnationLetters = 16
	// maxAncestors bounds what is recorded, where the identity of a file changes with each start.
	maxAncestors = 100
)

// NewIncarnation returns a name for an incarnation.
func NewIncarnation() string { return strings.ToLower(rand.Text()[:incarnationLetters]) }

// IsIncarnation reports whether a text may be the name of an incarnation.
func IsIncarnation(text string) bool { return incarnationName.MatchString(text) }

var incarnationName = regexp.MustCompile(`^[a-z2-7]{16}$`)

// next returns the lineage of a new incarnation that comes from this one.
func (l Lineage) next(name string, commits int64, file string) Lineage {
	ancestors := slices.Clone(l.Ancestors)
	if l.Incarnation != "" {
		ancestors = append(ancestors, Ancestor{l.Incarnation, commits})
	}
	ancestors = ancestors[max(0, len(ancestors)-maxAncestors):]
	return Lineage{Incarnation: name, Ancestors: ancestors, File: file}
}

// readLineage returns the lineage of a database at its start. saved is false for a new incarnation that is not in the database.
func readLineage(conn *binding.Conn, d *datadir.Directory, commits int64) (l Lineage, saved bool, err error) {
	text, known, err := readMeta(conn, engine.MetaLineage)
	if err != nil {
		return l, false, err
	}
	if known {
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return l, false, fmt.Errorf("%w: the lineage cannot be read: %w", engine.ErrCorrupt, err)
		}
	}
	file := datadir.Identity(d.File(datadir.Database))
	_, name, isRestored := readRestored(d)
	switch {
	case isRestored && name != "" && name != l.Incarnation:
	case isRestored && name == "", l.Incarnation == "", !datadir.SameFile(file, l.File):
		name = NewIncarnation()
	default: // also if the last start could not delete the file of the restore
		return l, true, nil
	}
	return l.next(name, commits, file), false, nil
}

func (l Lineage) save(conn *binding.Conn) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return putMeta(conn, engine.MetaLineage, string(text))
}

// Fork makes the database a new incarnation, which begins with the next commit. Another database continues the present one.
func (r *Recorder) Fork(ctx context.Context) error {
	w := r.engine.writer
	former := ""
	return r.engine.Write(context.WithoutCancel(ctx), func(engine.Tx) error {
		if former == "" {
			former = w.lineage.Incarnation
		}
		if w.lineage.Incarnation == former { // the job may run more than once
			w.lineage = w.lineage.next(NewIncarnation(), w.position.commits, w.lineage.File)
		}
		w.lineageSaved = false
		return w.lineage.save(w.conn)
	})
}
