package bus

import "time"

// NewClock returns a clock that has no sample.
func NewClock(t Time) *Clock { return newClock(t) }

// Sample passes a sample to a clock.
func (c *Clock) Sample(sent, received time.Duration, shown time.Time) {
	c.sample(sent, received, shown)
}

// OnStep has a clock report the steps of the server's clock.
func (c *Clock) OnStep(f func(by time.Duration)) { c.stepped = f }

// Split distributes pairs to notifications.
func Split(pairs [][2]string) [][][2]string { return split(pairs) }

// Decode decodes a payload and reports whether it is of this version of the program.
func Decode(payload string) (node string, pairs [][2]string, known bool) {
	m, known := decode(payload)
	return m.Node, m.Pairs, known
}

// Limits of a notification.
const (
	MaxPayload  = maxPayload
	MaxPayloads = maxPayloads
)
