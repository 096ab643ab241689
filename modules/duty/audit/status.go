package audit

import (
	"context"
	"errors"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
	"kontor/store/audittrail"
)

// Status is the result of verifying the trail so far.
type Status struct {
	Entries    int64      `json:"entries" example:"42" doc:"Number of entries in the trail."`
	VerifiedTo int64      `json:"verified_to" example:"42" doc:"Every entry up to this one is unchanged."`
	Complete   bool       `json:"complete" doc:"Whether the verification has reached the end of the trail and found it signed."`
	FirstBad   *FirstBad  `json:"first_bad" doc:"The first entry that was changed, removed or inserted; null for none."`
	AppendOnly bool       `json:"append_only" doc:"Whether the triggers that reject changes and deletions of entries are in place."`
	Since      store.Time `json:"since" doc:"When the verification began. It does not detect later changes of entries that it has passed."`
	CheckedAt  store.Time `json:"checked_at"`
}

// FirstBad is the first entry that was changed, removed or inserted.
type FirstBad struct {
	Seq     int64  `json:"seq" example:"7"`
	Reason  string `json:"reason" example:"hash" doc:"As the command kontor check reports it."`
	Message string `json:"message" example:"Entry 7 was changed after it was written." doc:"In the language of the request."`
}

// stepLength is the number of entries that one request verifies, which takes about a tenth of a second. A longer trail takes
// several requests. Each continues where the previous one stopped.
const stepLength = 10_000

// verification is the progress of verifying the trail.
type verification struct {
	began    store.Time
	position audittrail.Position
	bad      *audittrail.Break
}

type statusInput struct {
	Restart bool `query:"restart" doc:"Start again at the first entry."`
}

const countEntries = `SELECT COALESCE(MAX(seq), 0) FROM audit_trail`

// status verifies the next part of the trail and returns the result so far. It returns apierr.NoAccess.
func (s *Service) status(ctx context.Context, in statusInput) (Status, error) {
	if !access.From(ctx).May(access.Audit, access.Read) {
		return Status{}, apierr.NoAccess
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.db.Now()
	v := &s.verification
	if in.Restart || v.began == 0 {
		*v = verification{began: now}
	}
	complete := false
	if v.bad == nil {
		position, reached, err := s.db.VerifyAuditStep(ctx, v.position, stepLength)
		if err != nil && !errors.As(err, &v.bad) {
			return Status{}, err
		}
		v.position, complete = position, reached && err == nil
	}
	status := Status{VerifiedTo: v.position.Seq(), Complete: complete, Since: v.began, CheckedAt: now}
	if bad := v.bad; bad != nil {
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
