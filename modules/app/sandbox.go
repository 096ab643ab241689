package app

import (
	"context"
	"time"

	"kontor/modules/developer/playground"
	"kontor/store"
)

// Sandbox makes the modules a sandbox for developers, see docs/sandbox.md.
type Sandbox struct {
	Clock  *store.ShiftedClock // of the database
	Public bool                // other machines may call the endpoints of the sandbox
	// Restart resets the sandbox; nil: it cannot be reset. Rounds is how often it has begun.
	Restart playground.Restart
	Rounds  int
}

// InSandbox reports whether the modules are a sandbox.
func (m *Modules) InSandbox() bool { return m.Sandbox != nil }

// newPlayground returns the sandbox mode, or nil outside of a sandbox.
func (m *Modules) newPlayground() *playground.Service {
	if !m.InSandbox() {
		return nil
	}
	return playground.New(playground.Options{
		DB: m.DB, Log: m.Log, Clock: m.Sandbox.Clock, Gate: &m.jobGate, Jobs: m.playgroundJobs,
		Queues: []playground.Queue{m.Notifications, m.Webhooks}, Notices: m.Notifications, Restart: m.Sandbox.Restart,
	})
}

// playgroundJobs returns the regular jobs, and when those have something to do that depend on the hour.
func (m *Modules) playgroundJobs() (jobs []playground.Job) {
	appointments := map[string]func(ctx context.Context, after store.Time) (*store.Time, error){
		"rbac.terms":   m.RBAC.NextTerm,
		"tasks.remind": m.nextReminder,
	}
	for _, job := range m.Jobs() {
		run := func(ctx context.Context) error {
			err := runOnce(ctx, job)
			m.jobRuns.count(job.Name, err != nil && ctx.Err() == nil)
			return err
		}
		jobs = append(jobs, playground.Job{Name: job.Name, Every: job.Every, Run: run, Next: appointments[job.Name]})
	}
	return jobs
}

// nextReminder returns when tasks are next reminded of.
func (m *Modules) nextReminder(_ context.Context, after store.Time) (*store.Time, error) {
	const day = 24 * time.Hour
	at := store.Time(after.Std().Truncate(day).Add(time.Duration(m.Settings.Tasks.ReminderHour) * time.Hour).UnixMilli())
	if at <= after {
		at = at.Add(day)
	}
	return &at, nil
}
