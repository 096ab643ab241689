package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// counters are what the store counts of itself.
type counters struct {
	closures, commits, refused, checkpoints atomic.Uint64

	failing atomic.Pointer[error] // of the storage; nil after a commit that succeeded
	damaged atomic.Pointer[error] // found by the check in the background; stays

	synced, checkpointed timing
}

// timing is how often something was done, and how long it took.
type timing struct{ count, total, last atomic.Int64 }

func (t *timing) add(d time.Duration) {
	t.count.Add(1)
	t.total.Add(int64(d))
	t.last.Store(int64(d))
}

// Timing is how often something was done, and how long it took.
type Timing struct {
	Count       int64
	Total, Last time.Duration
}

func (t *timing) read() Timing {
	return Timing{Count: t.count.Load(), Total: time.Duration(t.total.Load()), Last: time.Duration(t.last.Load())}
}

// Stats are counts since the database was opened.
type Stats struct {
	Writes      uint64 // closures of InTx that were committed
	Commits     uint64 // commits that wrote, each of them one sync of the log
	Refused     uint64 // calls of InTx refused because too many waited
	Checkpoints uint64
	Queued      int // closures that wait now

	LogBytes     int64 // size of the write-ahead log
	LogUncopied  int64 // pages of it that are not in the database file yet
	LogLimit     int64 // from which an alarm is raised
	LogOverLimit bool
	Sync         Timing // of the log, for a group
	Checkpoint   Timing // those that copied something
}

// Stats gives the counts of the moment.
func (db *DB) Stats() Stats {
	c := &db.writer.counters
	return Stats{
		Writes:      c.closures.Load(),
		Commits:     c.commits.Load(),
		Refused:     c.refused.Load(),
		Checkpoints: c.checkpoints.Load(),
		Queued:      len(db.writer.queue),

		LogBytes:     db.writer.syncer.size(),
		LogUncopied:  db.writer.checkpoints.uncopied(),
		LogLimit:     db.logLimit,
		LogOverLimit: db.writer.checkpoints.over.Load(),
		Sync:         c.synced.read(),
		Checkpoint:   c.checkpointed.read(),
	}
}

// Ready tells whether the database can read and write. After a write that the storage refused it
// tries one of its own, so that it notices when there is room again.
func (db *DB) Ready(ctx context.Context) error {
	for _, stays := range []*atomic.Pointer[error]{&db.writer.counters.damaged, &db.disk.lost} {
		if err := stays.Load(); err != nil {
			return *err
		}
	}
	var one int
	if err := db.QueryRow(ctx, "SELECT 1").Scan(&one); err != nil {
		return err
	}
	if db.writer.counters.failing.Load() == nil {
		return nil
	}
	err := db.probe(ctx)
	if errors.Is(err, ErrBusy) {
		return nil // others write
	}
	return err
}

// CheckLog returns an error while the write-ahead log is larger than its limit. The database can be used all the same.
func (db *DB) CheckLog(context.Context) error {
	if s := db.Stats(); s.LogOverLimit {
		return fmt.Errorf("the write-ahead log has %d bytes and cannot begin anew, its limit is %d", s.LogBytes, s.LogLimit)
	}
	return nil
}

// probeBytes is the room that there must be after a write failed: some hundred ordinary writes, so that
// readiness does not come and go with each small one that still fits.
const probeBytes = 256 << 10

// probe writes that much and removes it again.
func (db *DB) probe(ctx context.Context) error {
	for _, value := range []string{strings.Repeat(" ", probeBytes), ""} {
		err := db.InTx(ctx, func(tx *Tx) error {
			_, err := tx.Exec(ctx, upsertMeta, metaWriteProbe, value)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func appendMissing[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}
