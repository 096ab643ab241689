package profile

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"kontor/server/fault"
)

// slots bounds how much is decoded at once: as many pictures as there are cores, and together no more pixels than one
// picture of the largest size has. A decoder takes up to 16 bytes for a pixel, so that this is what bounds memory.
type slots struct {
	pixels  int64 // in all
	least   int64 // that a picture takes, however small it is
	free    *semaphore.Weighted
	waiting atomic.Int64
}

const (
	maxWaiting  = 16               // uploads that may wait; each holds its file in memory
	longestWait = 10 * time.Second // a picture of the largest size takes two seconds
	retryDraw   = 2 * time.Second
)

func newSlots(pixels int64) *slots {
	return &slots{pixels: pixels, least: max(1, pixels/int64(runtime.GOMAXPROCS(0))), free: semaphore.NewWeighted(pixels)}
}

// enter waits for room to decode a picture. Call the function it gives when done. It returns fault.Unavailable when too
// many wait, or for too long.
func (s *slots) enter(ctx context.Context, pixels int64) (leave func(), err error) {
	defer s.waiting.Add(-1)
	if s.waiting.Add(1) > maxWaiting {
		return nil, fault.Unavailable.RetryAfter(retryDraw)
	}
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	taken := min(max(pixels, s.least), s.pixels)
	if err := s.free.Acquire(ctx, taken); err != nil {
		e := fault.Unavailable.RetryAfter(retryDraw)
		e.Cause = err
		return nil, e
	}
	return func() { s.free.Release(taken) }, nil
}
