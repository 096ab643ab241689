package sqlite

import (
	"fmt"
	"sync/atomic"
	"time"

	"kontor/store/engine"
)

// stallAfter is how long one piece of work may take before the database counts as stalled. The longest of a healthy
// database, a checkpoint that the writer waits for, takes less than a second on a slow disk.
const stallAfter = 5 * time.Second

// progress measures how long the goroutines behind Write have worked on their present piece of work. It uses the monotonic
// clock, so that a change of the system's clock neither hides nor fakes a stall.
type progress struct {
	start  time.Time
	writer busy // with a job, a commit, a checkpoint, or waiting for the syncer
	syncer busy // with a sync
	hooks  busy // with the after-commit functions of one job
}

// busy is the start of the current work, in nanoseconds after the start of the process; 0 if idle.
type busy struct{ since atomic.Int64 }

func (p *progress) begin(b *busy) { b.since.Store(max(1, int64(time.Since(p.start)))) }

func (p *progress) end(b *busy) { b.since.Store(0) }

// age returns how long the present piece of work has taken.
func (p *progress) age(b *busy) time.Duration {
	since := b.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(p.start) - time.Duration(since)
}

// oldest returns the age and the kind of the slowest piece of work. A sync that hangs is named before the writer, because it
// blocks the writer too.
func (p *progress) oldest() (age time.Duration, what string) {
	if age = p.age(&p.syncer); age > stallAfter {
		return age, "a sync of the log to disk"
	}
	for _, w := range []struct {
		*busy
		what string
	}{{&p.hooks, "a function after a commit"}, {&p.writer, "a transaction"}} {
		if a := p.age(w.busy); a > age {
			age, what = a, w.what
		}
	}
	return age, what
}

// stalled returns ErrStalled when a piece of work takes too long.
func (p *progress) stalled() error {
	age, what := p.oldest()
	if age <= stallAfter {
		return nil
	}
	return fmt.Errorf("%w: %s has taken %s so far", engine.ErrStalled, what, age.Round(time.Second))
}
