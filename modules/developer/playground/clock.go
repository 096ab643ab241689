package playground

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	// maxYears is how far one request moves the clock, lastYear how far all do.
	maxYears, lastYear = 10, 2200
	// maxTime is how long one request works. It ends between two steps then, and says so.
	maxTime = 5 * time.Minute
)

// lastTime is the latest time of a sandbox.
var lastTime = store.Time(time.Date(lastYear, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())

// Move says how far the clock is moved.
type Move struct {
	Advance *string `json:"advance" example:"P400D" doc:"By a duration of ISO 8601, with whole numbers. Years, months and days are those of the calendar. Either this or to."`
	To      *string `json:"to" example:"2028-01-01T00:00:00Z" doc:"To a time (RFC 3339)."`

	by duration
	to store.Time
}

// Validate checks the form. Whether the time is ahead is decided when the clock is moved.
func (in *Move) Validate(v *apierr.Fields) {
	if (in.Advance == nil) == (in.To == nil) {
		v.Add("advance", "invalid.advance_or_to")
		return
	}
	if in.To != nil {
		at, err := time.Parse(time.RFC3339, *in.To)
		if err != nil {
			v.Add("to", "invalid.datetime")
			return
		}
		if in.to = store.Time(at.UnixMilli()); in.to > lastTime {
			v.Add("to", "invalid.advance_too_far", tooFar())
		}
		return
	}
	by, err := parseDuration(*in.Advance)
	switch {
	case err != nil:
		v.Add("advance", "invalid.duration")
	case by == duration{}:
		v.Add("advance", "invalid.duration_positive")
	case by.longer(maxYears):
		v.Add("advance", "invalid.advance_too_far", tooFar())
	}
	in.by = by
}

func tooFar() apierr.Args { return apierr.Args{"Years": maxYears, "Last": strconv.Itoa(lastYear)} }

// target returns where the clock is moved from a time.
func (in *Move) target(now store.Time) (store.Time, error) {
	to, field := in.to, "to"
	if in.Advance != nil {
		to, field = store.Time(in.by.after(now.Std()).UnixMilli()), "advance"
	}
	if to <= now {
		return 0, apierr.ClockBack.With(apierr.Args{"Now": now.String()}).Detail("field", field).Detail("now", now.String())
	}
	if to > lastTime || to > store.Time(now.Std().AddDate(maxYears, 0, 0).UnixMilli()) {
		return 0, apierr.Invalid(field, "invalid.advance_too_far", tooFar())
	}
	return to, nil
}

// Count is how often something happened.
type Count struct {
	Name  string `json:"name" example:"customers.kyc_expire"`
	Count int64  `json:"count"`
}

// JobCount is how often a job ran.
type JobCount struct {
	Name   string `json:"name" example:"customers.expiry"`
	Runs   int64  `json:"runs"`
	Failed int64  `json:"failed" doc:"The runs that failed; the log says why."`
}

// Moved is what happened while the clock was moved.
type Moved struct {
	Time
	From     store.Time `json:"from"`
	Complete bool       `json:"complete" doc:"False if the work took longer than five minutes: the clock stands at now, and the same to moves it further."`
	Jobs     []JobCount `json:"jobs" doc:"The jobs that ran, in their order."`
	Changes  []Count    `json:"changes" doc:"The entries that the audit trail got meanwhile, by their action. Requests of others count, too."`
	Notices  []Count    `json:"notices" doc:"The notices that were sent meanwhile, by their event."`
}

// Advance moves the clock. All jobs that would have run do run, in order, before it returns.
func (s *Service) Advance(ctx context.Context, in Move) (Moved, error) {
	if !s.moving.TryLock() {
		return Moved{}, apierr.ClockBusy
	}
	defer s.moving.Unlock()
	s.Gate.Lock() // the regular runs of jobs wait
	defer s.Gate.Unlock()
	now := s.DB.Now()
	to, err := in.target(now)
	if err != nil {
		return Moved{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	moved, err := s.advance(ctx, now, to)
	if err != nil {
		return Moved{}, err
	}
	s.Log.Info("the clock of the sandbox was moved", "from", now, "to", moved.Now, "complete", moved.Complete)
	return moved, nil
}

func (s *Service) advance(ctx context.Context, from, to store.Time) (Moved, error) {
	entries, err := s.lastEntry(ctx)
	if err != nil {
		return Moved{}, err
	}
	// A process that ends before the clock is there starts with it there: time does not run back.
	if err := s.DB.KeepAhead(ctx, s.Clock.Offset()+to.Std().Sub(from.Std())); err != nil {
		return Moved{}, fmt.Errorf("keep the time of the sandbox: %w", err)
	}
	run := &run{Service: s, to: to, grid: gridOf(to.Std().Sub(from.Std())), last: map[string]store.Time{}, counts: map[string]*JobCount{}}
	complete, err := run.steps(ctx)
	if err != nil {
		return Moved{}, err
	}
	ctx = context.WithoutCancel(ctx)
	if err := s.DB.KeepAhead(ctx, s.Clock.Offset()); err != nil {
		return Moved{}, fmt.Errorf("keep the time of the sandbox: %w", err)
	}
	moved := Moved{From: from, Complete: complete, Time: s.present(), Jobs: []JobCount{}, Notices: []Count{}}
	for _, job := range run.jobs {
		if n := run.counts[job.Name]; n != nil {
			moved.Jobs = append(moved.Jobs, *n)
		}
	}
	if moved.Changes, err = store.All(ctx, s.DB, scanCount, countEntries, entries); err != nil {
		return Moved{}, fmt.Errorf("count the changes: %w", err)
	}
	err = s.Notices.CountSince(ctx, from, func(event string, n int64) { moved.Notices = append(moved.Notices, Count{event, n}) })
	return moved, err
}

const (
	selectLastEntry = `SELECT COALESCE(MAX(seq), 0) FROM audit_trail`
	countEntries    = `SELECT action, COUNT(*) FROM audit_trail WHERE seq > $1 GROUP BY action ORDER BY action`
)

func (s *Service) lastEntry(ctx context.Context) (seq int64, err error) {
	if err = s.DB.QueryRow(ctx, selectLastEntry).Scan(&seq); err != nil {
		return 0, fmt.Errorf("read the audit trail: %w", err)
	}
	return seq, nil
}

func scanCount(row store.Scanner) (c Count, err error) {
	err = row.Scan(&c.Name, &c.Count)
	return c, err
}

func (s *Service) now(context.Context, endpoint.None) (Time, error) { return s.present(), nil }

func (s *Service) present() Time {
	return Time{Now: s.DB.Now(), AheadSeconds: int64(s.Clock.Offset() / time.Second)}
}
