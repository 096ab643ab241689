package server

import (
	"runtime"
	"sync"
	"time"

	"kontor/server/apierr"
)

// exportLimit bounds the tables that a node writes at the same time: one for each caller, and one for each core, at least two.
type exportLimit struct {
	mu      sync.Mutex
	callers map[string]bool
	most    int
}

func newExportLimit() *exportLimit {
	return &exportLimit{callers: map[string]bool{}, most: max(2, runtime.GOMAXPROCS(0))}
}

// acquire returns apierr.TooManyAtOnce without a free place. release may be called more than once.
func (l *exportLimit) acquire(caller string) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.callers[caller] || len(l.callers) == l.most {
		return nil, apierr.TooManyAtOnce.RetryAfter(time.Second)
	}
	l.callers[caller] = true
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.callers, caller)
	}), nil
}
