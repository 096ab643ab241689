package customers

import (
	"context"
	"fmt"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/store"
)

// A case that no reviewer may work on would be invisible to all of them. Administrators are notified of it at once, with the reason: they give another
// person the right to review.

// The reasons for an escalation.
const (
	noReviewer     = "no_reviewer"
	noSecondPerson = "no_second_person"
)

const escalateStatement = `UPDATE kyc_cases SET escalation = $2, escalated_at = $3 WHERE customer_id = $1`

// escalate marks a case and notifies the administrators. An administrator who is the customer learns of it only if there is no other, and
// not which case it is.
func (s *Service) escalate(ctx context.Context, tx *store.Tx, c Customer, reason string) error {
	if _, err := tx.Exec(ctx, escalateStatement, c.ID, reason, tx.Now()); err != nil {
		return fmt.Errorf("escalate the case of %s: %w", c.ID, err)
	}
	table.Audit(ctx, tx, "customers.kyc_escalate", c.ID, nil, nil)
	administrators, err := s.users.Administrators(ctx, tx)
	if err != nil {
		return err
	}
	others := make([]string, 0, len(administrators))
	for _, id := range administrators {
		self, err := s.isCustomer(ctx, tx, c, id)
		if err != nil {
			return err
		}
		if !self {
			others = append(others, id)
		}
	}
	e := event.Event{Kind: event.KYCCaseEscalated, CustomerID: c.ID, Type: access.Customers, RecordID: c.ID, Recipients: others}
	if len(others) == 0 {
		e.CustomerID, e.RecordID, e.Recipients = "", "", administrators
	}
	e.Args = map[string]any{"Reason": "escalated_" + reason}
	return s.notify.Notify(ctx, tx, e)
}

// checkReviewers escalates a case whose reviewers are all excluded, because they are the customer.
func (s *Service) checkReviewers(ctx context.Context, tx *store.Tx, c Customer) error {
	reviewers, err := selectReviewers(ctx, tx, "")
	if err != nil {
		return err
	}
	for _, id := range reviewers {
		if self, err := s.isCustomer(ctx, tx, c, id); err != nil || !self {
			return err
		}
	}
	return s.escalate(ctx, tx, c, noReviewer)
}

// fewReviewers is the number up to which all of them can be excluded: more people are not one customer.
const fewReviewers = 5

const selectUnescalated = `SELECT customer_id FROM kyc_cases WHERE escalated_at IS NULL AND customer_id > $1 ORDER BY customer_id LIMIT $2`

// EscalateCases escalates the open cases that have lost their last reviewer: roles change, and evidence is added. It runs hourly.
func (s *Service) EscalateCases(ctx context.Context) error {
	reviewers, err := selectReviewers(ctx, s.db, "")
	if err != nil || len(reviewers) > fewReviewers {
		return err
	}
	for last := ""; ; {
		ids, err := store.All(ctx, s.db, store.Text, selectUnescalated, last, caseBatch)
		if err != nil || len(ids) == 0 {
			return err
		}
		for _, id := range ids {
			if err := s.escalateLost(ctx, id, reviewers); err != nil {
				return err
			}
		}
		last = ids[len(ids)-1]
	}
}

// escalateLost escalates one case, unless a reviewer may work on it.
func (s *Service) escalateLost(ctx context.Context, id string, reviewers []string) error {
	c, err := table.GetUnchecked(ctx, s.db, id)
	if err != nil {
		return err
	}
	pending, waits, err := selectPending(ctx, s.db, id)
	if err != nil {
		return err
	}
	reason := noReviewer
	excludes := func(userID string) (bool, error) { return s.isCustomer(ctx, s.db, c, userID) }
	if waits {
		k, err := s.concerned(ctx, s.db, c, pending.ProposedBy)
		if err != nil {
			return err
		}
		reason = noSecondPerson
		excludes = func(userID string) (bool, error) {
			why, err := s.exclusionOf(ctx, s.db, k, userID)
			if stored, was := selectExclusion(ctx, s.db, pending.ID, userID); was != nil || stored != "" {
				return true, was
			}
			return why != "", err
		}
	}
	for _, userID := range reviewers {
		if excluded, err := excludes(userID); err != nil || !excluded {
			return err
		}
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error { return s.escalate(ctx, tx, c, reason) })
}
