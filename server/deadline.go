package server

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// requestTime is how long the service behind a row may take when Options do not say otherwise.
const requestTime = 10 * time.Second

// deadline is the context of a request: it ends at a time, when a running query is interrupted and a write that still
// waits in the queue is given up, and it names the caller to the database. It takes a timer only once somebody waits for
// its end, since a request that reads never does: context.WithDeadline would cost each of them one.
type deadline struct {
	at        time.Time // zero: never
	callerKey any       // Options.CallerKey
	caller    string    // a user, an API key or a network

	mu    sync.Mutex
	done  chan struct{}
	timer *time.Timer
	ended bool // the request has been answered
}

// Deadline gives the time at which the request is to be answered.
func (d *deadline) Deadline() (time.Time, bool) { return d.at, !d.at.IsZero() }

// Done is closed at the deadline or when the request has been answered.
func (d *deadline) Done() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done == nil {
		d.done = make(chan struct{})
		switch done := d.done; {
		case d.ended:
			close(done)
		case !d.at.IsZero():
			d.timer = time.AfterFunc(time.Until(d.at), func() { close(done) })
		}
	}
	return d.done
}

// Err reports why the request must end, or nil.
func (d *deadline) Err() error {
	if !d.at.IsZero() && !time.Now().Before(d.at) {
		return context.DeadlineExceeded
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return context.Canceled
	}
	return nil
}

// Value gives the caller under the key that the database asks for.
func (d *deadline) Value(key any) any {
	if key == d.callerKey {
		return d.caller
	}
	return nil
}

// restart sets another time. Nobody may be waiting for the end.
func (d *deadline) restart(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.at, d.timer, d.done = at, nil, nil
}

// end ends the context with its request.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	if d.done == nil {
		return
	}
	if d.timer == nil || d.timer.Stop() {
		close(d.done)
	}
}

// begin starts the time of a request.
func (s *Server) begin(r *call) {
	r.deadline.callerKey = s.CallerKey
	r.deadline.at = time.Now().Add(s.RequestTime)
	r.Context.Context = &r.deadline
}

// arrived starts the time of a request anew once all of it is there: a long upload takes its time. A row whose service
// bounds its own time has none.
func (s *Server) arrived(r *call) {
	if r.row.OwnTime {
		r.deadline.restart(time.Time{})
	} else if r.row.BodyLimit() > endpoint.DefaultMaxBody {
		r.deadline.restart(time.Now().Add(s.RequestTime))
	}
}

// late makes a fault of a request that has reached its deadline. It has no cause: a flood must not fill the log.
func late(err error) error {
	if errors.Is(err, context.DeadlineExceeded) && apierr.Of(err).Status == http.StatusInternalServerError {
		return apierr.DeadlineExceeded
	}
	return err
}
