package app

import (
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"kontor/store"
)

// gauges are the metrics of the database in /metrics. They are registered until the modules are closed.
type gauges struct {
	set  *metrics.Set
	once sync.Once
}

func newGauges(db *store.DB) *gauges {
	g := &gauges{set: metrics.NewSet()}
	add := func(name string, value func(store.Stats) float64) {
		g.set.NewGauge("kontor_store_"+name, func() float64 { return value(db.Stats()) })
	}
	add("queue_length", func(s store.Stats) float64 { return float64(s.Queued) })
	add("readers_waiting", func(s store.Stats) float64 { return float64(s.Readers) })
	add("last_progress_seconds", func(s store.Stats) float64 { return s.Working.Seconds() })
	add("stalled", func(s store.Stats) float64 { return gaugeOf(s.Stalled) })
	add("writes_total", func(s store.Stats) float64 { return float64(s.Writes) })
	add("commits_total", func(s store.Stats) float64 { return float64(s.Commits) })
	add("writes_refused_total", func(s store.Stats) float64 { return float64(s.Refused) })
	add("queries_revoked_total", func(s store.Stats) float64 { return float64(s.Revoked) })
	add("log_bytes", func(s store.Stats) float64 { return float64(s.LogBytes) })
	add("log_limit_bytes", func(s store.Stats) float64 { return float64(s.LogLimit) })
	add("log_uncopied_pages", func(s store.Stats) float64 { return float64(s.LogUncopied) })
	add("log_over_limit", func(s store.Stats) float64 { return gaugeOf(s.LogOverLimit) })
	for name, of := range map[string]func(store.Stats) store.Timing{
		"syncs":       func(s store.Stats) store.Timing { return s.Sync },
		"checkpoints": func(s store.Stats) store.Timing { return s.Checkpoint },
	} {
		add(name+"_total", func(s store.Stats) float64 { return float64(of(s).Count) })
		add(name+"_seconds_total", func(s store.Stats) float64 { return of(s).Total.Seconds() })
		add(name+"_last_seconds", func(s store.Stats) float64 { return of(s).Last.Seconds() })
	}
	metrics.RegisterSet(g.set)
	return g
}

func gaugeOf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}

func (g *gauges) stop() {
	g.once.Do(func() { metrics.UnregisterSet(g.set, true) })
}
