package customers

import (
	"cmp"
	"context"
	"slices"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
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
	DecisionVoid      DecisionState = "void"      // the customer was erased; of earlier versions also if the customer had changed
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
	OutdatedSince     *store.Time   `json:"outdated_since,omitzero" doc:"Since when the decision cannot be confirmed, because a document that it relied on or the identity has changed: a reviewer rejects it, or its proposer withdraws it. Missing if nothing did."`
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
		return s.escalate(ctx, tx, c, noSecondPerson)
	}
	return s.notifyAbout(ctx, tx, c, event.KYCDecisionPending, reviewers, map[string]any{})
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
	return s.notifyAbout(ctx, tx, c, event.KYCDecisionClosed, []string{d.ProposedBy}, map[string]any{"Status": "decision_" + string(d.State)})
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
	if in.Reason = checkReason(v, "reason", in.Reason); types.Blank(in.Reason) {
		v.Add("reason", "customers.reason_required")
	}
}

// Confirm makes a pending decision effective, by another person than its proposer. It returns apierr.CustomerNotFound, apierr.NoAccess,
// apierr.DecisionNotFound, apierr.DecisionNotPending, apierr.SecondPersonRequired, apierr.SelfVerification, apierr.ScreeningOpen, and
// apierr.DecisionOutdated for a verification whose documents or identity have changed, or whose documents have expired. That one stays
// pending: only reviewers end it.
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
		if !holds || d.OutdatedSince != nil {
			return preparedChange{}, apierr.DecisionOutdated
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
	return Decision{Customer: change.after, PendingDecision: nil}, err
}

// findDecision finds a decision that the caller may close.
func (s *Service) findDecision(ctx context.Context, ids []string, in any) error {
	if err := s.findReviewed(ctx, ids, in); err != nil {
		return err
	}
	_, err := selectDecision(ctx, s.db, ids[0], ids[1])
	return err
}

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

// Suggestion is the level that a customer's documents and data support today, with the grounds for it. A reviewer may decide
// otherwise, but for no level whose members are not known.
type Suggestion struct {
	Level   Level    `json:"level"`
	Grounds []Ground `json:"grounds" doc:"What a level needs: documents, and members of the customer that must be known. A level also needs what the levels below it need."`
}

// Ground is one condition of a level, with the valid documents that meet it.
type Ground struct {
	Requirement string   `json:"requirement" enum:"identity_document,proof_of_address,date_of_birth,nationality,address"`
	For         Level    `json:"for" enum:"basic,standard" doc:"The level that needs it."`
	Met         bool     `json:"met"`
	Documents   []string `json:"documents" format:"uuid" doc:"The documents that meet it and are valid today."`
}

// suggest derives the level from documents and members. No documents support enhanced: that level is always the judgement of reviewers.
func suggest(c Customer, documents []Document, today types.Date) Suggestion {
	ground := func(requirement string, level Level, meets func(DocumentType) bool) Ground {
		g := Ground{Requirement: requirement, For: level, Documents: []string{}}
		for _, d := range documents {
			if meets(d.kind) && d.validOn(today) {
				g.Documents = append(g.Documents, d.ID)
			}
		}
		g.Met = len(g.Documents) > 0
		return g
	}
	s := Suggestion{
		Level: c.knownLevel(supportedLevel(documents, today)),
		Grounds: []Ground{
			ground(needIdentity, LevelBasic, DocumentType.identifies),
			ground(needAddress, LevelStandard, func(t DocumentType) bool { return t == ProofOfAddress }),
		},
	}
	if len(c.missingMembers(LevelBasic)) > 0 {
		s.Level = LevelNone
	}
	for _, m := range requiredMembers[c.Type] {
		s.Grounds = append(s.Grounds, Ground{Requirement: m.name, For: m.level, Met: m.known(&c), Documents: []string{}})
	}
	return s
}

// requiredMember is a member of a customer that must be known for a level of verification, and for the levels above it.
type requiredMember struct {
	name  string
	level Level
	known func(c *Customer) bool
}

// requiredMembers is the policy by the type of the customer: a verified person has a date of birth and a nationality, and a customer
// with a proven address has one in the record.
var requiredMembers = map[string][]requiredMember{
	Individual: {
		{"date_of_birth", LevelBasic, func(c *Customer) bool { return !c.DateOfBirth.IsZero() }},
		{"nationality", LevelBasic, func(c *Customer) bool { return types.EmptyIfNil(c.Nationality) != "" }},
		{"address", LevelStandard, (*Customer).knownAddress},
	},
	Business: {{"address", LevelStandard, (*Customer).knownAddress}},
}

// knownAddress reports whether the address of the customer has a town and a country.
func (c *Customer) knownAddress() bool { return c.address().City != "" && c.address().Country != "" }

// rank returns the place of a level among the levels.
func (l Level) rank() int { return slices.Index(l.Values(), string(l)) }

// missingMembers returns the names of the members that a level needs and that are not known. It never returns nil.
func (c Customer) missingMembers(level Level) []string {
	missing := []string{}
	for _, m := range requiredMembers[c.Type] {
		if m.level.rank() <= level.rank() && !m.known(&c) {
			missing = append(missing, m.name)
		}
	}
	return missing
}

// checkMembers returns apierr.MembersMissing for a verified customer of whom a member is not known that the level needs.
func (c Customer) checkMembers() error {
	if c.KYCStatus != Verified {
		return nil
	}
	if missing := c.missingMembers(c.VerificationLevel); len(missing) > 0 {
		return apierr.MembersMissing.Detail("missing", missing)
	}
	return nil
}

// knownLevel lowers a level to the highest one for which all members are known, and at least to basic.
func (c Customer) knownLevel(level Level) Level {
	if level == LevelStandard && len(c.missingMembers(LevelStandard)) > 0 {
		return LevelBasic
	}
	return level
}
