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

// propose prepares a decision that waits for a second person: the customer keeps its state, and gets a new version. It returns
// apierr.InvalidInput for a decision without a reason, because the second person must know it.
func (s *Service) propose(ctx context.Context, q store.Querier, before, after Customer, reason string, documents []sealedDocument) (preparedChange, error) {
	if types.Blank(reason) {
		return preparedChange{}, apierr.Invalid("reason", "customers.reason_required", nil)
	}
	waiting := before
	if len(documents) > 0 && (before.KYCStatus == NotStarted || before.KYCStatus == Rejected || before.KYCStatus == Expired) {
		waiting.KYCStatus, waiting.VerificationLevel = Pending, LevelNone
	}
	change := s.prepareVerification(before, waiting, "customers.kyc_propose", "")
	change.documents = documents
	change.proposal = &PendingDecision{
		ID: store.NewID(), State: DecisionPending, customerID: before.ID, KYCStatus: after.KYCStatus, VerificationLevel: after.VerificationLevel,
		verifiedAt: after.verifiedAt, Reason: reason, ProposedAt: s.db.Now(), ProposedBy: access.From(ctx).UserID,
	}
	var err error
	change.reviewers, err = s.secondPersons(ctx, q, change.proposal.ProposedBy)
	return change, err
}

// secondPersons returns the reviewers who may confirm a decision of a reviewer, as far as that does not depend on the customer.
func (s *Service) secondPersons(ctx context.Context, q store.Querier, proposer string) ([]string, error) {
	reviewers, err := selectReviewers(ctx, q, proposer)
	if err != nil {
		return nil, err
	}
	related, err := s.identities.RelatedUsers(ctx, q, proposer)
	if err != nil {
		return nil, err
	}
	others := reviewers[:0]
	for _, id := range reviewers {
		if !related[id] {
			others = append(others, id)
		}
	}
	return others, nil
}

// checkSecondPerson returns apierr.SecondPersonRequired when the caller does not count as another person. That is so for the
// proposer, and for users whose personas are linked to those of the proposer or are the same person. It is also so for users
// with a persona that is linked to the customer's identity. The customer gets apierr.SelfVerification.
func (s *Service) checkSecondPerson(ctx context.Context, q store.Querier, c Customer, proposer string) error {
	caller := access.From(ctx).UserID
	if caller == proposer {
		return apierr.SecondPersonRequired
	}
	if err := s.rejectSelfReview(ctx, q, c); err != nil {
		return err
	}
	related, err := s.identities.RelatedUsers(ctx, q, proposer)
	if err != nil {
		return err
	}
	if related[caller] {
		return apierr.SecondPersonRequired
	}
	linked, err := s.identities.LinkedIdentities(ctx, q, caller)
	if err != nil {
		return err
	}
	matches, err := s.matchesAny(ctx, q, c, linked)
	if err == nil && matches {
		err = apierr.SecondPersonRequired
	}
	return err
}
