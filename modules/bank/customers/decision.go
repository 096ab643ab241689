package customers

import (
	"cmp"
	"context"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// DecisionState is the state of a decision that needs a second person.
type DecisionState string

// The states.
const (
	DecisionPending   DecisionState = "pending"
	DecisionConfirmed DecisionState = "confirmed"
	DecisionRejected  DecisionState = "rejected"  // by a second person
	DecisionWithdrawn DecisionState = "withdrawn" // by the first reviewer
	DecisionVoid      DecisionState = "void"      // of a verification: a document that it relied on, or the identity, changed
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
	Reason            string        `json:"reason" doc:"For reviewers only."`
	CustomerReason    string        `json:"customer_reason,omitzero" doc:"What the customer reads in the history once the decision is confirmed; missing for nothing."`
	ProposedAt        store.Time    `json:"proposed_at"`
	ProposedBy        string        `json:"proposed_by"`
	ClosedAt          *store.Time   `json:"closed_at"`
	ClosedBy          string        `json:"closed_by" format:"-" doc:"Empty while the decision is pending."`
	ClosingReason     string        `json:"closing_reason"`
	ChangedSince      *store.Time   `json:"changed_since,omitzero" doc:"When something about the customer last changed since the proposal: documents or files were added, or, for a rejection, anything else. Missing if nothing did."`
	DocumentsAdded    []string      `json:"documents_added,omitzero" format:"uuid" doc:"The documents that are new since the proposal, in the verification of a customer with a pending decision."`

	customerID  string
	verifiedAt  *store.Time
	documents   string // see evidenceDocument; empty for a decision of an earlier version, which has an evidenceKey
	evidenceKey string
	excluded    map[string]exclusion // of a new decision
}

// Decision is the answer to a decision: the customer, and the decision if it waits for a second person.
type Decision struct {
	Customer
	PendingDecision *PendingDecision `json:"pending_decision,omitzero" doc:"Present when the decision waits for a second person; the customer is then as before."`
}

// answer returns the response to a decision: 202 for one that waits for a second person.
func (d Decision) answer() endpoint.Result {
	if d.PendingDecision != nil {
		return endpoint.Result{Status: 202, Body: d}
	}
	return endpoint.Result{Body: d}
}

// writeProposal stores a pending decision and notifies the other reviewers.
func (s *Service) writeProposal(ctx context.Context, tx *store.Tx, c Customer, d PendingDecision, reviewers []string) error {
	if _, waits, err := selectPending(ctx, tx, c.ID); err != nil || waits {
		return cmp.Or(err, error(apierr.DecisionWaits))
	}
	documents, err := selectEvidence(ctx, tx, c.ID)
	if err != nil {
		return err
	}
	if d.documents, err = encodeEvidence(documents); err != nil {
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

// writeClosing stores how a decision was closed. It notifies the proposer, unless they closed it. It returns
// apierr.DecisionNotPending if another transaction has closed it.
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
