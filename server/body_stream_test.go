package server

import (
	"testing"
	"time"
)

func TestBodyStream_SlowSendersHaveADeadline(t *testing.T) {
	began := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		after    time.Duration
		received int
		want     time.Duration // until the deadline, from the beginning
	}{
		"at first":                        {0, 0, streamIdle},
		"no byte in half a minute":        {29 * time.Second, 1, streamGrace},
		"a fast sender":                   {time.Second, 10 << 20, time.Second + streamIdle},
		"a slow one, ahead of its time":   {time.Minute, 1 << 20, time.Minute + streamIdle},
		"a slow one, at the end of it":    {90 * time.Second, 1 << 20, streamGrace + 64*time.Second},
		"ten megabytes have ten minutes":  {11 * time.Minute, 10 << 20, streamGrace + 640*time.Second},
		"the time cannot be used up late": {time.Hour, 1, streamGrace},
	} {
		b := &bodyStream{began: began, received: c.received}
		if got := b.deadline(began.Add(c.after)).Sub(began).Truncate(time.Second); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
