package screening

import (
	"context"
	"net/http"

	"kontor/modules/kit/hit"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// DecideInput is a decision about a hit.
type DecideInput struct {
	ID       string `path:"id"`
	Decision string `json:"decision" enum:"dismissed,confirmed,open" required:"true" doc:"open takes back a decision that waits for a second person, or a dismissal."`
	Reason   string `json:"reason" maxLength:"1000" required:"true" doc:"For reviewers only."`
}

// Validate requires a decision and a reason.
func (in *DecideInput) Validate(v *apierr.Fields) {
	validate.OneOf(v, "decision", in.Decision, string(hit.Dismissed), string(hit.Confirmed), string(hit.Open))
	if in.Reason = validate.Text(v, "reason", in.Reason, maxReason); types.Blank(in.Reason) {
		v.Add("reason", "customers.reason_required")
	}
}

const (
	maxReason = 1000
	// fourEyesAlways is the value of the setting kyc.four_eyes with which a dismissal needs a second person, too.
	fourEyesAlways = "always"
)

// Decide dismisses or confirms a hit, or proposes that to a second person. A second person decides the same, or takes the proposal back.
// It returns apierr.ScreeningHitNotFound, apierr.NoAccess, apierr.PreconditionFailed, apierr.ScreeningHitNotOpen for a decision that the
// status does not allow, apierr.ScreeningDecisionWaits for another decision than the pending one, and apierr.SecondPersonRequired.
func (s *Service) Decide(ctx context.Context, in DecideInput) (endpoint.Result, error) {
	result := endpoint.Result{}
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		before, err := s.visible(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, before.ETag()); err != nil {
			return err
		}
		after, action, err := s.decided(ctx, tx, before, in)
		if err != nil {
			return err
		}
		if err := writeDecision(ctx, tx, before, after, action, in.Reason); err != nil {
			return err
		}
		after, err = scanHit(tx.QueryRow(ctx, selectHit, in.ID))
		result = endpoint.Result{Body: after.Hit}
		if after.Status == hit.Pending {
			result.Status = http.StatusAccepted
		}
		return err
	})
	return result, err
}

// writeDecision stores a decision. A dismissal covers the comparison with the present identity if it was there when the dismissal was decided
// or proposed. Otherwise the hit is open again at once: the proposer has not seen it.
func writeDecision(ctx context.Context, tx *store.Tx, before, after storedHit, action, reason string) error {
	l, err := after.laterOne()
	if err == nil && l != nil && action == hitProposed {
		l.Proposed = true
		after.later, err = encode(l)
	}
	dismissed := action == hitDecided && after.Status == hit.Dismissed
	switch {
	case err != nil:
		return err
	case l == nil || !dismissed:
		return writeHit(ctx, tx, &before, after, action, reason)
	}
	unseen := after.ProposedAt != nil && !l.Proposed && l.Score > 0
	if !unseen && l.Score > 0 {
		if err := after.adopt(l); err != nil {
			return err
		}
	}
	after.later = ""
	if err := writeHit(ctx, tx, &before, after, action, reason); err != nil || !unseen {
		return err
	}
	if before, err = scanHit(tx.QueryRow(ctx, selectHit, after.ID)); err != nil {
		return err
	}
	after = before
	after.reopen()
	if err := after.adopt(l); err != nil {
		return err
	}
	return writeHit(ctx, tx, &before, after, hitReopened, "")
}

// decided returns a hit after a decision of the caller, and what has happened to it.
func (s *Service) decided(ctx context.Context, q store.Querier, h storedHit, in DecideInput) (storedHit, string, error) {
	caller, now := access.From(ctx).UserID, q.Now()
	switch {
	case h.Status == hit.Pending && in.Decision == string(hit.Open):
		h.takeBack()
		return h, hitWithdrawn, nil
	case h.Status == hit.Pending && in.Decision != h.Decision:
		return h, "", apierr.ScreeningDecisionWaits.Detail("decision", h.Decision)
	case h.Status == hit.Pending:
		h.Status, h.settled, h.DecidedAt, h.DecidedBy = hit.Status(in.Decision), hit.Status(in.Decision), &now, &caller
		return h, hitDecided, s.Reviews.CheckSecondPerson(ctx, q, h.Hit, *h.ProposedBy)
	case h.Status == hit.Dismissed && in.Decision == string(hit.Open):
		h.reopen()
		return h, hitReopened, nil
	case h.Status == hit.Closed || in.Decision == string(h.Status) || in.Decision == string(hit.Open):
		return h, "", apierr.ScreeningHitNotOpen.Detail("status", h.Status)
	}
	needsSecond := in.Decision == string(hit.Confirmed) || h.Status == hit.Confirmed || s.FourEyes == fourEyesAlways
	h.Decision, h.Reason = in.Decision, in.Reason
	if needsSecond {
		h.settled, h.Status = h.Status, hit.Pending
		h.ProposedAt, h.ProposedBy, h.DecidedAt, h.DecidedBy = &now, &caller, nil, nil
		return h, hitProposed, nil
	}
	h.Status, h.settled = hit.Status(in.Decision), hit.Status(in.Decision)
	h.DecidedAt, h.DecidedBy, h.ProposedAt, h.ProposedBy = &now, &caller, nil, nil
	return h, hitDecided, nil
}

// takeBack ends a pending decision without effect. The history keeps it, and what was decided before.
func (h *storedHit) takeBack() {
	h.Status = h.settled
	h.clearDecision()
	if h.Status == hit.Confirmed || h.Status == hit.Dismissed {
		h.Decision = string(h.Status)
	}
}

// reopen makes a hit open again, without a decision.
func (h *storedHit) reopen() {
	h.Status, h.settled = hit.Open, hit.Open
	h.clearDecision()
}

func (h *storedHit) clearDecision() {
	h.Decision, h.Reason, h.ProposedAt, h.ProposedBy, h.DecidedAt, h.DecidedBy = "", "", nil, nil, nil, nil
}
