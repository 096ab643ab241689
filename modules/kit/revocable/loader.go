package revocable

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
)

// Loader lets concurrent callers share a load of something that is remembered. So a flood of requests costs one load at a time.
type Loader struct {
	mu    sync.Mutex // held during a load
	began atomic.Uint64
	err   error // of the latest load
}

// Do returns after a load that began after the call, and returns its error. Only if the context of that load has ended, the caller
// loads for itself.
func (l *Loader) Do(ctx context.Context, load func(ctx context.Context) error) error {
	return l.after(ctx, l.began.Load(), load)
}

// after returns after a load that began after the given number of loads.
func (l *Loader) after(ctx context.Context, before uint64, load func(ctx context.Context) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.began.Load() > before && !interrupted(l.err) {
		return l.err
	}
	l.began.Add(1)
	l.err = context.Canceled // of a load that panics
	l.err = load(ctx)
	return l.err
}

func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
