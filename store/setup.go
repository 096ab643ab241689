package store

import (
	"context"
	"errors"
	"fmt"
	"os"

	"kontor/store/internal/sqlite"
)

// A first start and a restore write under names of their own and rename last, so that a kill at any point leaves either
// nothing that counts or everything:
//
//	kontor.db.new         the database of a first start; made before the key, so that a key without a database and
//	                      without this file means that the database was lost
//	secret.key.new        the key of a first start, until it is whole
//	kontor.db.restoring   the database of a restore, until it was checked
//	secret.key.restoring  the key of a restore; takes its name after the database
const (
	settingUp    = databaseName + ".new"
	newKey       = keyName + ".new"
	restoring    = databaseName + ".restoring"
	restoringKey = keyName + ".restoring"
)

// besides are the endings of the files that the engine makes beside a database.
var besides = []string{"", "-wal", "-shm", "-journal"}

// removeDatabase removes a database that does not count yet, and what the engine made beside it.
func (d *directory) removeDatabase(name string) error {
	var failed error
	for _, ending := range besides {
		if err := os.Remove(d.file(name + ending)); err != nil && !errors.Is(err, os.ErrNotExist) {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// has reports whether the directory holds a file.
func (d *directory) has(name string) bool {
	_, err := os.Lstat(d.file(name))
	return err == nil
}

// beginSetup makes the file that announces a first start. One that was cut off begins anew; its key is kept.
func (d *directory) beginSetup() error {
	if err := d.removeSideFiles(settingUp); err != nil {
		return err
	}
	f, err := os.OpenFile(d.file(settingUp), os.O_RDWR|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return fmt.Errorf("data directory %s cannot be written: %w", d.path, cause(err))
	}
	if err := f.Close(); err != nil {
		return err
	}
	return syncDirectory(d.path)
}

// removeSideFiles removes what the engine made beside a database, which is first of all a log that would be played back
// into the next one of that name.
func (d *directory) removeSideFiles(name string) error {
	for _, ending := range besides[1:] {
		if err := os.Remove(d.file(name + ending)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// abandonSetup takes away what a first start left that failed, for want of room perhaps. The announcement stays as long as
// there is a key, which would otherwise look like the key of a lost database.
func (d *directory) abandonSetup() {
	if !d.has(keyName) {
		_ = d.removeDatabase(settingUp) // the next start tries again
		return
	}
	_ = d.removeSideFiles(settingUp)
	_ = os.Truncate(d.file(settingUp), 0)
}

// setUp makes a whole database under a name of its own and renames it last.
func (db *DB) setUp(ctx context.Context) error {
	path := db.dir.file(settingUp)
	conn, err := connect(path, sqlite.ReadWrite, writerPragmas)
	if err != nil {
		return explain(path, err)
	}
	_, _, err = db.prepare(ctx, conn, path, sqlite.LogScan{}, true)
	if err := errors.Join(err, conn.Close()); err != nil {
		return err
	}
	// Closing has brought the log into the database. If it has not, the rename would lose it.
	if db.dir.has(settingUp + "-wal") {
		return fmt.Errorf("%s could not be completed: its log is still there", path)
	}
	if err := syncWhole(path); err != nil {
		return fmt.Errorf("sync %s: %w", path, cause(err))
	}
	return db.dir.rename(settingUp, databaseName)
}

// rename gives a file its final name, durably.
func (d *directory) rename(from, to string) error {
	if err := os.Rename(d.file(from), d.file(to)); err != nil {
		return err
	}
	return syncDirectory(d.path)
}

// syncWhole syncs a closed file.
func syncWhole(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Discard removes the database, its mark and the key in a directory that no process uses. It is for data that can be made again,
// such as a demo that was interrupted while it was made.
func Discard(dir string) error {
	d, err := openDirectory(dir)
	if err != nil {
		return err
	}
	defer d.close()
	for _, name := range []string{databaseName, settingUp, restoring} {
		if err := d.removeDatabase(name); err != nil {
			return err
		}
	}
	for _, name := range []string{keyName, newKey, restoringKey, markName} {
		if err := os.Remove(d.file(name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return syncDirectory(d.path)
}
