package notifications

import (
	"context"

	"kontor/server/metrics"
	"kontor/store"
)

// AddMetrics adds the metrics of streams and queues to a scrape. The series of all channels exist, also of those without a gateway.
func (s *Service) AddMetrics(scrape *metrics.Scrape) {
	gauge := func(name, help string, value float64, labels ...string) {
		scrape.Gauge("kontor_"+name, help, value, labels...)
	}
	counter := func(name, help string, value uint64, labels ...string) {
		scrape.Counter("kontor_"+name, help, float64(value), labels...)
	}
	streams := s.hub.Stats()
	gauge("streams_open", "Open event streams.", float64(streams.Open))
	counter("stream_frames_total", "Frames written to event streams.", streams.Frames)
	counter("streams_refused_total", "Event streams refused because their user had too many.", streams.Refused)
	ended := func(reason string, n uint64) {
		counter("streams_ended_total", "Ended event streams by reason.", n, "reason", reason)
	}
	ended("left", streams.Left)
	ended("slow", streams.Slow)
	ended("revoked", streams.Revoked)
	for _, channel := range []string{Email, SMS} {
		var attempts, failures, dead uint64
		var depth, age float64
		if q := s.queues[channel]; q != nil { // without a gateway, messages stay in the outbox and do not wait
			attempts, failures, dead = q.Counts()
			depth, age = s.waiting(channel)
		}
		gauge("queue_depth", "Deliveries that wait, by channel.", depth, "channel", channel)
		gauge("queue_oldest_seconds", "Age of the oldest delivery that waits, by channel.", age, "channel", channel)
		counter("queue_attempts_total", "Attempts to deliver, by channel.", attempts, "channel", channel)
		counter("queue_failures_total", "Failed attempts to deliver, by channel.", failures, "channel", channel)
		counter("queue_dead_total", "Deliveries that became dead letters since the start, by channel.", dead, "channel", channel)
		gauge("queue_dead_letters", "Dead letters in the database, by channel.", s.deadLetters(channel), "channel", channel)
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
