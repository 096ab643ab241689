package customers

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"

	"kontor/modules/kit/attachment"
	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const decisionColumns = `
	id, customer_id, kyc_status, verification_level, verified_at, reason, evidence_key, state, proposed_at, proposed_by,
	closed_at, closed_by, closing_reason, documents, changed_at, customer_reason, outdated_at`

const insertDecisionStatement = `
	INSERT INTO kyc_decisions (id, customer_id, kyc_status, verification_level, verified_at, reason, evidence_key, documents, state, proposed_at, proposed_by,
		customer_reason)
	VALUES ($1, $2, $3, $4, $5, $6, '', $7, $8, $9, $10, $11)`

const insertExclusionStatement = `INSERT INTO kyc_decision_exclusions (decision_id, user_id, reason) VALUES ($1, $2, $3)`

const selectExclusionStatement = `SELECT reason FROM kyc_decision_exclusions WHERE decision_id = $1 AND user_id = $2`

const selectExclusionsStatement = `SELECT user_id || ' ' || reason FROM kyc_decision_exclusions WHERE decision_id = $1 ORDER BY user_id`

const deleteExclusions = `DELETE FROM kyc_decision_exclusions WHERE decision_id = $1`

const markChangedStatement = `UPDATE kyc_decisions SET changed_at = $2 WHERE id = $1`

const markOutdatedStatement = `UPDATE kyc_decisions SET changed_at = $2, outdated_at = COALESCE(outdated_at, $2) WHERE id = $1`

const updateDecisionStatement = `
	UPDATE kyc_decisions SET state = $2, closed_at = $3, closed_by = $4, closing_reason = $5 WHERE id = $1 AND state = 'pending'`

const selectPendingStatement = `SELECT ` + decisionColumns + ` FROM kyc_decisions WHERE customer_id = $1 AND state = 'pending'`

const selectDecisionStatement = `SELECT ` + decisionColumns + ` FROM kyc_decisions WHERE customer_id = $1 AND id = $2`

const selectDecisionsStatement = `
	SELECT ` + decisionColumns + ` FROM kyc_decisions WHERE customer_id = $1 ORDER BY proposed_at DESC, id DESC LIMIT 100`

const selectEvidenceStatement = `
	SELECT id, type, country_key, expiry_date, updated_at FROM kyc_documents WHERE customer_id = $1 ORDER BY id`

// selectReviewersStatement selects the active people who may update all customers, except $1. $2 is the role Administrator.
const selectReviewersStatement = `
	SELECT p.id FROM people p
	WHERE p.status = 'active' AND p.kind = 'person' AND p.id <> $1 AND p.id IN (
		SELECT h.user_id FROM held_roles h
		WHERE h.role_id = $2 OR h.role_id IN (
			SELECT g.principal_id FROM permissions g WHERE g.rec_type = 'customers' AND g.rec_id = '' AND g.permission = 'update')
		UNION
		SELECT g.principal_id FROM permissions g WHERE g.rec_type = 'customers' AND g.rec_id = '' AND g.permission = 'update')
	ORDER BY p.id LIMIT 10000`

func scanDecision(row records.Row) (PendingDecision, error) {
	var d PendingDecision
	err := row.Scan(&d.ID, &d.customerID, (*string)(&d.KYCStatus), (*string)(&d.VerificationLevel), &d.verifiedAt, &d.Reason, &d.evidenceKey,
		(*string)(&d.State), &d.ProposedAt, &d.ProposedBy, &d.ClosedAt, &d.ClosedBy, &d.ClosingReason,
		&d.documents, &d.ChangedSince, &d.CustomerReason, &d.OutdatedSince)
	return d, err
}

func selectPending(ctx context.Context, q store.Querier, customerID string) (d PendingDecision, found bool, err error) {
	d, err = scanDecision(q.QueryRow(ctx, selectPendingStatement, customerID))
	if errors.Is(err, store.ErrNotFound) {
		return d, false, nil
	}
	return d, err == nil, err
}

// selectDecision returns a decision, or apierr.DecisionNotFound.
func selectDecision(ctx context.Context, q store.Querier, customerID, id string) (PendingDecision, error) {
	d, err := scanDecision(q.QueryRow(ctx, selectDecisionStatement, customerID, id))
	if errors.Is(err, store.ErrNotFound) {
		err = apierr.DecisionNotFound
	}
	return d, err
}

// selectDecisions returns the newest decisions of a customer that needed a second person.
func selectDecisions(ctx context.Context, q store.Querier, customerID string) ([]PendingDecision, error) {
	return store.All(ctx, q, scanDecision, selectDecisionsStatement, customerID)
}

