package modules

import (
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"kontor/store"
)

// gauges are the database's part of /metrics, until the modules are closed.
type gauges struct {
	set  *metrics.Set
	once sync.Once
}

func newGauges(db *store.DB) *gauges {
	g := &gauges{set: metrics.NewSet()}
	for name, value := range map[string]func(s store.Stats) float64{
		"kontor_store_queue_length":          func(s store.Stats) float64 { return float64(s.Queued) },
		"kontor_store_readers_waiting":       func(s store.Stats) float64 { return float64(s.Readers) },
		"kontor_store_last_progress_seconds": func(s store.Stats) float64 { return s.Working.Seconds() },
		"kontor_store_stalled":               func(s store.Stats) float64 { return number(s.Stalled) },
		"kontor_store_writes_total":          func(s store.Stats) float64 { return float64(s.Writes) },
		"kontor_store_commits_total":         func(s store.Stats) float64 { return float64(s.Commits) },
		"kontor_store_writes_refused_total":  func(s store.Stats) float64 { return float64(s.Refused) },
		"kontor_store_queries_revoked_total": func(s store.Stats) float64 { return float64(s.Revoked) },
	} {
		g.set.NewGauge(name, func() float64 { return value(db.Stats()) })
	}
	metrics.RegisterSet(g.set)
	return g
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (g *gauges) stop() {
	g.once.Do(func() { metrics.UnregisterSet(g.set, true) })
}
