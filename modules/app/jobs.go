package app

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// Job is work that nobody asks for. It must stand being cut off at any moment and being run again.
type Job struct {
	Name  string
	Every time.Duration
	Run   func(ctx context.Context) error
}

// Jobs lists the regular work of all modules.
func (m *Modules) Jobs() []Job {
	return []Job{
		{"auth.key_use", time.Minute, m.Auth.FlushKeyUse},
		{"audit.events", 2 * time.Second, m.Audit.WriteEvents},
		{"auth.purge", time.Hour, m.Auth.Purge},
		{"users.purge", time.Hour, m.Users.Purge},
		{"store.purge_replays", time.Hour, func(ctx context.Context) error {
			_, err := m.DB.PurgeIdempotency(ctx)
			return err
		}},
		{"rbac.sweep", 24 * time.Hour, func(ctx context.Context) error {
			_, err := m.RBAC.Sweep(ctx)
			return err
		}},
		{"customers.expiry", 24 * time.Hour, m.Customers.RunExpiry},
	}
}

// Work sets the queues and the regular jobs going: only who serves also sends. Stop the runner before the modules are
// closed.
func (m *Modules) Work(ctx context.Context) (*Runner, error) {
	if err := m.Notifications.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the queues: %w", err)
	}
	if err := m.Audit.StartExport(m.Settings.Audit.ExportFile, m.Settings.Audit.SyslogURL); err != nil {
		return nil, fmt.Errorf("start the export of the audit trail: %w", err)
	}
	return RunJobs(ctx, m.Jobs(), m.Log), nil
}

// Runner runs jobs until it is stopped.
type Runner struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// RunJobs starts the jobs, each on its own: first after a moment, so that a start is not slowed down, and then again and
// again. A daily job whose process is started anew every hour runs more often than daily; that does no harm.
func RunJobs(ctx context.Context, jobs []Job, log *slog.Logger) *Runner {
	ctx, cancel := context.WithCancel(ctx)
	r := &Runner{cancel: cancel}
	for _, job := range jobs {
		r.wait.Go(func() { repeat(ctx, job, log) })
	}
	return r
}

// Stop ends the jobs and waits for those that run.
func (r *Runner) Stop() {
	r.cancel()
	r.wait.Wait()
}

// firstRun is how long after the start a job runs for the first time.
const firstRun = 5 * time.Second

func repeat(ctx context.Context, job Job, log *slog.Logger) {
	timer := time.NewTimer(min(firstRun, job.Every))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := runOnce(ctx, job)
		outcome := "ok"
		if err != nil && ctx.Err() == nil {
			outcome = "failed"
			log.Error("job failed", "job", job.Name, "cause", err)
		}
		metrics.GetOrCreateCounter(fmt.Sprintf(`kontor_job_runs_total{job=%q,outcome=%q}`, job.Name, outcome)).Inc()
		timer.Reset(job.Every)
	}
}

// runOnce makes an error of a panic: a job that fails must not end the process.
func runOnce(ctx context.Context, job Job) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return job.Run(ctx)
}
