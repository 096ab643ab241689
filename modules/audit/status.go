package audit

import (
	"context"
	"errors"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Status tells how far the chain has been verified since the walk began.
type Status struct {
	Entries    int64      `json:"entries" example:"42"`                                                      // in the trail
	VerifiedTo int64      `json:"verified_to" example:"42"`                                                  // every entry up to this one is as it was written
	Complete   bool       `json:"complete" doc:"The walk came to the end of the trail and found it signed."` // the walk came to the end of the trail and found it signed
	FirstBad   *FirstBad  `json:"first_bad"`                                                                 // null while nothing is wrong
	AppendOnly bool       `json:"append_only" doc:"The triggers that keep entries from being changed or deleted are in place."`
	Since      store.Time `json:"since"` // when the walk began; what was changed behind it later is not seen
	CheckedAt  store.Time `json:"checked_at"`
}

// FirstBad is the first entry that was changed, removed or put in.
type FirstBad struct {
	Seq     int64  `json:"seq" example:"7"`
	Reason  string `json:"reason" example:"hash"`                                       // as the command that checks the database says it
	Message string `json:"message" example:"Entry 7 was changed after it was written."` // in the language of the request
}

// stepLength bounds what one request verifies: about a tenth of a second. A longer trail takes several requests; each
// goes on where the last one stopped.
const stepLength = 10_000

// walk is how far the trail has been verified.
type walk struct {
	began    store.Time
	position store.AuditPosition
	bad      *store.AuditBreak
}

type statusInput struct {
	Restart bool `query:"restart" doc:"Begin again at the first entry."` // begin again at the first entry
}

const countEntries = `SELECT COALESCE(MAX(seq), 0) FROM audit_entries`

// status takes the next step along the trail and tells what is known. It returns apierr.NoAccess.
func (s *Service) status(ctx context.Context, in statusInput) (Status, error) {
	if !access.From(ctx).May(access.Audit, access.Read) {
		return Status{}, apierr.NoAccess
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.db.Now()
	if in.Restart || s.walk.began == 0 {
		s.walk = walk{began: now}
	}
	ended := false
	if s.walk.bad == nil {
		position, reached, err := s.db.VerifyAuditStep(ctx, s.walk.position, stepLength)
		var broken *store.AuditBreak
		switch {
		case errors.As(err, &broken):
			s.walk.bad = broken
		case err != nil:
			return Status{}, err
		}
		s.walk.position, ended = position, reached && err == nil
	}
	status := Status{VerifiedTo: s.walk.position.Seq(), Complete: ended, Since: s.walk.began, CheckedAt: now}
	if bad := s.walk.bad; bad != nil {
		message := s.texts.Text(endpoint.Language(ctx), "audit.first_bad", map[string]any{"Seq": bad.Seq})
		status.FirstBad = &FirstBad{Seq: bad.Seq, Reason: bad.Reason, Message: message}
		status.VerifiedTo = min(status.VerifiedTo, bad.Seq-1)
	}
	missing, err := s.db.AuditUnguarded(ctx)
	if err != nil {
		return Status{}, err
	}
	status.AppendOnly = len(missing) == 0
	return status, s.db.QueryRow(ctx, countEntries).Scan(&status.Entries)
}
