package app

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"kontor/server/metrics"
)

// Scope says where a job runs when several nodes share the database.
type Scope int

const (
	// EveryNode is for jobs about what a node has in memory or uses itself.
	EveryNode Scope = iota
	// OneNode is for jobs about the database. The leader runs them. Two nodes may run one at the same time for a moment, while
	// the lead passes from one to the other.
	OneNode
)

// Job is work that runs regularly. It may be interrupted at any point and must be safe to run again.
type Job struct {
	Name  string
	Every time.Duration
	Scope Scope
	Run   func(ctx context.Context) error
}

// Jobs returns the jobs of all modules.
func (m *Modules) Jobs() []Job {
	return []Job{
		{"auth.key_use", time.Minute, EveryNode, m.Auth.FlushKeyUse},
		{"auth.session_use", 15 * time.Second, EveryNode, m.Auth.FlushSessionUse},
		{"auth.sessions", time.Minute, EveryNode, m.Auth.SweepSessions},
		{"cluster.settings", 5 * time.Second, EveryNode, m.warnOfSettings},
		{"audit.events", 2 * time.Second, EveryNode, m.Audit.WriteEvents},
		{"audit.values", 24 * time.Hour, OneNode, m.purgeChanges},
		{"auth.purge", time.Hour, OneNode, m.Auth.Purge},
		{"auth.signing_keys", time.Hour, OneNode, m.Auth.MaintainSigningKeys},
		{"auth.key_hashes", time.Hour, OneNode, m.Auth.ForgetOlderHashes},
		{"store.keys", time.Hour, OneNode, m.DB.ResumeRotation},
		{"users.purge", time.Hour, OneNode, m.Users.Purge},
		{"service_tokens.use", time.Minute, EveryNode, m.Services.FlushUse},
		{"service_tokens.expiry", time.Hour, OneNode, m.Services.WarnOfExpiry},
		{"service_tokens.hashes", time.Hour, OneNode, m.Services.ForgetOlderHashes},
		{"oidc.discover", time.Minute, EveryNode, m.OIDC.Discover},
		{"oidc.purge", time.Hour, OneNode, m.OIDC.Purge},
		{"webhooks.purge", time.Hour, OneNode, m.Webhooks.Purge},
		{"factors.purge", time.Hour, OneNode, m.Factors.Purge},
		{"store.purge_replays", time.Hour, OneNode, func(ctx context.Context) error {
			_, err := m.DB.PurgeIdempotency(ctx)
			return err
		}},
		{"rbac.terms", 500 * time.Millisecond, EveryNode, m.RBAC.ApplyTerms},
		{"rbac.warn", time.Minute, OneNode, m.RBAC.WarnOfTerms},
		{"users.warn", time.Minute, OneNode, m.Users.WarnOfTerms},
		{"rbac.uses", time.Minute, EveryNode, m.RBAC.FlushUses},
		{"rbac.old_uses", 24 * time.Hour, OneNode, m.RBAC.PurgeUses},
		{"rbac.counts", time.Minute, OneNode, m.RBAC.PurgeCounts},
		{"rbac.sweep", 24 * time.Hour, OneNode, func(ctx context.Context) error {
			_, err := m.RBAC.Sweep(ctx)
			return err
		}},
		{"notifications.seal", time.Minute, OneNode, m.Deliveries.SealTexts},
		{"notifications.nodes", time.Second, OneNode, m.Notifications.ReleaseNodes},
		{"customers.sort_keys", time.Hour, OneNode, m.Customers.FillKeys},
		{"customers.name_keys", time.Minute, OneNode, m.Customers.FillNameKeys},
		{"personas.sort_keys", time.Hour, OneNode, m.Personas.FillSortKeys},
		{"users.sort_keys", time.Hour, OneNode, m.Users.FillSortKeys},
		{"search.follow", 2 * time.Second, OneNode, m.Search.Follow},
		{"privacy.resume", time.Minute, OneNode, m.Privacy.Resume},
		{"store.clean_pages", 24 * time.Hour, OneNode, m.DB.CleanOldPages},
		{"files.purge", time.Minute, OneNode, m.Files.Purge},
		{"files.scan", 2 * time.Second, OneNode, m.Files.Scan},
		{"imports.run", time.Second, OneNode, m.Imports.Run},
		{"imports.purge", time.Hour, OneNode, m.Imports.Purge},
		{"invoices.purge", time.Hour, OneNode, m.Invoices.Purge},
		{"tasks.remind", 10 * time.Minute, OneNode, m.Tasks.Remind},
		{"screening.folder", 5 * time.Second, OneNode, m.Screening.Follow},
		{"screening.records", 2 * time.Second, OneNode, m.Screening.Rescreen},
		{"screening.sweep", 24 * time.Hour, OneNode, m.Screening.Sweep},
		{"customers.assignments", time.Hour, OneNode, m.Customers.EndAssignments},
		{"customers.expiry", 24 * time.Hour, OneNode, m.Customers.RunExpiry},
	}
}

