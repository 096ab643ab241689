package app

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Job is work that runs regularly. It may be interrupted at any point and must be safe to run again.
type Job struct {
	Name  string
	Every time.Duration
	Run   func(ctx context.Context) error
}

// Jobs returns the jobs of all modules.
func (m *Modules) Jobs() []Job {
	return []Job{
		{"auth.key_use", time.Minute, m.Auth.FlushKeyUse},
		{"auth.session_use", 15 * time.Second, m.Auth.FlushSessionUse},
		{"auth.sessions", time.Minute, m.Auth.SweepSessions},
		{"audit.events", 2 * time.Second, m.Audit.WriteEvents},
		{"auth.purge", time.Hour, m.Auth.Purge},
		{"auth.signing_keys", time.Hour, m.Auth.MaintainSigningKeys},
		{"auth.key_hashes", time.Hour, m.Auth.ForgetOlderHashes},
		{"store.keys", time.Hour, m.DB.ResumeRotation},
		{"users.purge", time.Hour, m.Users.Purge},
		{"service_tokens.use", time.Minute, m.Services.FlushUse},
		{"service_tokens.expiry", time.Hour, m.Services.WarnOfExpiry},
		{"service_tokens.hashes", time.Hour, m.Services.ForgetOlderHashes},
		{"oidc.discover", time.Minute, m.OIDC.Discover},
		{"oidc.purge", time.Hour, m.OIDC.Purge},
		{"factors.purge", time.Hour, m.Factors.Purge},
		{"store.purge_replays", time.Hour, func(ctx context.Context) error {
			_, err := m.DB.PurgeIdempotency(ctx)
			return err
		}},
		{"rbac.sweep", 24 * time.Hour, func(ctx context.Context) error {
			_, err := m.RBAC.Sweep(ctx)
			return err
		}},
		{"privacy.resume", time.Minute, m.Privacy.Resume},
		{"store.clean_pages", 24 * time.Hour, m.DB.CleanOldPages},
		{"customers.expiry", 24 * time.Hour, m.Customers.RunExpiry},
	}
}

// Work starts the queues and the jobs. Only a process that serves requests calls it. Stop the runner before
// [Modules.Close].
func (m *Modules) Work(ctx context.Context) (*Runner, error) {
	if err := m.Notifications.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the queues: %w", err)
	}
	if err := m.Audit.StartExport(m.Settings.Audit.ExportFile, m.Settings.Audit.SyslogURL); err != nil {
		return nil, fmt.Errorf("start the export of the audit trail: %w", err)
	}
	return RunJobs(ctx, m.Jobs(), m.jobRuns, m.Log), nil
}

// Runner runs jobs until Stop is called.
type Runner struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// RunJobs runs each job in its own goroutine: the first time shortly after the start, and then at its interval. A daily job
// runs more often than daily in a process that is restarted every hour, which does no harm.
func RunJobs(ctx context.Context, jobs []Job, runs *prometheus.CounterVec, log *slog.Logger) *Runner {
	ctx, cancel := context.WithCancel(ctx)
	r := &Runner{cancel: cancel}
	for _, job := range jobs {
		r.wait.Go(func() { repeat(ctx, job, runs, log) })
	}
	return r
}

// Stop cancels the jobs and waits until they have returned.
func (r *Runner) Stop() {
	r.cancel()
	r.wait.Wait()
}

// firstRun is the delay of the first run, so that jobs do not slow down the start.
const firstRun = 5 * time.Second

func repeat(ctx context.Context, job Job, runs *prometheus.CounterVec, log *slog.Logger) {
	timer := time.NewTimer(min(firstRun, job.Every))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := runOnce(ctx, job)
		outcome := jobOK
		if err != nil && ctx.Err() == nil {
			outcome = jobFailed
			log.Error("job failed", "job", job.Name, "cause", err)
		}
		runs.WithLabelValues(job.Name, outcome).Inc()
		timer.Reset(job.Every)
	}
}

// runOnce runs a job and returns a panic as an error, because a failed job must not end the process.
func runOnce(ctx context.Context, job Job) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return job.Run(ctx)
}
