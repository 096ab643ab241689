package clock_test

import (
	"testing"
	"time"

	"kontor/store/clock"
)

type fixed time.Time

func (f fixed) Now() time.Time { return time.Time(f) }

func TestShifted_AddsItsOffset(t *testing.T) {
	start := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	c := &clock.Shifted{Below: fixed(start)}
	for _, offset := range []time.Duration{0, time.Hour, -time.Minute, 150 * 365 * 24 * time.Hour} {
		c.SetOffset(offset)
		if got := c.Now(); !got.Equal(start.Add(offset)) || c.Offset() != offset {
			t.Errorf("with an offset of %s it is %s, offset %s", offset, got, c.Offset())
		}
	}
	before := time.Now()
	if now := new(clock.Shifted).Now(); now.Before(before) {
		t.Errorf("without a clock below it is %s, before %s", now, before)
	}
}