// Work starts the queues and the jobs. Only a process that serves requests calls it. Stop the runner before
// [Modules.Close].
func (m *Modules) Work(ctx context.Context) (*Runner, error) {
	if err := m.Deliveries.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the queues: %w", err)
	}
	m.Notifications.Start()
	if err := m.Webhooks.Start(ctx); err != nil {
		return nil, fmt.Errorf("start the webhooks: %w", err)
	}
	if err := m.Audit.StartExport(m.Settings.Audit.ExportFile, m.Settings.Audit.SyslogURL); err != nil {
		return nil, fmt.Errorf("start the export of the audit trail: %w", err)
	}
	if err := m.startBackup(); err != nil {
		return nil, err
	}
	return RunJobs(ctx, m.gated(m.Jobs()), m.DB.Leads, m.jobRuns, m.Log), nil
}

// gated makes jobs wait while the sandbox runs them.
func (m *Modules) gated(jobs []Job) []Job {
	for i, job := range jobs {
		jobs[i].Run = func(ctx context.Context) error {
			m.jobGate.RLock()
			defer m.jobGate.RUnlock()
			return job.Run(ctx)
		}
	}
	return jobs
}

// Runner runs jobs until Stop is called.
type Runner struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

// RunJobs runs each job in its own goroutine: the first time shortly after the start, and then at its interval. A daily job
// runs more often than daily in a process that is restarted every hour, which does no harm. While leads returns false, jobs of
// OneNode wait. A node that becomes the leader runs those that are due for it within leaderPoll, also if the former leader has
// run them shortly before.
func RunJobs(ctx context.Context, jobs []Job, leads func() bool, runs *JobRuns, log *slog.Logger) *Runner {
	ctx, cancel := context.WithCancel(ctx)
	r := &Runner{cancel: cancel}
	for i, job := range jobs {
		may := leads
		if job.Scope == EveryNode {
			may = func() bool { return true }
		}
		r.wait.Go(func() { repeat(ctx, job, time.Duration(i)*stagger, may, runs, log) })
	}
	return r
}

// Stop cancels the jobs and waits until they have returned.
func (r *Runner) Stop() {
	r.cancel()
	r.wait.Wait()
}

// firstRun is the delay of the first run, so that jobs do not slow down the start.
const firstRun = 2 * time.Second

// stagger is the time between the first runs of two jobs. Queries that run at once would connect more readers of the database,
// which keep a megabyte each.
const stagger = 20 * time.Millisecond

// leaderPoll is the time between two looks at whether this node has become the leader.
const leaderPoll = time.Second

func repeat(ctx context.Context, job Job, later time.Duration, may func() bool, runs *JobRuns, log *slog.Logger) {
	timer := time.NewTimer(min(firstRun, job.Every) + later)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if !may() {
			timer.Reset(leaderPoll)
			continue
		}
		err := runOnce(ctx, job)
		failed := err != nil && ctx.Err() == nil
		if failed {
			log.Error("job failed", "job", job.Name, "cause", err)
		}
		runs.count(job.Name, failed)
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

// JobRuns counts the runs of regular jobs by outcome. The series of all jobs exist from the start, because alerts need their zero.
type JobRuns struct {
	names []string
	byJob map[string]*outcomes
}

type outcomes struct{ ok, failed atomic.Uint64 }

// NewJobRuns returns the counters of jobs.
func NewJobRuns(jobs []Job) *JobRuns {
	r := &JobRuns{byJob: map[string]*outcomes{}}
	for _, job := range jobs {
		r.names = append(r.names, job.Name)
		r.byJob[job.Name] = &outcomes{}
	}
	return r
}

// count counts a run.
func (r *JobRuns) count(job string, failed bool) {
	of := r.byJob[job]
	if failed {
		of.failed.Add(1)
	} else {
		of.ok.Add(1)
	}
}

// Add adds the series to a scrape.
func (r *JobRuns) Add(s *metrics.Scrape) {
	add := func(job, outcome string, n uint64) {
		s.Counter("kontor_job_runs_total", "Runs of regular jobs by outcome.", float64(n), "job", job, "outcome", outcome)
	}
	for _, name := range r.names {
		add(name, "ok", r.byJob[name].ok.Load())
		add(name, "failed", r.byJob[name].failed.Load())
	}
}
