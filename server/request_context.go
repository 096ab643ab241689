package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// requestTime is how long the service behind a row may take when Options do not say otherwise.
const requestTime = 10 * time.Second

// requestContext is the context of a request. It carries what is known about the request, names its principal to the
// database, and ends at the deadline or when the request is answered: then running queries are interrupted, and writes that
// still wait in the queue are cancelled.
//
// It starts a timer only if a goroutine waits for its end. Requests that read never do. context.WithDeadline would cost
// each request a timer.
type requestContext struct {
	info      *endpoint.Info
	at        time.Time // the deadline; zero: none
	callerKey any       // Options.CallerKey
	caller    string    // a user, an API key or a network

	responderKey any        // Options.ResponderKey
	responder    *responder // of a creating request

	mu    sync.Mutex
	done  chan struct{}
	timer *time.Timer
	ended bool // the request is answered
}

func (c *requestContext) start(info *endpoint.Info, at time.Time, callerKey any) {
	c.info, c.at, c.callerKey = info, at, callerKey
}

// answerBy makes the responder known to the transactions of the request.
func (c *requestContext) answerBy(r *responder, key any) { c.responder, c.responderKey = r, key }

// Deadline returns the time by which the request must be answered.
func (c *requestContext) Deadline() (time.Time, bool) { return c.at, !c.at.IsZero() }

// Done is closed at the deadline or when the request is answered.
func (c *requestContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		switch done := c.done; {
		case c.ended:
			close(done)
		case !c.at.IsZero():
			c.timer = time.AfterFunc(time.Until(c.at), func() { close(done) })
		}
	}
	return c.done
}

// Err returns why the request must end, or nil.
func (c *requestContext) Err() error {
	if !c.at.IsZero() && !time.Now().Before(c.at) {
		return context.DeadlineExceeded
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return context.Canceled
	}
	return nil
}

// Value returns the caller, what is known about the request, or for the database the principal and the responder.
func (c *requestContext) Value(key any) any {
	switch key.(type) {
	case access.ContextKey:
		return c.info.Caller
	case endpoint.InfoKey:
		return c.info
	}
	switch {
	case key == c.callerKey:
		return c.caller
	case key == c.responderKey && c.responder != nil:
		return c.responder
	}
	return nil
}

// restart sets another deadline. No goroutine may be waiting for the end.
func (c *requestContext) restart(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timer != nil {
		c.timer.Stop()
	}
	c.at, c.timer, c.done = at, nil, nil
}

// end ends the context with its request.
func (c *requestContext) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.done == nil {
		return
	}
	if c.timer == nil || c.timer.Stop() {
		close(c.done)
	}
}

// restartTime restarts the time of a request that may have a long body, once the body has arrived. A row whose service bounds
// its own time has no deadline.
func (s *Server) restartTime(r *call) error {
	if r.row.OwnTime {
		r.context.restart(time.Time{})
	} else if r.row.BodyLimit() > endpoint.DefaultMaxBody {
		r.context.restart(time.Now().Add(s.RequestTime))
	}
	return nil
}

// expired converts the error of a request that has reached its deadline. The result has no cause: under load it would fill
// the log.
func expired(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && apierr.Of(err).Status == http.StatusInternalServerError {
		return apierr.DeadlineExceeded
	}
	return err
}
