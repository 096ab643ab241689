package notifications

import "time"

// Nudge wakes the queues, for tests whose clock jumps.
func (s *Service) Nudge() { s.nudge() }

// Pause is the pause after the n-th failed attempt.
func (s *Service) Pause(channel string, n int) time.Duration { return s.queues[channel].pause(n) }

// Connected lists who has a stream open.
func (s *Service) Connected() []string { return s.hub.Users() }