func insertDecision(ctx context.Context, tx *store.Tx, d PendingDecision) error {
	_, err := tx.Exec(ctx, insertDecisionStatement, d.ID, d.customerID, string(d.KYCStatus), string(d.VerificationLevel), d.verifiedAt, d.Reason,
		d.documents, string(d.State), d.ProposedAt, d.ProposedBy, d.CustomerReason)
	if err != nil {
		return err
	}
	for userID, why := range d.excluded {
		if _, err := tx.Exec(ctx, insertExclusionStatement, d.ID, userID, string(why)); err != nil {
			return err
		}
	}
	return decisionProof.Audit(ctx, tx, "customers.kyc_decision", d.ID, nil)
}

// selectExclusion returns why a user was excluded from the confirmation of a decision when it was proposed, or an empty text.
func selectExclusion(ctx context.Context, q store.Querier, decisionID, userID string) (why exclusion, err error) {
	err = q.QueryRow(ctx, selectExclusionStatement, decisionID, userID).Scan((*string)(&why))
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return why, err
}

// updateDecision closes a pending decision. It returns apierr.DecisionNotPending for another one.
func updateDecision(ctx context.Context, tx *store.Tx, d PendingDecision) error {
	return decisionProof.Change(ctx, tx, "customers.kyc_decision_"+string(d.State), d.ID, func() error {
		changed, err := tx.Exec(ctx, updateDecisionStatement, d.ID, string(d.State), d.ClosedAt, d.ClosedBy, d.ClosingReason)
		if err == nil && changed == 0 { // another transaction was faster
			now, err := scanDecision(tx.QueryRow(ctx, selectDecisionRecord, d.ID))
			return cmp.Or(err, error(apierr.DecisionNotPending.Detail("state", now.State)))
		}
		return err
	})
}

func selectReviewers(ctx context.Context, q store.Querier, except string) ([]string, error) {
	return store.All(ctx, q, store.Text, selectReviewersStatement, except, access.Administrator)
}

// decisionProof covers the decisions that need a second person. A database from before the migration 49, which has no documents of
// decisions, is checked after its next start.
var decisionProof = records.Proof{Type: "kyc_decisions", From: "kyc_decisions", Key: "id", Read: readDecision, Migration: 49}

const selectDecisionRecord = `SELECT ` + decisionColumns + ` FROM kyc_decisions WHERE id = $1`

func readDecision(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	d, err := scanDecision(q.QueryRow(ctx, selectDecisionRecord, id))
	if err != nil {
		return store.Record{}, err
	}
	stored := map[string]any{"customer_id": d.customerID, "verified_at": d.verifiedAt, "evidence_key": d.evidenceKey}
	if d.documents != "" { // missing from decisions of earlier versions
		stored["documents"] = d.documents
	}
	excluded, err := store.All(ctx, q, store.Text, selectExclusionsStatement, id)
	if len(excluded) > 0 {
		stored["excluded"] = excluded
	}
	return store.Record{Answer: d, Stored: stored}, err
}

// A decision that waits for a second person is about documents and an identity. Later additions do not concern it: the second
// person sees that they are new. A verification is outdated when something that it is about changes or goes: it waits for a reviewer to
// end it, because its subject must not be able to. A rejection is never outdated.

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

// FilesChanged follows a change of the files of a document. A deleted file makes a waiting verification outdated.
func (s *Service) FilesChanged(ctx context.Context, tx *store.Tx, target attachment.Target, added bool) error {
	c, err := table.GetUnchecked(ctx, tx, target.Parent)
	if err != nil {
		return err
	}
	d, found, err := selectPending(ctx, tx, target.Parent)
	if err != nil {
		return err
	}
	if found {
		if err := s.markChanged(ctx, tx, c, d, !added && d.verifies()); err != nil {
			return err
		}
	}
	return s.refreshCase(ctx, tx, c)
}

// followPending stores what a change means for the pending decision of the customer: it is outdated, or shows that there is something
// new.
func (s *Service) followPending(ctx context.Context, tx *store.Tx, change preparedChange) error {
	d, found, err := selectPending(ctx, tx, change.after.ID)
	if err != nil || !found {
		return err
	}
	outdated := d.verifies()
	if outdated && len(change.documents) > 0 && !change.identity {
		holds, err := holdsEvidence(ctx, tx, d, types.DateOf(tx.Now().Std()))
		if err != nil {
			return err
		}
		outdated = !holds
	}
	return s.markChanged(ctx, tx, change.after, d, outdated)
}

// markChanged stores that there is something new since a decision was proposed. It notifies the proposer of one that is outdated now.
func (s *Service) markChanged(ctx context.Context, tx *store.Tx, c Customer, d PendingDecision, outdated bool) error {
	statement := markChangedStatement
	if outdated {
		statement = markOutdatedStatement
	}
	err := decisionProof.ChangeRow(ctx, tx, "customers.kyc_decision_changed", d.ID, statement, d.ID, tx.Now())
	if err != nil || !outdated || d.OutdatedSince != nil {
		return err
	}
	return s.notifyAbout(ctx, tx, c, event.KYCDecisionClosed, []string{d.ProposedBy}, map[string]any{"Status": "decision_outdated"})
}
