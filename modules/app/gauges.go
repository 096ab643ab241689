package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"kontor/store"
)

// storeMetric is one metric of the database.
type storeMetric struct {
	description *prometheus.Desc
	kind        prometheus.ValueType
	value       func(store.Stats) float64
}

// storeMetrics collects the metrics of the database.
type storeMetrics struct {
	db      *store.DB
	metrics []storeMetric
}

func newStoreMetrics(db *store.DB) *storeMetrics {
	m := &storeMetrics{db: db}
	add := func(kind prometheus.ValueType, name, help string, value func(store.Stats) float64) {
		m.metrics = append(m.metrics, storeMetric{prometheus.NewDesc("kontor_store_"+name, help, nil, nil), kind, value})
	}
	gauge := func(name, help string, value func(store.Stats) float64) {
		add(prometheus.GaugeValue, name, help, value)
	}
	counter := func(name, help string, value func(store.Stats) float64) {
		add(prometheus.CounterValue, name, help, value)
	}
	gauge("queue_length", "Transactions that wait for the writer.", func(s store.Stats) float64 { return float64(s.Queued) })
	gauge("readers_waiting", "Queries that wait for a reader.", func(s store.Stats) float64 { return float64(s.Readers) })
	gauge("last_progress_seconds", "Time since the writer last made progress.", func(s store.Stats) float64 { return s.Working.Seconds() })
	gauge("stalled", "1 if a transaction or a sync to disk takes too long.", func(s store.Stats) float64 { return gaugeOf(s.Stalled) })
	counter("writes_total", "Committed transactions.", func(s store.Stats) float64 { return float64(s.Writes) })
	counter("commits_total", "Groups of transactions that were synced together.", func(s store.Stats) float64 { return float64(s.Commits) })
	counter("writes_refused_total", "Transactions rejected because too many waited.", func(s store.Stats) float64 { return float64(s.Refused) })
	counter("queries_revoked_total", "Queries ended because their caller used too much while others waited.", func(s store.Stats) float64 { return float64(s.Revoked) })
	gauge("log_bytes", "Size of the write-ahead log.", func(s store.Stats) float64 { return float64(s.LogBytes) })
	gauge("log_limit_bytes", "Size of the write-ahead log from which log_over_limit is 1.", func(s store.Stats) float64 { return float64(s.LogLimit) })
	gauge("log_uncopied_pages", "Pages of the write-ahead log that are not in the database file yet.", func(s store.Stats) float64 { return float64(s.LogUncopied) })
	gauge("log_over_limit", "1 if the write-ahead log is larger than its limit.", func(s store.Stats) float64 { return gaugeOf(s.LogOverLimit) })
	timing := func(name, what string, of func(store.Stats) store.Timing) {
		counter(name+"_total", what+".", func(s store.Stats) float64 { return float64(of(s).Count) })
		counter(name+"_seconds_total", what+": their total duration.", func(s store.Stats) float64 { return of(s).Total.Seconds() })
		gauge(name+"_last_seconds", what+": the duration of the last one.", func(s store.Stats) float64 { return of(s).Last.Seconds() })
	}
	timing("syncs", "Syncs of the write-ahead log to disk", func(s store.Stats) store.Timing { return s.Sync })
	timing("checkpoints", "Checkpoints that copied pages into the database file", func(s store.Stats) store.Timing { return s.Checkpoint })
	return m
}

func gaugeOf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

// Describe sends the descriptions of the metrics.
func (m *storeMetrics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, metric := range m.metrics {
		descriptions <- metric.description
	}
}

// Collect sends the values of one moment.
func (m *storeMetrics) Collect(values chan<- prometheus.Metric) {
	stats := m.db.Stats()
	for _, metric := range m.metrics {
		values <- prometheus.MustNewConstMetric(metric.description, metric.kind, metric.value(stats))
	}
}

// The outcomes of a job.
const (
	jobOK     = "ok"
	jobFailed = "failed"
)

// newJobRuns returns the counter of runs. The series of all jobs exist from the start, because alerts need their zero.
func newJobRuns(jobs []Job) *prometheus.CounterVec {
	runs := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "kontor_job_runs_total", Help: "Runs of regular jobs by outcome."},
		[]string{"job", "outcome"})
	for _, job := range jobs {
		runs.WithLabelValues(job.Name, jobOK)
		runs.WithLabelValues(job.Name, jobFailed)
	}
	return runs
}
