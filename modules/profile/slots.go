package profile

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"

	"kontor/modules/sandbox"
)

// slots bounds how much is decoded at once: as many pictures as there are cores, shared among the callers, and together
// no more pixels than one picture of the largest size has. A decoder takes up to 16 bytes for a pixel, so that this is
// what bounds memory.
type slots struct {
	queue  *sandbox.Queue
	pixels int64 // in all
	free   *semaphore.Weighted
}

const (
	longestWait = 10 * time.Second // a picture of the largest size takes two seconds
	retryDraw   = 2 * time.Second
)

func newSlots(pixels int64) *slots {
	return &slots{queue: sandbox.NewQueue(runtime.GOMAXPROCS(0), longestWait), pixels: pixels, free: semaphore.NewWeighted(pixels)}
}

// enter waits for room to decode a picture of a caller. Call the function it returns when done. It returns
// apierr.Unavailable when too many wait, or for too long.
func (s *slots) enter(ctx context.Context, caller string, pixels int64) (leave func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	leaveQueue, err := s.queue.Enter(ctx, caller)
	if err != nil {
		return nil, unavailable(err)
	}
	taken := min(pixels, s.pixels)
	if err := s.free.Acquire(ctx, taken); err != nil {
		leaveQueue()
		return nil, unavailable(err)
	}
	return func() {
		s.free.Release(taken)
		leaveQueue()
	}, nil
}
