package notifications

import (
	"context"
	"sync"

	"github.com/VictoriaMetrics/metrics"

	"kontor/server/sse"
	"kontor/store"
)

// gauges are the metrics of the module. They are registered from start to stop.
type gauges struct {
	set  *metrics.Set
	once sync.Once
}

func newGauges(s *Service) *gauges {
	g := &gauges{set: metrics.NewSet()}
	number := func(name string, value func() float64) { g.set.NewGauge(name, value) }
	stat := func(name string, value func(sse.Stats) uint64) {
		number(name, func() float64 { return float64(value(s.hub.Stats())) })
	}
	number("kontor_streams_open", func() float64 { return float64(s.hub.Stats().Open) })
	stat("kontor_stream_frames_total", func(c sse.Stats) uint64 { return c.Frames })
	stat("kontor_streams_refused_total", func(c sse.Stats) uint64 { return c.Refused })
	stat(`kontor_streams_ended_total{reason="left"}`, func(c sse.Stats) uint64 { return c.Left })
	stat(`kontor_streams_ended_total{reason="slow"}`, func(c sse.Stats) uint64 { return c.Slow })
	stat(`kontor_streams_ended_total{reason="revoked"}`, func(c sse.Stats) uint64 { return c.Revoked })
	for channel, q := range s.queues {
		label := `{channel="` + channel + `"}`
		number("kontor_queue_depth"+label, func() float64 { depth, _ := s.waiting(channel); return depth })
		number("kontor_queue_oldest_seconds"+label, func() float64 { _, age := s.waiting(channel); return age })
		number("kontor_queue_attempts_total"+label, func() float64 { return float64(q.attempts.Load()) })
		number("kontor_queue_failures_total"+label, func() float64 { return float64(q.failures.Load()) })
		number("kontor_queue_dead_total"+label, func() float64 { return float64(q.dead.Load()) })
		number("kontor_queue_dead_letters"+label, func() float64 { return s.deadLetters(channel) })
	}
	metrics.RegisterSet(g.set)
	return g
}

func (g *gauges) stop() {
	if g != nil {
		g.once.Do(func() { metrics.UnregisterSet(g.set, true) })
	}
}

// waiting returns how many deliveries of a channel wait, and the age of the oldest in seconds. It returns zeros if they
// cannot be read; /readyz reports that.
func (s *Service) waiting(channel string) (depth, age float64) {
	var n int64
	var oldest store.Time
	if err := s.db.QueryRow(context.Background(), countWaiting, channel).Scan(&n, &oldest); err != nil || n == 0 {
		return 0, 0
	}
	return float64(n), s.db.Now().Std().Sub(oldest.Std()).Seconds()
}

func (s *Service) deadLetters(channel string) float64 {
	var n int64
	if err := s.db.QueryRow(context.Background(), countDead, channel).Scan(&n); err != nil {
		return 0
	}
	return float64(n)
}
