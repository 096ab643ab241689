package app

import (
	"sync/atomic"

	"kontor/server/metrics"
)

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
