package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sqlite/internal/binding"
)

const (
	// checkAtStart is how long the start waits for the check of the database, and checkedAtStart is the size in bytes from which
	// it does not wait: a start is measured in milliseconds, a check of gigabytes in minutes.
	checkAtStart   = 25 * time.Millisecond
	checkedAtStart = 16 << 20
	// checkDelay is the pause before a check in the background, so that it does not slow down the first requests.
	checkDelay = 2 * time.Second
)

// Open opens the database in the data directory, or creates it. See [engine.Config] for what it guarantees.
func Open(ctx context.Context, c engine.Config) (engine.Engine, engine.Report, error) {
	e := &Engine{config: c, dir: c.Dir, clock: c.Clock, log: c.Log, appendOnly: c.AppendOnly, disk: newDisk(c.Fatal)}
	if e.config.LogLimit == 0 {
		e.config.LogLimit = defaultLogLimit
	}
	if e.clock == nil {
		e.clock = clock.System{}
	}
	if e.log == nil {
		e.log = slog.Default()
	}
	e.self = engine.ThisNode(c, clock.Of(e.clock.Now()))
	e.self.Live, e.self.Leads = true, true
	if err := e.open(ctx); err != nil {
		return nil, engine.Report{}, err
	}
	return e, e.report, nil
}

func (e *Engine) open(ctx context.Context) (err error) {
	fresh, err := findDatabase(e.dir)
	if err != nil {
		return err
	}
	if fresh {
		if err := beginSetup(e.dir); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				abandonSetup(e.dir)
			}
		}()
	}
	if e.guard, err = e.config.Guard(fresh); err != nil {
		return err
	}
	if fresh {
		if err := rejectLostDatabase(e.dir, e.guard); err != nil {
			return err
		}
		if err := e.setUp(ctx); err != nil {
			return err
		}
	}
	path := e.dir.File(datadir.Database)
	if e.unwatch, err = e.disk.watch.Add(path); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			e.unwatch()
		}
	}()
	checked, err := e.openFile(ctx, path, fresh)
	if err != nil {
		return err
	}
	background, cancel := context.WithCancel(context.Background())
	e.stopBackground = cancel
	if !checked {
		e.background.Go(func() { e.checkInBackground(background, path) })
	}
	return nil
}

// openFile verifies the database file and begins to serve it. checked reports whether the check of its pages was completed.
func (e *Engine) openFile(ctx context.Context, path string, fresh bool) (checked bool, err error) {
	scan, err := readFromDisk(path)
	if err != nil {
		return false, err
	}
	conn, err := connect(path, binding.ReadWrite, writerPragmas)
	if err != nil {
		return false, explain(path, err)
	}
	if scan.Bytes > 0 {
		conn.KeepLog() // until the start has succeeded: a rejected start changes nothing
	}
	checked, e.report.Unprotected, err = e.prepareDatabase(ctx, conn, path, scan, fresh)
	if err == nil {
		err = e.takeUp(ctx, conn, path, scan)
	}
	if err != nil {
		conn.Close()
		return false, e.disk.prefer(err)
	}
	return checked, nil
}

// prepareDatabase verifies a database and migrates its schema. It reports whether the check of its pages was completed, and
// which triggers a database in use had lost.
func (e *Engine) prepareDatabase(
	ctx context.Context, conn *binding.Conn, path string, scan binding.LogScan, fresh bool,
) (checked bool, unprotected []string, err error) {
	version, err := schemaVersion(conn)
	if err != nil {
		return false, nil, explain(path, err)
	}
	latest, err := engine.LatestMigration(e.config.Migrations)
	if err != nil {
		return false, nil, err
	}
	if version > latest {
		return false, nil, fmt.Errorf("%s has schema %d, this program knows %d: %w", path, version, latest, engine.ErrNewerSchema)
	}
	known := false
	if version > 0 {
		if known, err = e.guard.Recognise(ctx, source{conn}); err != nil {
			return false, nil, explainStorage(path, err)
		}
	}
	checked = fresh
	if !fresh {
		if checked, err = e.checkBriefly(ctx, path, scan); err != nil && !wordsDamaged(err) { // the check in the background repairs it
			return false, nil, explain(path, err)
		}
	}
	if version == latest { // a trail that was tampered with is reported before missing writes
		if err := e.settle(ctx, conn, path); err != nil {
			return false, nil, err
		}
	}
	if !fresh && version > 0 {
		if err := e.compareWithMark(ctx, conn, path, scan); err != nil {
			return false, nil, err
		}
	}
	if version < latest {
		if err := migrate(ctx, path, e.config.Migrations); err != nil {
			return false, nil, err
		}
		if err := e.settle(ctx, conn, path); err != nil {
			return false, nil, err
		}
	}
	if err := restoreWords(ctx, conn, e.config.Texts); err != nil {
		return checked, nil, err
	}
	missing, err := restoreTriggers(ctx, conn, e.appendOnly)
	if err != nil || !known {
		return checked, nil, err
	}
	return checked, missing, nil
}

