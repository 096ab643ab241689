package sqlite

import (
	"fmt"
	"os"
	"time"

	"kontor/store/datadir"
	"kontor/store/internal/jobs"
)

// syncer makes commits durable beside the writer: while it syncs the log of one group, the writer runs the jobs of the
// next. No caller is answered before its write is synced.
type syncer struct {
	disk     *disk
	mark     *mark
	file     *os.File // the write-ahead log
	flush    func(*os.File) error
	answer   func(*job, error)
	counters *counters
	progress *jobs.Progress

	groups chan committed
	// idle holds an empty list for the next group while nothing is being synced.
	idle  chan []*job
	ended chan struct{}
}

// committed is a group whose commit is in the log.
type committed struct {
	jobs     []*job
	wrote    bool     // there is something to sync
	position position // after it
}

// openSyncer opens the log of a database. answer is called for each job of a group, in order.
func openSyncer(path string, disk *disk, mark *mark, counted *counters, progress *jobs.Progress, answer func(*job, error)) (*syncer, error) {
	file, err := os.OpenFile(path+logSuffix, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	s := &syncer{
		disk: disk, mark: mark, file: file, flush: datadir.SyncFile, answer: answer, counters: counted, progress: progress,
		groups: make(chan committed), idle: make(chan []*job, 1), ended: make(chan struct{}),
	}
	s.idle <- make([]*job, 0, enoughJobs)
	go s.loop()
	return s, nil
}

func (s *syncer) loop() {
	defer close(s.ended)
	for group := range s.groups {
		err := s.sync(group)
		for _, j := range group.jobs {
			if err != nil {
				j.Err = err
			}
			s.answer(j, j.Err)
		}
		clear(group.jobs)
		s.idle <- group.jobs[:0]
	}
}

// sync syncs the log and records the position in the mark. After a failure, here or in a checkpoint in the meantime, no
// write is acknowledged; see [disk].
func (s *syncer) sync(group committed) error {
	if err := s.disk.err(); err != nil || !group.wrote {
		return err
	}
	begun := time.Now()
	s.progress.Begin(&s.progress.Syncer)
	err := s.flush(s.file)
	s.progress.End(&s.progress.Syncer)
	if err != nil {
		return s.disk.fail(fmt.Errorf("sync %s: %w", s.file.Name(), datadir.Cause(err)))
	}
	s.counters.synced.add(time.Since(begun))
	if err := s.mark.write(group.position); err != nil && !isFull(err) {
		return s.disk.fail(err)
	}
	return s.disk.err()
}

// logBytes returns the size of the log.
func (s *syncer) logBytes() int64 {
	info, err := s.file.Stat()
	if err != nil {
		return 0 // it was closed
	}
	return info.Size()
}

// close waits until every group is answered.
func (s *syncer) close() error {
	close(s.groups)
	<-s.ended
	return s.file.Close()
}
