package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

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
	mark, err := findMark(e.dir, e.guard)
	if err != nil {
		return err
	}
	c, err := newComparison(ctx, conn, path, e.guard, mark)
	if err != nil {
		return err
	}
	c.log = scan
	var loss *engine.Loss
	switch err = c.compare(); {
	case errors.As(err, &loss) && e.config.AcceptLoss:
		e.report.Loss = loss
		return nil
	case errors.As(err, &loss):
		return err
	case err != nil:
		if isStorageError(err) {
			return err
		}
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
