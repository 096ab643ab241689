// Package playground is the sandbox mode for developers: its clock, which they move, and resets. It exists in processes that were started with
// "kontor serve --sandbox" alone; the server hides its paths from other machines.
package playground

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Options are what the sandbox moves and what it runs.
type Options struct {
	DB    *store.DB
	Log   *slog.Logger
	Clock *store.ShiftedClock // of the database
	Jobs  func() []Job        // the regular jobs, in their order
	// Gate is held by regular runs of jobs for reading.
	Gate    *sync.RWMutex
	Queues  []Queue
	Restart Restart // nil: there is no reset
	Keep    Keep
	Notices interface {
		// CountSince calls use with each event of the notices since a time, and their number.
		CountSince(ctx context.Context, since store.Time, use func(event string, n int64)) error
	}
}

// Service is the sandbox mode.
type Service struct {
	Options
	moving sync.Mutex // held while the clock is moved
}

// New returns the sandbox.
func New(o Options) *Service { return &Service{Options: o} }

const clockPath = "/v1/sandbox/clock"

// Endpoints returns the rows of the module. They are for administrators: no other role gets a grant.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "sandbox.clock", Method: http.MethodGet, Path: clockPath, Summary: "Get the time of the sandbox",
			Handle: endpoint.JSON(http.StatusOK, s.now)},
		{Name: "sandbox.advance", Method: http.MethodPost, Path: clockPath, Summary: "Move the clock of the sandbox, and run the jobs that were due meanwhile",
			OwnTime: true, Faults: []apierr.Kind{apierr.ClockBack, apierr.ClockBusy},
			Handle: endpoint.JSON(http.StatusOK, s.Advance)},
	}
	if s.Restart != nil {
		rows = append(rows, s.resetRows()...)
	}
	for i := range rows {
		rows[i].Tag, rows[i].Limit, rows[i].Access = "Sandbox", ratelimit.Private, access.SignedIn
		rows[i].Faults = append(rows[i].Faults, apierr.NotFound) // from other machines
	}
	return rows
}

// Time is the time of the sandbox.
type Time struct {
	Now          store.Time `json:"now" doc:"The time that all decisions of the sandbox use."`
	AheadSeconds int64      `json:"ahead_seconds" doc:"By how many seconds the sandbox is ahead of the clock of the machine." example:"34560000"`
}
