package deliveries

import "time"

// Pause returns the pause after the n-th failed attempt.
func (s *Service) Pause(n int) time.Duration {
	pause, _ := s.pause(n)
	return pause
}

// ParallelSends is how many deliveries of a channel are sent at the same time.
const ParallelSends = parallelSends

// Statements returns the statements that run often.
func Statements() map[string]string {
	return map[string]string{"due": selectDue, "waiting": countWaiting, "dead": countDead}
}
