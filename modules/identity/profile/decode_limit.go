package profile

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sync/semaphore"

	"kontor/modules/kit/sandbox"
)

// decodeLimit bounds how many pictures are decoded at the same time: as many as there are cores, shared fairly among callers,
// and with no more pixels in total than the largest picture. A decoder takes up to 16 bytes for a pixel, so this bounds memory.
type decodeLimit struct {
	queue  *sandbox.Queue
	pixels int64 // in all
	free   *semaphore.Weighted
}

const (
	maxWait   = 10 * time.Second // a picture of the largest size takes two seconds
	retryDraw = 2 * time.Second
)

func newDecodeLimit(pixels int64) *decodeLimit {
	return &decodeLimit{queue: sandbox.NewQueue(runtime.GOMAXPROCS(0), maxWait), pixels: pixels, free: semaphore.NewWeighted(pixels)}
}

// acquire waits until a picture of a caller may be decoded. Call release when done. It returns apierr.Unavailable if too many
// callers wait, or after maxWait.
func (l *decodeLimit) acquire(ctx context.Context, caller string, pixels int64) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	releaseQueue, err := l.queue.Acquire(ctx, caller)
	if err != nil {
		return nil, unavailable(err)
	}
	taken := min(pixels, l.pixels)
	if err := l.free.Acquire(ctx, taken); err != nil {
		releaseQueue()
		return nil, unavailable(err)
	}
	return func() {
		l.free.Release(taken)
		releaseQueue()
	}, nil
}
