package customers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"kontor/modules/kit/types"
	"kontor/store"
)

// EvidenceChanged voids the pending decision of a customer, as part of a change of what it is about, such as a file of a document.
func (s *Service) EvidenceChanged(ctx context.Context, tx *store.Tx, customerID string) error {
	c, err := table.GetUnchecked(ctx, tx, customerID)
	if err != nil {
		return err
	}
	return s.voidPending(ctx, tx, c)
}

// voidPending closes the pending decision of a customer, if there is one, and notifies its proposer.
func (s *Service) voidPending(ctx context.Context, tx *store.Tx, c Customer) error {
	d, found, err := selectPending(ctx, tx, c.ID)
	if err != nil || !found {
		return err
	}
	if err := s.writeClosing(ctx, tx, c, *s.closing(ctx, d, DecisionVoid, "")); err != nil {
		return err
	}
	return s.refreshCase(ctx, tx, c)
}

// evidenceKey returns a digest of the documents that a decision is about. It changes with each submitted document, and when a
// document expires.
func evidenceKey(ctx context.Context, q store.Querier, customerID string, today types.Date) (string, error) {
	rows, err := q.Query(ctx, selectEvidence, customerID)
	if err != nil {
		return "", fmt.Errorf("read evidence: %w", err)
	}
	defer rows.Close()
	digest := sha256.New()
	for rows.Next() {
		var d Document
		var updated store.Time
		if err := rows.Scan(&d.ID, &updated, &d.ExpiryDate); err != nil {
			return "", fmt.Errorf("read evidence: %w", err)
		}
		fmt.Fprintf(digest, "%s %d %t\n", d.ID, updated, d.validOn(today))
	}
	return hex.EncodeToString(digest.Sum(nil)), rows.Err()
}
