package customers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/attachment"
	"kontor/modules/kit/types"
	"kontor/store"
)

// A decision that waits for a second person is about documents and an identity. Later additions do not concern it: the second
// person sees that they are new. A verification becomes void when something that it is about changes or goes. A rejection never does:
// its subject must not be able to undo it.

// evidenceDocument is a document as it was when a decision was proposed.
type evidenceDocument struct {
	ID         string       `json:"id"`
	Type       DocumentType `json:"type"`
	Country    string       `json:"country"`
	ExpiryDate types.Date   `json:"expiry_date"`

	updatedAt store.Time
}

// verifies reports whether the decision gives the customer a verification: it depends on its evidence.
func (d PendingDecision) verifies() bool { return d.KYCStatus == Verified }

func selectEvidence(ctx context.Context, q store.Querier, customerID string) ([]evidenceDocument, error) {
	documents, err := store.All(ctx, q, func(row store.Scanner) (d evidenceDocument, err error) {
		err = row.Scan(&d.ID, (*string)(&d.Type), &d.Country, &d.ExpiryDate, &d.updatedAt)
		return d, err
	}, selectEvidenceStatement, customerID)
	if err != nil {
		return nil, fmt.Errorf("read evidence: %w", err)
	}
	return documents, nil
}

// encodeEvidence returns the documents of a decision as they are stored. They are not empty.
func encodeEvidence(documents []evidenceDocument) (string, error) {
	if documents == nil {
		documents = []evidenceDocument{}
	}
	text, err := json.Marshal(documents)
	if err != nil {
		return "", fmt.Errorf("encode evidence: %w", err)
	}
	return string(text), nil
}

func (d PendingDecision) evidence() (documents []evidenceDocument, err error) {
	if d.documents == "" {
		return nil, nil
	}
	if err = json.Unmarshal([]byte(d.documents), &documents); err != nil {
		return nil, fmt.Errorf("decode the evidence of decision %s: %w", d.ID, err)
	}
	return documents, nil
}

// holdsEvidence reports whether the documents that a decision is about are unchanged, and as valid as they were.
func holdsEvidence(ctx context.Context, q store.Querier, d PendingDecision, today types.Date) (bool, error) {
	if !d.verifies() {
		return true, nil
	}
	now, err := selectEvidence(ctx, q, d.customerID)
	if err != nil {
		return false, err
	}
	if d.documents == "" { // proposed by an earlier version
		return evidenceKey(now, today) == d.evidenceKey, nil
	}
	was, err := d.evidence()
	if err != nil {
		return false, err
	}
	proposed := types.DateOf(d.ProposedAt.Std())
	for _, one := range was {
		same := slices.ContainsFunc(now, func(other evidenceDocument) bool {
			return other.ID == one.ID && other.Type == one.Type && other.Country == one.Country && other.ExpiryDate == one.ExpiryDate
		})
		if !same || one.validOn(proposed) && !one.validOn(today) {
			return false, nil
		}
	}
	return true, nil
}

func (d evidenceDocument) validOn(day types.Date) bool {
	return Document{ExpiryDate: d.ExpiryDate}.validOn(day)
}

// evidenceKey is the digest of documents that earlier versions stored with a decision.
func evidenceKey(documents []evidenceDocument, today types.Date) string {
	digest := sha256.New()
	for _, d := range documents {
		fmt.Fprintf(digest, "%s %d %t\n", d.ID, d.updatedAt, d.validOn(today))
	}
	return hex.EncodeToString(digest.Sum(nil))
}

// documentsAdded returns the ids of the documents that are new since a decision was proposed. It never returns nil.
func documentsAdded(d PendingDecision, documents []Document) ([]string, error) {
	was, err := d.evidence()
	added := []string{}
	if d.documents == "" {
		return added, nil
	}
	for _, one := range documents {
		if !slices.ContainsFunc(was, func(e evidenceDocument) bool { return e.ID == one.ID }) {
			added = append(added, one.ID)
		}
	}
	return added, err
}

// FilesChanged follows a change of the files of a document. A deleted file makes a waiting verification void.
func (s *Service) FilesChanged(ctx context.Context, tx *store.Tx, target attachment.Target, added bool) error {
	c, err := table.GetUnchecked(ctx, tx, target.Parent)
	if err != nil {
		return err
	}
	d, found, err := selectPending(ctx, tx, target.Parent)
	if err != nil {
		return err
	}
	if found && !added && d.verifies() {
		return s.void(ctx, tx, c, d)
	}
	if found {
		if err := markChanged(ctx, tx, d); err != nil {
			return err
		}
	}
	return s.refreshCase(ctx, tx, c)
}

// followPending stores what a change means for the pending decision of the customer: it becomes void, or shows that there is
// something new.
func (s *Service) followPending(ctx context.Context, tx *store.Tx, change preparedChange) error {
	d, found, err := selectPending(ctx, tx, change.after.ID)
	if err != nil || !found {
		return err
	}
	if d.verifies() {
		holds := false
		if len(change.documents) > 0 && !change.identity {
			if holds, err = holdsEvidence(ctx, tx, d, types.DateOf(tx.Now().Std())); err != nil {
				return err
			}
		}
		if !holds {
			return s.void(ctx, tx, change.after, d)
		}
	}
	return markChanged(ctx, tx, d)
}

// void closes a pending decision that has lost its subject, and notifies its proposer.
func (s *Service) void(ctx context.Context, tx *store.Tx, c Customer, d PendingDecision) error {
	if err := s.writeClosing(ctx, tx, c, *s.closing(ctx, d, DecisionVoid, "")); err != nil {
		return err
	}
	return s.refreshCase(ctx, tx, c)
}

// markChanged stores that there is something new since a decision was proposed.
func markChanged(ctx context.Context, tx *store.Tx, d PendingDecision) error {
	was, err := readDecision(ctx, tx, d.ID)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, markChangedStatement, d.ID, tx.Now()); err != nil {
		return err
	}
	return decisionProof.Audit(ctx, tx, "customers.kyc_decision_changed", d.ID, was)
}
