// Package sqlite implements the engine contract on an embedded SQLite database, with the pure-Go SQLite of
// modernc.org/sqlite.
//
// Reads use a pool of read-only connections. All writes use one connection, on which one goroutine runs the jobs of all
// callers and commits them in groups. The syncer syncs the log of each group and answers its callers. The checkpointer
// copies the log into the database file.
//
// All files of a database are accessed through a file layer of our own (package binding), which reports failed writes and
// syncs and verifies the checksums of pages. A mark beside the database records how far the log was acknowledged.
//
// Limits: one process uses a data directory, and a job blocks all other writes while it runs.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/internal/jobs"
	"kontor/store/internal/readers"
	"kontor/store/sqlite/internal/binding"
)

// Engine is an open SQLite database. It implements engine.Engine.
type Engine struct {
	config     engine.Config
	dir        *datadir.Directory
	clock      clock.Clock
	log        *slog.Logger
	guard      engine.Guard
	appendOnly []string
	report     engine.Report
	self       engine.Node
	engine.Topics

	pool     *readers.Pool[*reader]
	rollback func(*reader) error
	writer   *writer
	versions engine.Versions
	touches  touches
	watches  watches
	plans    countPlans
	disk     *disk
	mark     *mark

	unwatch        func() // ends the watch of the disk
	removeListener func() // ends the reports of damaged pages
	stopBackground context.CancelFunc
	background     sync.WaitGroup
	closing        sync.Once
}

// Version returns a number that grows with each commit to one of the tables. It does not fail.
func (e *Engine) Version(_ context.Context, tables ...string) (uint64, error) {
	return e.versions.Version(tables...), nil
}

// start starts the goroutines that serve a database. found is its position. saved says that the database holds its lineage.
func (e *Engine) start(conn *binding.Conn, found position, lineage Lineage, saved bool) error {
	path := e.dir.File(datadir.Database)
	e.touches.committed.Store(found.commits)
	conn.OnRowChange(func(r *binding.RowChange) {
		e.touches.note(r)
		e.watches.note(r)
	})
	w := &writer{
		log: e.log, clock: e.clock, conn: conn, disk: e.disk, guard: e.guard, versions: &e.versions, touches: &e.touches, watches: &e.watches,
		position: found, lineage: lineage, lineageSaved: saved, progress: jobs.Progress{Start: time.Now()},
		queue: jobs.NewQueue[*job](), ended: make(chan struct{}),
	}
	e.rollback = func(r *reader) error { return runKept(r.conn, rollback) }
	pool, err := e.openPool(path, w.rejectNestedRead)
	if err != nil {
		return fmt.Errorf("open %s for reading: %w", path, err)
	}
	if e.removeListener, err = binding.OnDamage(path, pageDamaged(&w.counters, e.log)); err != nil {
		pool.Close()
		return err
	}
	w.checkpoints, err = newCheckpointer(path, e.log, e.disk, e.mark, e.config.LogLimit, &w.counters)
	if err != nil {
		pool.Close()
		return fmt.Errorf("open %s for checkpoints: %w", path, err)
	}
	w.syncer, err = openSyncer(path, e.disk, e.mark, &w.counters, &w.progress, w.answer)
	if err != nil {
		w.checkpoints.close()
		pool.Close()
		return fmt.Errorf("open the log of %s: %w", path, err)
	}
	w.hooks = jobs.NewHooks(e.log, &w.progress)
	e.pool, e.writer = pool, w
	go w.goroutine.Loop(w.serve, w.abandonGroup, w.log)
	return nil
}

// pageDamaged returns a function that makes the database unready. A damaged page is never used, but more
// pages may be damaged.
func pageDamaged(c *counters, log *slog.Logger) func(*binding.PageError) {
	return func(page *binding.PageError) {
		err := fmt.Errorf("%w: %w; restore a backup", engine.ErrCorrupt, page)
		if c.damaged.CompareAndSwap(nil, &err) {
			log.Error("the database is damaged", "err", page)
		}
	}
}

// Close answers all accepted jobs, ends the background work and closes the files.
func (e *Engine) Close() error {
	var err error
	e.closing.Do(func() {
		e.stopBackground()
		e.background.Wait()
		e.writer.close()
		err = e.writer.syncer.close()
		e.writer.hooks.Close()
		e.writer.checkpoints.close()
		e.pool.Close()
		err = errors.Join(err, e.closeFiles())
		e.removeListener()
	})
	return err
}

// closeFiles closes the last connection, which copies the log into the database and deletes it, and the mark. After a
// failure of the disk it changes no file.
func (e *Engine) closeFiles() error {
	defer e.unwatch()
	conn := e.writer.conn
	if e.disk.err() == nil {
		e.recordCleanEnd(conn)
	}
	if e.disk.err() != nil {
		conn.KeepLog()
	}
	err := conn.Close()
	if failure := e.disk.err(); failure != nil {
		return errors.Join(failure, e.mark.file.Close())
	}
	if markErr := e.mark.finish(); markErr != nil && !isFull(markErr) {
		err = errors.Join(err, e.disk.fail(markErr))
	}
	return err
}
