package modules

import (
	"github.com/VictoriaMetrics/metrics"

	"kontor/store"
)

// storeGauges is the database's part of /metrics. Unregister it when the database is closed.
func storeGauges(db *store.DB) *metrics.Set {
	set := metrics.NewSet()
	number := func(name string, value func(store.Stats) float64) {
		set.NewGauge(name, func() float64 { return value(db.Stats()) })
	}
	timing := func(name string, of func(store.Stats) store.Timing) {
		number(name+"_total", func(s store.Stats) float64 { return float64(of(s).Count) })
		number(name+"_seconds_total", func(s store.Stats) float64 { return of(s).Total.Seconds() })
		number(name+"_last_seconds", func(s store.Stats) float64 { return of(s).Last.Seconds() })
	}
	number("kontor_store_log_bytes", func(s store.Stats) float64 { return float64(s.LogBytes) })
	number("kontor_store_log_limit_bytes", func(s store.Stats) float64 { return float64(s.LogLimit) })
	number("kontor_store_log_uncopied_pages", func(s store.Stats) float64 { return float64(s.LogUncopied) })
	number("kontor_store_log_over_limit", func(s store.Stats) float64 {
		if s.LogOverLimit {
			return 1
		}
		return 0
	})
	timing("kontor_store_syncs", func(s store.Stats) store.Timing { return s.Sync })
	timing("kontor_store_checkpoints", func(s store.Stats) store.Timing { return s.Checkpoint })
	metrics.RegisterSet(set)
	return set
}
