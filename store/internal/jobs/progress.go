package jobs

import (
	"fmt"
	"sync/atomic"
	"time"

	"kontor/store/engine"
)

// StallAfter is how long one piece of work may take before the database counts as stalled. The longest of a healthy
// database, a checkpoint that the writer waits for, takes less than a second on a slow disk.
const StallAfter = 5 * time.Second

// Progress measures how long the goroutines behind Write have worked on their present piece of work. It uses the monotonic
// clock, so that a change of the system's clock neither hides nor fakes a stall.
type Progress struct {
	Start  time.Time
	Writer Busy // with a job, a commit, a checkpoint, or waiting for the syncer
	Syncer Busy // with a sync
	Hooks  Busy // with the after-commit functions of one job
}

// Busy is the start of the current work, in nanoseconds after the start of the process; 0 if idle.
type Busy struct{ since atomic.Int64 }

// Begin records that a piece of work begins.
func (p *Progress) Begin(b *Busy) { b.since.Store(max(1, int64(time.Since(p.Start)))) }

// End records that there is no work.
func (p *Progress) End(b *Busy) { b.since.Store(0) }

// age returns how long the present piece of work has taken.
func (p *Progress) age(b *Busy) time.Duration {
	since := b.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(p.Start) - time.Duration(since)
}

// Oldest returns the age and the kind of the slowest piece of work. A sync that hangs is named before the writer, because it
// blocks the writer too.
func (p *Progress) Oldest() (age time.Duration, what string) {
	if age = p.age(&p.Syncer); age > StallAfter {
		return age, "a sync of the log to disk"
	}
	for _, w := range []struct {
		*Busy
		what string
	}{{&p.Hooks, "a function after a commit"}, {&p.Writer, "a transaction"}} {
		if a := p.age(w.Busy); a > age {
			age, what = a, w.what
		}
	}
	return age, what
}

// Stalled returns ErrStalled when a piece of work takes too long.
func (p *Progress) Stalled() error {
	age, what := p.Oldest()
	if age <= StallAfter {
		return nil
	}
	return fmt.Errorf("%w: %s has taken %s so far", engine.ErrStalled, what, age.Round(time.Second))
}
