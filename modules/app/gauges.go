package app

import (
	"kontor/server/metrics"
	"kontor/store"
)

// addMetrics adds the metrics of the modules and of the database to a scrape.
func (m *Modules) addMetrics(s *metrics.Scrape) {
	addStoreMetrics(s, m.DB)
	addClusterMetrics(s, m.DB)
	m.jobRuns.Add(s)
	m.Notifications.AddMetrics(s)
	m.addBackupMetrics(s)
}

// addStoreMetrics adds the metrics of the database to a scrape.
func addStoreMetrics(scrape *metrics.Scrape, db *store.DB) {
	s := db.Stats()
	gauge := func(name, help string, value float64) { scrape.Gauge("kontor_store_"+name, help, value) }
	counter := func(name, help string, value uint64) { scrape.Counter("kontor_store_"+name, help, float64(value)) }
	gauge("queue_length", "Transactions that wait for the writer.", float64(s.Queued))
	gauge("readers_waiting", "Queries that wait for a reader.", float64(s.Readers))
	gauge("last_progress_seconds", "Time since the writer last made progress.", s.Working.Seconds())
	gauge("stalled", "1 if a transaction or a sync to disk takes too long.", gaugeOf(s.Stalled))
	counter("writes_total", "Committed transactions.", s.Writes)
	counter("commits_total", "Groups of transactions that were synced together.", s.Commits)
	counter("writes_refused_total", "Transactions rejected because too many waited.", s.Refused)
	counter("queries_revoked_total", "Queries ended because their caller used too much while others waited.", s.Revoked)
	gauge("log_bytes", "Size of the write-ahead log.", float64(s.LogBytes))
	gauge("log_limit_bytes", "Size of the write-ahead log from which log_over_limit is 1.", float64(s.LogLimit))
	gauge("log_uncopied_pages", "Pages of the write-ahead log that are not in the database file yet.", float64(s.LogUncopied))
	gauge("log_over_limit", "1 if the write-ahead log is larger than its limit.", gaugeOf(s.LogOverLimit))
	timing := func(name, what string, t store.Timing) {
		counter(name+"_total", what+".", uint64(t.Count)) //nolint:gosec // never negative
		scrape.Counter("kontor_store_"+name+"_seconds_total", what+": their total duration.", t.Total.Seconds())
		gauge(name+"_last_seconds", what+": the duration of the last one.", t.Last.Seconds())
	}
	timing("syncs", "Syncs of the write-ahead log to disk", s.Sync)
	timing("checkpoints", "Checkpoints that copied pages into the database file", s.Checkpoint)
}

func gaugeOf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
