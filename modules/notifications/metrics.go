package notifications

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"kontor/server/sse"
	"kontor/store"
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("kontor_"+name, help, labels, nil)
}

var (
	streamsOpen         = describe("streams_open", "Open event streams.")
	streamFramesWritten = describe("stream_frames_total", "Frames written to event streams.")
	streamsRefused      = describe("streams_refused_total", "Event streams refused because their user had too many.")
	streamsEnded        = describe("streams_ended_total", "Ended event streams by reason.", "reason")

	queueDepth       = describe("queue_depth", "Deliveries that wait, by channel.", "channel")
	queueOldest      = describe("queue_oldest_seconds", "Age of the oldest delivery that waits, by channel.", "channel")
	queueAttempts    = describe("queue_attempts_total", "Attempts to deliver, by channel.", "channel")
	queueFailures    = describe("queue_failures_total", "Failed attempts to deliver, by channel.", "channel")
	queueDead        = describe("queue_dead_total", "Deliveries that became dead letters since the start, by channel.", "channel")
	queueDeadLetters = describe("queue_dead_letters", "Dead letters in the database, by channel.", "channel")
)

// collector collects the metrics of the module. The series of all channels exist, also of those without a gateway.
type collector struct{ *Service }

// Metrics returns the metrics of streams and queues.
func (s *Service) Metrics() prometheus.Collector { return collector{s} }

// Describe sends the descriptions of the metrics.
func (c collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{streamsOpen, streamFramesWritten, streamsRefused, streamsEnded, queueDepth, queueOldest, queueAttempts,
		queueFailures, queueDead, queueDeadLetters} {
		descriptions <- d
	}
}

// Collect sends the values of one moment.
func (c collector) Collect(values chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		values <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value uint64, labels ...string) {
		values <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	c.collectStreams(c.hub.Stats(), gauge, counter)
	for _, channel := range []string{Email, SMS} {
		var attempts, failures, dead uint64
		var depth, age float64
		if q := c.queues[channel]; q != nil { // without a gateway, messages stay in the outbox and do not wait
			attempts, failures, dead = q.attempts.Load(), q.failures.Load(), q.dead.Load()
			depth, age = c.waiting(channel)
		}
		gauge(queueDepth, depth, channel)
		gauge(queueOldest, age, channel)
		counter(queueAttempts, attempts, channel)
		counter(queueFailures, failures, channel)
		counter(queueDead, dead, channel)
		gauge(queueDeadLetters, c.deadLetters(channel), channel)
	}
}

func (c collector) collectStreams(stats sse.Stats, gauge func(*prometheus.Desc, float64, ...string), counter func(*prometheus.Desc, uint64, ...string)) {
	gauge(streamsOpen, float64(stats.Open))
	counter(streamFramesWritten, stats.Frames)
	counter(streamsRefused, stats.Refused)
	counter(streamsEnded, stats.Left, "left")
	counter(streamsEnded, stats.Slow, "slow")
	counter(streamsEnded, stats.Revoked, "revoked")
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
