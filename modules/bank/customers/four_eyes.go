package customers

import (
	"context"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// The values of the setting kyc.four_eyes: which decisions need a second person.
const (
	FourEyesOff      = "off"
	FourEyesEnhanced = "enhanced" // those that give the level enhanced
	FourEyesAlways   = "always"   // all that verify or reject a customer, or change a level
)

// needsSecondPerson reports whether a change of the verification needs a second person.
func (s *Service) needsSecondPerson(before, after Customer) bool {
	decided := after.KYCStatus == Verified && (before.KYCStatus != Verified || before.VerificationLevel != after.VerificationLevel)
	switch s.fourEyes {
	case FourEyesOff:
		return false
	case FourEyesAlways:
		return decided || after.KYCStatus == Rejected && before.KYCStatus != Rejected
	default:
		return decided && after.VerificationLevel == LevelEnhanced
	}
}

// propose prepares a decision that waits for a second person. The customer stays as it is, also its version: the decision must not
// show. Only submitted documents change it. propose returns apierr.InvalidInput for a decision without a reason, because the second
// person must know it.
func (s *Service) propose(ctx context.Context, q store.Querier, before, after Customer, why reasons, documents []sealedDocument) (preparedChange, error) {
	if types.Blank(why.reason) {
		return preparedChange{}, apierr.Invalid("reason", "customers.reason_required", nil)
	}
	change := preparedChange{before: before, after: before}
	if len(documents) > 0 {
		waiting := before
		if before.KYCStatus == NotStarted || before.KYCStatus == Rejected || before.KYCStatus == Expired {
			waiting.KYCStatus, waiting.VerificationLevel = Pending, LevelNone
		}
		change = s.prepareVerification(before, waiting, submitAction, reasons{})
	}
	change.proposal = &PendingDecision{
		ID: store.NewID(), State: DecisionPending, customerID: before.ID, KYCStatus: after.KYCStatus, VerificationLevel: after.VerificationLevel,
		verifiedAt: after.verifiedAt, Reason: why.reason, CustomerReason: why.forCustomer, ProposedAt: s.db.Now(), ProposedBy: access.From(ctx).UserID,
	}
	var err error
	change.proposal.excluded, change.reviewers, err = s.secondPersons(ctx, q, before, change.proposal.ProposedBy)
	return change, err
}

// maxNotified is the number of reviewers who are notified of a proposal.
const maxNotified = 100

// secondPersons returns the users who are excluded from the confirmation of a decision, with the reason, and the reviewers to notify.
func (s *Service) secondPersons(ctx context.Context, q store.Querier, c Customer, proposer string) (excluded map[string]exclusion, notify []string, err error) {
	k, err := s.concerned(ctx, q, c, proposer)
	if err != nil {
		return nil, nil, err
	}
	excluded = map[string]exclusion{proposer: isLinkedToTheUser}
	for id := range k.related {
		excluded[id] = isLinkedToTheUser
	}
	reviewers, err := selectReviewers(ctx, q, proposer)
	if err != nil {
		return nil, nil, err
	}
	for _, id := range reviewers {
		why, err := s.exclusionOf(ctx, q, k, id)
		switch {
		case err != nil:
			return nil, nil, err
		case why != "":
			excluded[id] = why
		case len(notify) < maxNotified:
			notify = append(notify, id)
		}
	}
	return excluded, notify, nil
}

// checkSecondPerson returns apierr.SecondPersonRequired when the caller does not count as another person. That is so for the
// proposer, for users who are or were the same person or related to them, and for users related to the customer. The customer gets
// apierr.SelfVerification. Both the evidence of the time of the proposal and that of now count.
func (s *Service) checkSecondPerson(ctx context.Context, q store.Querier, c Customer, d PendingDecision) error {
	if err := s.checkPresent(ctx, q, c, d.ProposedBy); err != nil {
		return err
	}
	stored, err := selectExclusion(ctx, q, d.ID, access.From(ctx).UserID)
	if err != nil {
		return err
	}
	return stored.err()
}