func (e *Engine) settle(ctx context.Context, conn *binding.Conn, path string) error {
	return explainStorage(path, e.guard.Settle(ctx, source{conn}))
}

// explain says in one sentence what is wrong with a database file.
func explain(path string, err error) error {
	if errors.Is(err, engine.ErrCorrupt) {
		return fmt.Errorf("%s cannot be used and was left as it is; restore a backup: %w", path, err)
	}
	return fmt.Errorf("%s cannot be used: %w", path, err)
}

// explainStorage explains errors of the storage, and returns the errors of a guard unchanged: those name the file already.
func explainStorage(path string, err error) error {
	if isStorageError(err) {
		return explain(path, err)
	}
	return err
}

func isStorageError(err error) bool {
	_, isSQLite := errors.AsType[*binding.Error](err)
	return isSQLite || errors.Is(err, engine.ErrCorrupt)
}

// checkBriefly checks the database for as long as a start may wait. done reports whether the check was completed.
//
// A database that was closed in order is complete on the disk, so that only its file can have changed since: its pages are
// compared with their checksums, and the structure of its tables is checked in the background. After a crash, or if a page
// differs, all of it is checked at once.
func (e *Engine) checkBriefly(ctx context.Context, path string, scan binding.LogScan) (done bool, err error) {
	if info, err := os.Stat(path); err == nil && info.Size() > checkedAtStart {
		return false, nil
	}
	short, cancel := context.WithTimeout(ctx, checkAtStart)
	defer cancel()
	intact := false
	if e.closedInOrder(scan) {
		intact, err = binding.ComparePages(short, path)
	}
	if !intact && short.Err() == nil { // an error of the file shows again
		done, err = true, quickCheck(short, path)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return false, ctx.Err()
	}
	return done && err == nil, err
}

// closedInOrder reports whether the mark says that all of the database is in its file.
func (e *Engine) closedInOrder(scan binding.LogScan) bool {
	_, mark, err := readMark(e.dir, e.guard)
	return err == nil && mark != nil && mark.clean && scan.Bytes == 0
}

// quickCheck checks the pages of the database until the context ends. It uses a connection of its own, so that the page
// cache is freed afterwards.
func quickCheck(ctx context.Context, path string) error {
	conn, err := connect(path, binding.ReadOnly, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	conn.SetContext(ctx)
	return runCheck(ctx, conn, pragmaCheck)
}

// runCheck runs one of SQLite's checks and returns ErrCorrupt with its first finding.
func runCheck(ctx context.Context, conn *binding.Conn, pragma string) error {
	var verdict string
	if err := query.NewRow(ctx, source{conn}, pragma, nil).Scan(&verdict); err != nil {
		return preferReadError(conn, err)
	}
	if verdict == "ok" {
		return nil
	}
	return preferReadError(conn, fmt.Errorf("%w: %s", engine.ErrCorrupt, strings.Join(strings.Fields(verdict), " ")))
}

// preferReadError returns the failed read that caused an error, if there is one: a page that could not be read is not
// damaged.
func preferReadError(conn *binding.Conn, err error) error {
	if unread := conn.ReadError(); unread != nil {
		return fmt.Errorf("%w: %w", engine.ErrIO, unread)
	}
	return err
}

// checkInBackground checks a database that was not checked completely at the start. Damage is logged and makes the database
// unready.
func (e *Engine) checkInBackground(ctx context.Context, path string) {
	select {
	case <-time.After(checkDelay):
	case <-ctx.Done():
		return
	}
	err := quickCheck(ctx, path)
	if wordsDamaged(err) {
		if err = e.resetWords(ctx); err == nil {
			err = quickCheck(ctx, path)
		}
	}
	if err == nil || ctx.Err() != nil || e.disk.err() != nil {
		return
	}
	if errors.Is(err, engine.ErrCorrupt) {
		err = explain(path, err)
		e.writer.damaged.Store(&err)
	}
	e.log.Error("check of the database failed", "err", err)
}
