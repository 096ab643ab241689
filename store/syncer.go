package store

import (
	"context"
	"fmt"
	"os"
	"time"
)

// syncer makes commits durable beside the writer: while the log of one group is on its way to the disk,
// the writer runs the closures of the next. Nobody is answered before the sync that covers him.
type syncer struct {
	disk     *disk
	mark     *mark
	file     *os.File // the write-ahead log
	flush    func(*os.File) error
	answer   func(*job, error)
	counters *counters

	groups chan committed
	// free holds an empty list for the next group while nothing is being synced.
	free  chan []*job
	ended chan struct{}
}

// committed is a group whose commit is in the log.
type committed struct {
	jobs     []*job
	wrote    bool     // there is something to sync
	position position // after it
}

// newSyncer opens the log of the database at path. answer is called for each job of a group, in order.
func newSyncer(path string, db *DB, counted *counters, answer func(*job, error)) (*syncer, error) {
	file, err := os.OpenFile(path+logSuffix, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s := &syncer{
		disk: db.disk, mark: db.mark, file: file, flush: syncFile, answer: answer, counters: counted,
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

// sync waits for the disk, and notes in the mark what it has. After a failure, here or in a checkpoint meanwhile, nobody
// is told that a write succeeded: see [disk].
func (s *syncer) sync(group committed) error {
	if err := s.disk.err(); err != nil || !group.wrote {
		return err
	}
	begun := time.Now()
	if err := s.flush(s.file); err != nil {
		return s.disk.fail(fmt.Errorf("sync %s: %w", s.file.Name(), cause(err)))
	}
	s.counters.synced.add(time.Since(begun))
	if err := s.mark.write(group.position); err != nil && !isFull(err) {
		return s.disk.fail(err)
	}
	return s.disk.err()
}

// size is the size of the log.
func (s *syncer) size() int64 {
	info, err := s.file.Stat()
	if err != nil {
		return 0 // it was closed
	}
	return info.Size()
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
