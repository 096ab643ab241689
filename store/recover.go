package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"kontor/store/internal/sqlite"
)

// fromDisk makes what follows read the database at path and its log from the disk, and looks at the log.
//
// After a sync that failed, the system may keep pages in its cache that the disk does not have, and calls them clean. A
// recovery that reads them acknowledges on top of what the next loss of power takes away. So they are written, if they
// can be, and dropped.
func fromDisk(path string) (sqlite.LogScan, error) {
	for _, name := range []string{path, path + logSuffix} {
		if err := dropCached(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return sqlite.LogScan{}, fmt.Errorf("%w: %w", ErrIO, err)
		}
	}
	scan, err := sqlite.ScanLog(path)
	if err != nil {
		return scan, fmt.Errorf("%w: %w", ErrIO, err)
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

// compareWithMark refuses a database that lacks what was acknowledged, unless that was accepted. What is accepted must be
// sound by itself: all of it is checked, for a log with a gap can leave rows of different times.
func (db *DB) compareWithMark(conn *sqlite.Conn, path string, scan sqlite.LogScan) error {
	mark, err := db.dir.findMark(db.secrets)
	if err != nil {
		return err
	}
	e, err := gather(conn, path, db.secrets, mark)
	if err != nil {
		return err
	}
	e.log = scan
	var loss *Loss
	var broken *AuditBreak
	switch err = e.compare(); {
	case errors.As(err, &loss) && db.acceptLoss:
		db.accepted = loss
	case errors.As(err, &broken):
		// Going on would put the next entry behind what is left, and the mark after it.
		return refuseTampered(path, err)
	case err != nil:
		return err
	case !e.marked && e.found.commits > 0:
		db.log.Warn("there was no mark to compare the database with; a new one is made", "file", db.dir.file(markName))
	}
	return nil
}

// takeUp brings a database into service that was found to be whole.
func (db *DB) takeUp(ctx context.Context, conn *sqlite.Conn, path string, scan sqlite.LogScan) error {
	if db.accepted != nil {
		if err := checkWhatIsLeft(ctx, path, db.secrets); err != nil {
			return err
		}
	}
	if err := db.checkpointAtStart(conn); err != nil {
		return err
	}
	p, newest, err := db.secrets.readPosition(conn)
	if err != nil {
		return explain(path, err)
	}
	db.found = p
	p.clean, p.at = false, newest
	if db.mark, err = db.dir.openMark(db.secrets, p); err != nil {
		return err
	}
	if scan.Bytes == 0 {
		// The log is a new file: a sync of the file alone need not make its name durable.
		err = syncDirectory(db.dir.path)
	}
	if err == nil {
		err = db.start(conn)
	}
	if err != nil {
		db.mark.file.Close()
		return err
	}
	conn.DropLog()
	db.disk.serving.Store(true)
	return nil
}

// noteAcceptedLoss tells the log and the audit trail of a loss that this start has accepted.
func (db *DB) noteAcceptedLoss(ctx context.Context) error {
	if db.accepted == nil {
		return nil
	}
	db.log.Warn("acknowledged writes are missing, which was accepted", "loss", db.accepted.summary())
	return db.InTx(ctx, func(tx *Tx) error {
		tx.Audit(AuditEntry{Actor: NilID, Action: "database.accept_loss", RecType: "database", RecID: NilID, After: db.accepted})
		return nil
	})
}

// checkWhatIsLeft looks through all of a database that lacks writes: a log with a gap can leave pages and rows of
// different times, which nobody must be served.
func checkWhatIsLeft(ctx context.Context, path string, s *secrets) error {
	if _, err := checkFile(ctx, path, s, nil); err != nil {
		return fmt.Errorf("what is left of %s does not hold together; restore a backup: %w", path, err)
	}
	return nil
}

// neverHadDatabase refuses to begin anew where a mark says that there was a database.
func (d *directory) neverHadDatabase(s *secrets) error {
	_, p, err := d.readMark(s)
	if err != nil || p.commits == 0 {
		return nil //nolint:nilerr // no mark, or none that matters; a file that cannot be read is reported when it is made
	}
	return fmt.Errorf("%s is missing, and %s says that it held %d commits: put it back, or restore a backup into an empty directory: %w",
		d.file(databaseName), markName, p.commits, ErrLoss)
}

// checkpointAtStart copies what the log holds into the database and empties it, so that the start serves from what the
// disk has, and a log does not grow from start to start. That others keep the log in use, or that there is no room, is
// no reason to serve nobody.
func (db *DB) checkpointAtStart(conn *sqlite.Conn) error {
	err := translate(conn.EmptyLog())
	if err == nil {
		return nil
	}
	if lost := db.disk.err(); lost != nil {
		return lost
	}
	db.log.Warn("the log could not be emptied at the start", "err", err)
	return nil
}

// closeInOrder notes in the database that it is whole by itself, for a copy of it that comes without its mark.
func (db *DB) closeInOrder(conn *sqlite.Conn) {
	p := db.writer.position
	if p.commits == 0 || p.clean {
		return
	}
	p.clean = true
	if err := putMeta(conn, metaCommits, db.secrets.signCommits(p)); err != nil {
		db.log.Warn("the end could not be noted in the database", "err", err)
	}
}

// markRestored makes the mark of a database that was restored.
func (d *directory) markRestored(path string, s *secrets, now Time) error {
	if s == nil {
		return nil // made at the first start with the key
	}
	conn, err := connect(path, sqlite.ReadOnly, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	p, _, err := s.readPosition(conn)
	if err != nil {
		return err
	}
	p.at, p.clean = now, true
	return d.newMark(s, p)
}

// syncMark makes the mark beside the database at path durable, whoever writes it.
func syncMark(path string) error {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), markName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) {
		return nil // nothing that this process could make durable
	}
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
