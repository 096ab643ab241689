package customers

import (
	"context"

	"kontor/modules/kit/hit"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// A customer whose name is like that of an entry of a sanctions list is not verified before reviewers have dismissed the hit. Only
// reviewers learn of hits: a customer cannot cause apierr.ScreeningOpen.

// screen compares a customer with sanctions lists before a reviewer verifies it: the comparison in the background may not have come so
// far. It returns the state of the identity that was compared. It returns apierr.Unavailable while the lists are being read.
func (s *Service) screen(ctx context.Context, id string) (state string, err error) {
	if !mayReview(access.From(ctx)) {
		return "", nil
	}
	return s.screening.Screen(ctx, id)
}

// rejectOpenHits returns apierr.ScreeningOpen, with the ids of the hits, for a change that verifies a customer with hits, or that proposes
// to do so.
func (s *Service) rejectOpenHits(ctx context.Context, tx *store.Tx, change preparedChange) error {
	if !change.verifies() {
		return nil
	}
	hits, err := s.screening.Blocking(ctx, tx, change.after.ID, change.screened)
	if err == nil && len(hits) > 0 {
		err = apierr.ScreeningOpen.Detail("hits", hits)
	}
	return err
}

// verifies reports whether the customer becomes verified, is verified again or gets another level, now or once it is confirmed.
func (change preparedChange) verifies() bool {
	before, after := change.before, change.after
	if d := change.proposal; d != nil && d.verifies() {
		return true
	}
	return after.KYCStatus == Verified &&
		(before.KYCStatus != Verified || before.VerificationLevel != after.VerificationLevel || !sameTime(before.verifiedAt, after.verifiedAt))
}

// hits returns the hits of a customer for reviewers; none for other callers.
func (s *Service) hits(ctx context.Context, customerID string) ([]hit.Hit, error) {
	if !mayReview(access.From(ctx)) {
		return nil, nil
	}
	return s.screening.OfCustomer(ctx, s.db, customerID)
}
