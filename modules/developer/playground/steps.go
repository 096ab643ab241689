package playground

import (
	"context"
	"time"

	"kontor/store"
)

// Job is work that runs regularly.
type Job struct {
	Name  string
	Every time.Duration
	Run   func(ctx context.Context) error
	// Next returns when the job has something to do after a time; nil: no time is known. A job with it runs at these times only.
	Next func(ctx context.Context, after store.Time) (*store.Time, error)
}

// Queue sends what is due, in its own goroutines.
type Queue interface {
	// NextAttempt returns when the next attempt follows after a time; nil: none is planned.
	NextAttempt(ctx context.Context, after store.Time) (*store.Time, error)
	// Settle waits until what is due was tried.
	Settle(ctx context.Context) error
}

// run moves the clock to a time, step by step: to the times at which jobs and queues have something to do, and to those of a grid,
// at which all other jobs run whose interval is over.
type run struct {
	*Service
	jobs   []Job
	to     store.Time
	grid   time.Duration
	last   map[string]store.Time // when a job ran last
	counts map[string]*JobCount
	writes uint64 // commits of the database when the queues were last settled
}

// The grid is finer for a shorter way, because a day of minutes is as much work as a year of days. At an end of a day in UTC there is always a step.
func gridOf(way time.Duration) time.Duration {
	const day = 24 * time.Hour
	switch {
	case way <= 2*day:
		return time.Hour
	case way <= 31*day:
		return 6 * time.Hour
	default:
		return day
	}
}

// steps moves the clock. It reports false if it has ended early, because the time of the request is over.
func (r *run) steps(ctx context.Context) (complete bool, err error) {
	r.jobs = r.Jobs()
	for now := r.DB.Now(); now < r.to; now = r.DB.Now() {
		next, due, err := r.next(ctx, now)
		if ctx.Err() != nil {
			return false, nil //nolint:nilerr // the caller continues
		}
		if err != nil {
			return false, err
		}
		r.Clock.SetOffset(r.Clock.Offset() + max(0, next.Std().Sub(r.DB.Now().Std())))
		for _, job := range r.jobs {
			if next == r.to || due[job.Name] || job.Next == nil && r.onGrid(next) && next-r.last[job.Name] >= store.Time(job.Every.Milliseconds()) {
				r.runJob(ctx, job)
			}
		}
		if err := r.settle(ctx, due[queues]); err != nil && ctx.Err() == nil {
			return false, err
		}
	}
	return ctx.Err() == nil, nil
}

// queues is the key of the queues among the names of jobs that are due.
const queues = ""

// next returns the time of the next step, and the names of those that have something to do then.
func (r *run) next(ctx context.Context, now store.Time) (next store.Time, due map[string]bool, err error) {
	grid := store.Time(r.grid.Milliseconds())
	next, due = min((now/grid+1)*grid, r.to), map[string]bool{}
	note := func(name string, at *store.Time, err error) error {
		if err != nil || at == nil || *at <= now || *at > next {
			return err
		}
		if *at < next {
			next = *at
			clear(due)
		}
		due[name] = true
		return nil
	}
	for _, job := range r.jobs {
		if job.Next == nil {
			continue
		}
		at, err := job.Next(ctx, now)
		if err := note(job.Name, at, err); err != nil {
			return 0, nil, err
		}
	}
	for _, queue := range r.Queues {
		at, err := queue.NextAttempt(ctx, now)
		if err := note(queues, at, err); err != nil {
			return 0, nil, err
		}
	}
	return next, due, nil
}

func (r *run) onGrid(at store.Time) bool { return at%store.Time(r.grid.Milliseconds()) == 0 }

// runJob runs a job and counts it. The next run repeats a failed one.
func (r *run) runJob(ctx context.Context, job Job) {
	count := r.counts[job.Name]
	if count == nil {
		count = &JobCount{Name: job.Name}
		r.counts[job.Name] = count
	}
	r.last[job.Name] = r.DB.Now()
	err := job.Run(ctx)
	count.Runs++
	if err != nil && ctx.Err() == nil {
		count.Failed++
		r.Log.Error("job failed", "job", job.Name, "cause", err)
	}
}

// settle waits for the queues if something is due or was written since the last step.
func (r *run) settle(ctx context.Context, due bool) error {
	writes := r.DB.Stats().Commits
	if !due && writes == r.writes {
		return nil
	}
	for _, queue := range r.Queues {
		if err := queue.Settle(ctx); err != nil {
			return err
		}
	}
	r.writes = r.DB.Stats().Commits
	return nil
}
