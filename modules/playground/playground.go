// Package playground is the sandbox mode for developers: its clock, which they move. It exists in processes that were started with
// "kontor serve --sandbox" alone; the server hides its paths from other machines.
package playground

import (
	"context"
	"net/http"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Service is the sandbox mode.
type Service struct {
	db    *store.DB
	clock *store.ShiftedClock
}

// New returns the sandbox of a database that uses the clock.
func New(db *store.DB, clock *store.ShiftedClock) *Service { return &Service{db: db, clock: clock} }

const clockPath = "/v1/sandbox/clock"

// Endpoints returns the rows of the module. They are for administrators: no other role gets a grant.
func (s *Service) Endpoints() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "sandbox.clock", Method: http.MethodGet, Path: clockPath, Summary: "Get the time of the sandbox",
			Handle: endpoint.JSON(http.StatusOK, s.now)},
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

func (s *Service) now(context.Context, endpoint.None) (Time, error) { return s.present(), nil }

func (s *Service) present() Time {
	return Time{Now: s.db.Now(), AheadSeconds: int64(s.clock.Offset().Seconds())}
}
