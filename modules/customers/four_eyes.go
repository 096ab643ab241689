package customers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// The values of the setting kyc.four_eyes: which decisions need a second person.
const (
	FourEyesOff      = "off"
	FourEyesEnhanced = "enhanced" // those that give the level enhanced
	FourEyesAlways   = "always"   // all that verify or reject a customer, or change a level
)

// DecisionState is the state of a decision that needs a second person.
type DecisionState string

// The states.
const (
	DecisionPending   DecisionState = "pending"
	DecisionConfirmed DecisionState = "confirmed"
	DecisionRejected  DecisionState = "rejected"  // by a second person
	DecisionWithdrawn DecisionState = "withdrawn" // by the first reviewer
	DecisionVoid      DecisionState = "void"      // the documents or the identity changed
)

// Values returns all states.
func (DecisionState) Values() []string {
	return []string{string(DecisionPending), string(DecisionConfirmed), string(DecisionRejected), string(DecisionWithdrawn), string(DecisionVoid)}
}

// PendingDecision is a decision that needs a second person, also after it was closed.
type PendingDecision struct {
	ID                string        `json:"id"`
	State             DecisionState `json:"state"`
	KYCStatus         Status        `json:"kyc_status" doc:"The state that the customer gets."`
	VerificationLevel Level         `json:"verification_level" doc:"The level that the customer gets."`
	Reason            string        `json:"reason"`
	ProposedAt        store.Time    `json:"proposed_at"`
	ProposedBy        string        `json:"proposed_by"`
	ClosedAt          *store.Time   `json:"closed_at"`
	ClosedBy          string        `json:"closed_by" format:"-" doc:"Empty while the decision is pending."`
	ClosingReason     string        `json:"closing_reason"`

	customerID  string
	verifiedAt  *store.Time
	evidenceKey string
}

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
	if strings.TrimSpace(reason) == "" {
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

// checkSecondPerson returns apierr.SecondPersonRequired when the caller does not count as another person: the proposer, users
// whose personas are linked to those of the proposer or are the same person, and users with a persona that is linked to the
// customer's identity. It returns apierr.SelfVerification when the caller is the customer.
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
	if in.Reason = checkReason(v, in.Reason); strings.TrimSpace(in.Reason) == "" {
		v.Add("reason", "customers.reason_required")
	}
}

// Confirm makes a pending decision effective, by another person than its proposer. A decision whose documents have expired
// meanwhile becomes void. Confirm returns apierr.CustomerNotFound, apierr.NoAccess, apierr.DecisionNotFound,
// apierr.DecisionNotPending, apierr.SecondPersonRequired and apierr.SelfVerification.
func (s *Service) Confirm(ctx context.Context, in DecisionInput) (Decision, error) {
	return s.closeDecision(ctx, in, func(ctx context.Context, q store.Querier, before Customer, d PendingDecision) (preparedChange, error) {
		if err := s.checkSecondPerson(ctx, q, before, d.ProposedBy); err != nil {
			return preparedChange{}, err
		}
		key, err := evidenceKey(ctx, q, before.ID, types.DateOf(s.db.Now().Std()))
		if err != nil {
			return preparedChange{}, err
		}
		if key != d.evidenceKey {
			change := s.prepareVerification(before, before, "customers.kyc_void", "")
			change.closing = s.closing(ctx, d, DecisionVoid, "")
			return change, nil
		}
		after := before
		after.KYCStatus, after.VerificationLevel = d.KYCStatus, d.VerificationLevel
		if d.verifiedAt != nil {
			after.verifiedAt = d.verifiedAt
		}
		change := s.prepareVerification(before, after, "customers.kyc_confirm", d.Reason)
		change.closing = s.closing(ctx, d, DecisionConfirmed, "")
		return change, nil
	})
}

// RejectDecision closes a pending decision without effect, by another person than its proposer. It returns the errors of Confirm.
func (s *Service) RejectDecision(ctx context.Context, in RejectDecisionInput) (Decision, error) {
	return s.closeDecision(ctx, DecisionInput{in.ID, in.DecisionID},
		func(ctx context.Context, q store.Querier, before Customer, d PendingDecision) (preparedChange, error) {
			if err := s.checkSecondPerson(ctx, q, before, d.ProposedBy); err != nil {
				return preparedChange{}, err
			}
			change := s.prepareVerification(before, before, "customers.kyc_refuse", "")
			change.closing = s.closing(ctx, d, DecisionRejected, in.Reason)
			return change, nil
		})
}

// Withdraw takes a pending decision back, by its proposer. It returns the errors of Confirm; apierr.NoAccess for other callers.
func (s *Service) Withdraw(ctx context.Context, in DecisionInput) (Decision, error) {
	return s.closeDecision(ctx, in, func(ctx context.Context, _ store.Querier, before Customer, d PendingDecision) (preparedChange, error) {
		if d.ProposedBy != access.From(ctx).UserID {
			return preparedChange{}, apierr.NoAccess
		}
		change := s.prepareVerification(before, before, "customers.kyc_withdraw", "")
		change.closing = s.closing(ctx, d, DecisionWithdrawn, "")
		return change, nil
	})
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

// Decision is the answer to a decision: the customer, and the decision if it waits for a second person.
type Decision struct {
	Customer
	PendingDecision *PendingDecision `json:"pending_decision,omitzero" doc:"Present when the decision waits for a second person; the customer is then as before."`
}

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

// writeProposal stores a pending decision and notifies the other reviewers.
func (s *Service) writeProposal(ctx context.Context, tx *store.Tx, c Customer, d PendingDecision, reviewers []string) error {
	var err error
	if d.evidenceKey, err = evidenceKey(ctx, tx, c.ID, types.DateOf(tx.Now().Std())); err != nil {
		return err
	}
	if err := insertDecision(ctx, tx, d); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, assignCaseStatement, c.ID, nil, nil); err != nil { // another person continues
		return err
	}
	if len(reviewers) == 0 {
		return nil
	}
	return s.notify.Notify(ctx, tx, event.Event{
		Kind: event.KYCDecisionPending, CustomerID: c.ID, Type: access.Customers, RecordID: c.ID, Recipients: reviewers,
		Args: map[string]any{"Name": c.name()},
	})
}

// writeClosing stores how a decision was closed. It notifies the proposer, unless they closed it.
func (s *Service) writeClosing(ctx context.Context, tx *store.Tx, c Customer, d PendingDecision) error {
	if err := updateDecision(ctx, tx, d); err != nil {
		return err
	}
	if d.ClosedBy == d.ProposedBy {
		return nil
	}
	return s.notify.Notify(ctx, tx, event.Event{
		Kind: event.KYCDecisionClosed, CustomerID: c.ID, Type: access.Customers, RecordID: c.ID, Recipients: []string{d.ProposedBy},
		Args: map[string]any{"Name": c.name(), "Status": "decision_" + string(d.State)},
	})
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

// answer returns the response to a decision: 202 for one that waits for a second person.
func (d Decision) answer() endpoint.Result {
	if d.PendingDecision != nil {
		return endpoint.Result{Status: 202, Body: d}
	}
	return endpoint.Result{Body: d}
}
