package customers

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// DecisionInput names a decision that waits for a second person.
type DecisionInput struct {
	ID         string `path:"id"`
	DecisionID string `path:"decision_id"`
}

// RejectDecisionInput is the refusal of a decision by a second person.
type RejectDecisionInput struct {
	ID         string `path:"id"`
	DecisionID string `path:"decision_id"`
	Reason     string `json:"reason" maxLength:"1000" required:"true"`
}

// Validate requires a reason.
func (in *RejectDecisionInput) Validate(v *apierr.Fields) {
	if in.Reason = checkReason(v, "reason", in.Reason); types.Blank(in.Reason) {
		v.Add("reason", "customers.reason_required")
	}
}

// Confirm makes a pending decision effective, by another person than its proposer. A verification whose documents have changed or
// expired meanwhile becomes void. Confirm returns apierr.CustomerNotFound, apierr.NoAccess, apierr.DecisionNotFound,
// apierr.DecisionNotPending, apierr.SecondPersonRequired, apierr.SelfVerification and apierr.ScreeningOpen.
func (s *Service) Confirm(ctx context.Context, in DecisionInput) (Decision, error) {
	screened, err := s.screen(ctx, in.ID)
	if err != nil {
		return Decision{}, err
	}
	return s.closeDecision(ctx, in, func(ctx context.Context, q store.Querier, before Customer, d PendingDecision) (preparedChange, error) {
		if err := s.checkSecondPerson(ctx, q, before, d); err != nil {
			return preparedChange{}, err
		}
		today := types.DateOf(s.db.Now().Std())
		holds, err := holdsEvidence(ctx, q, d, today)
		if err != nil {
			return preparedChange{}, err
		}
		if !holds {
			return s.prepareClosing(ctx, before, d, DecisionVoid, ""), nil
		}
		after := before
		after.KYCStatus, after.VerificationLevel = d.KYCStatus, d.VerificationLevel
		if d.verifiedAt != nil {
			after.verifiedAt = d.verifiedAt
		}
		if err := after.checkMembers(); err != nil { // something was removed since the proposal
			return preparedChange{}, err
		}
		change := s.prepareVerification(before, after, "customers.kyc_confirm", reasons{forCustomer: d.CustomerReason, decisionID: &d.ID})
		change.closing, change.screened = s.closing(ctx, d, DecisionConfirmed, ""), screened
		return change, nil
	})
}

// RejectDecision closes a pending decision without effect, by another person than its proposer. It returns the errors of Confirm.
func (s *Service) RejectDecision(ctx context.Context, in RejectDecisionInput) (Decision, error) {
	return s.closeDecision(ctx, DecisionInput{in.ID, in.DecisionID},
		func(ctx context.Context, q store.Querier, before Customer, d PendingDecision) (preparedChange, error) {
			if err := s.checkSecondPerson(ctx, q, before, d); err != nil {
				return preparedChange{}, err
			}
			return s.prepareClosing(ctx, before, d, DecisionRejected, in.Reason), nil
		})
}

// Withdraw takes a pending decision back, by its proposer. It returns the errors of Confirm; apierr.NoAccess for other callers.
func (s *Service) Withdraw(ctx context.Context, in DecisionInput) (Decision, error) {
	return s.closeDecision(ctx, in, func(ctx context.Context, _ store.Querier, before Customer, d PendingDecision) (preparedChange, error) {
		if d.ProposedBy != access.From(ctx).UserID {
			return preparedChange{}, apierr.NoAccess
		}
		return s.prepareClosing(ctx, before, d, DecisionWithdrawn, ""), nil
	})
}

// prepareClosing prepares the end of a decision that leaves the customer as it is, also its version: it never showed.
func (s *Service) prepareClosing(ctx context.Context, before Customer, d PendingDecision, state DecisionState, reason string) preparedChange {
	return preparedChange{before: before, after: before, closing: s.closing(ctx, d, state, reason)}
}

func (s *Service) closing(ctx context.Context, d PendingDecision, state DecisionState, reason string) *PendingDecision {
	now := s.db.Now()
	d.State, d.ClosedAt, d.ClosedBy, d.ClosingReason = state, &now, records.Actor(ctx), reason
	return &d
}

// closeDecision closes a pending decision as prepare says.
func (s *Service) closeDecision(ctx context.Context, in DecisionInput,
	prepare func(ctx context.Context, q store.Querier, before Customer, d PendingDecision) (preparedChange, error),
) (Decision, error) {
	change, err := records.UpdatePrepared(ctx, s.db, table, in.ID, access.Update,
		func(ctx context.Context, q store.Querier, before Customer) (preparedChange, error) {
			if !mayReview(access.From(ctx)) {
				return preparedChange{}, apierr.NoAccess
			}
			d, err := selectDecision(ctx, q, in.ID, in.DecisionID)
			if err != nil {
				return preparedChange{}, err
			}
			if d.State != DecisionPending {
				return preparedChange{}, apierr.DecisionNotPending.Detail("state", d.State)
			}
			return prepare(ctx, q, before, d)
		}, s.write)
	if err == nil && change.closing.State == DecisionVoid {
		err = apierr.DecisionNotPending.Detail("state", DecisionVoid)
	}
	return Decision{Customer: change.after, PendingDecision: nil}, err
}
