package server

import (
	"context"
	"runtime"
	"sync"
	"time"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// transfers implements [endpoint.Transfers].
type transfers struct {
	server  *Server
	exports *exportLimit
}

func newTransfers(s *Server) *transfers { return &transfers{s, newExportLimit()} }

// BeginExport takes a place.
func (t *transfers) BeginExport(request *endpoint.Info) (release func(), err error) {
	return t.exports.acquire(principal(request), request.Caller.Staff())
}

// Caller returns the caller as of now. The holder of an API key has no session.
func (t *transfers) Caller(ctx context.Context, caller *access.Caller) (*access.Caller, error) {
	s := t.server
	if s.Memory != nil && !s.Memory.Remembers() {
		if err := s.Memory.Renew(ctx); err != nil {
			return nil, apierr.AuthUnavailable.Wrap(err)
		}
	}
	if caller.UserID != "" {
		found, err := s.Auth.Session(ctx, caller)
		if err != nil {
			return nil, err
		}
		caller = found
	}
	if s.Policy != nil {
		caller = caller.WithPolicy(s.Policy.Load())
	}
	return caller, nil
}

// Principal names the caller to the database.
func (t *transfers) Principal(ctx context.Context, request *endpoint.Info) context.Context {
	if t.server.CallerKey == nil {
		return ctx
	}
	return context.WithValue(ctx, t.server.CallerKey, principal(request))
}

// exportLimit bounds the exports and tables that a node writes at the same time: one for each caller, and half of all for callers
// who are not staff. So customers cannot keep staff from exporting.
type exportLimit struct {
	mu      sync.Mutex
	callers map[string]bool // whether they are staff
	others  int             // callers who are not staff
	most    int
}

func newExportLimit() *exportLimit {
	return &exportLimit{callers: map[string]bool{}, most: max(4, 2*runtime.GOMAXPROCS(0))}
}

// acquire returns apierr.TooManyAtOnce without a free place. release may be called more than once.
func (l *exportLimit) acquire(caller string, staff bool) (release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, running := l.callers[caller]
	if running || len(l.callers) == l.most || !staff && l.others == l.most/2 {
		return nil, apierr.TooManyAtOnce.RetryAfter(time.Second)
	}
	l.callers[caller] = staff
	l.count(staff, 1)
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.callers, caller)
		l.count(staff, -1)
	}), nil
}

func (l *exportLimit) count(staff bool, n int) {
	if !staff {
		l.others += n
	}
}
