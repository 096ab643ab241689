//go:build !linux

package sse

// sender is empty on this system.
type sender struct{}

func newSender() *sender { return nil }

// writeNow writes with a short timeout.
func (s *Stream) writeNow(b []byte, _ *sender) (int, error) { return s.write(b, fastWriteTimeout) }
