package store

import (
	"context"
	"fmt"
	"log/slog"
	"os"
)

// syncer makes commits durable beside the writer: while the log of one group is on its way to the disk,
// the writer runs the closures of the next. Nobody is answered before the sync that covers him.
type syncer struct {
	log      *slog.Logger
	file     *os.File // the write-ahead log
	flush    func(*os.File) error
	answer   func(*job, error)
	counters *counters
	progress *progress

	groups chan committed
	// free holds an empty list for the next group while nothing is being synced.
	free  chan []*job
	ended chan struct{}
}

// committed is a group whose commit is in the log.
type committed struct {
	jobs  []*job
	wrote bool // there is something to sync
}

// newSyncer opens the log of the database at path. answer is called for each job of a group, in order.
func newSyncer(path string, log *slog.Logger, counted *counters, progress *progress, answer func(*job, error)) (*syncer, error) {
	file, err := os.OpenFile(path+"-wal", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s := &syncer{
		log: log, file: file, flush: syncFile, answer: answer, counters: counted, progress: progress,
		groups: make(chan committed), free: make(chan []*job, 1), ended: make(chan struct{}),
	}
	s.free <- make([]*job, 0, groupEnough)
	go s.loop()
	return s, nil
}

func (s *syncer) loop() {
	defer close(s.ended)
	for group := range s.groups {
		err := s.sync(group)
		for _, j := range group.jobs {
			if err != nil {
				j.err = err
			} else if j.err == nil {
				j.tx.claim.settle(j.tx.answer)
			}
			s.answer(j, j.err)
		}
		clear(group.jobs)
		s.free <- group.jobs[:0]
	}
}

// sync waits for the disk. After a failure nobody knows which pages of the log it has, and a second try would
// report success without them: nothing is written any more until a restart has read the log again.
func (s *syncer) sync(group committed) error {
	if lost := s.counters.lost.Load(); lost != nil {
		return *lost
	}
	if !group.wrote {
		return nil
	}
	s.progress.begin(&s.progress.syncer)
	err := s.flush(s.file)
	s.progress.end(&s.progress.syncer)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%w: log could not be synced, restart Kontor: %w", ErrReadOnly, err)
	s.counters.lost.Store(&err)
	s.log.Error("a sync to disk failed; nothing is written until a restart", "err", err)
	return err
}

// synced waits until what can be read now is on the disk: readers see a commit a moment before.
func (db *DB) synced(ctx context.Context) error {
	return db.InTx(ctx, func(*Tx) error { return nil })
}

// close waits until every group is answered.
func (s *syncer) close() error {
	close(s.groups)
	<-s.ended
	return s.file.Close()
}
