package store

import (
	"fmt"
	"sync/atomic"
	"time"
)

// stallAfter is how long one piece of work may take before the database counts as stalled. The longest that belongs to
// a healthy one, a checkpoint that the writer waits for, takes less than a second on a slow disk.
const stallAfter = 5 * time.Second

// progress measures how long the goroutines behind InTx have been at the piece of work at hand. It uses the monotonic
// clock: a clock that was set must neither hide a stall nor make one up.
type progress struct {
	start  time.Time
	writer busy // with a closure, a commit, a checkpoint, or handing a group to the syncer
	syncer busy // with a sync
	hooks  busy // with what one closure left to be done after its commit
}

// busy is when the work at hand began, in nanoseconds after the start; 0 while there is none.
type busy struct{ since atomic.Int64 }

func (p *progress) begin(b *busy) { b.since.Store(max(1, int64(time.Since(p.start)))) }

func (p *progress) end(b *busy) { b.since.Store(0) }

// age is how long the work at hand has taken.
func (p *progress) age(b *busy) time.Duration {
	since := b.since.Load()
	if since == 0 {
		return 0
	}
	return time.Since(p.start) - time.Duration(since)
}

// oldest is how long the slowest of the goroutines has been at its work, and what that is. A hung sync holds up the
// writer, too: the disk is named first.
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

// stalled returns ErrStalled when work has waited too long for the work at hand.
func (p *progress) stalled() error {
	age, what := p.oldest()
	if age <= stallAfter {
		return nil
	}
	return fmt.Errorf("%w: %s has taken %s so far", ErrStalled, what, age.Round(time.Second))
}
