package customers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Case is a customer whose verification waits for a reviewer: the state is pending or in_review, or a decision waits for a second
// person.
type Case struct {
	CustomerID        string           `json:"customer_id"`
	Type              string           `json:"type" enum:"individual,business"`
	FirstName         string           `json:"first_name"`
	LastName          string           `json:"last_name"`
	Country           string           `json:"country" doc:"ISO 3166-1 alpha-3, of the address or else the nationality; empty for none."`
	KYCStatus         Status           `json:"kyc_status"`
	VerificationLevel Level            `json:"verification_level"`
	SuggestedLevel    Level            `json:"suggested_level" doc:"The level that the documents support, as of the last submission or day."`
	Ready             bool             `json:"ready" doc:"Whether there are documents, and each valid one has a scan or photo."`
	OpenedAt          store.Time       `json:"opened_at" doc:"Since when the customer waits."`
	Assignee          *string          `json:"assignee" doc:"The reviewer who works on the case. An assignment ends after 24 hours."`
	AssignedAt        *store.Time      `json:"assigned_at"`
	PendingDecision   *PendingDecision `json:"pending_decision" doc:"The decision that waits for a second person; null for none."`
	Escalation        string           `json:"escalation,omitzero" enum:"no_reviewer,no_second_person" doc:"Why the case was escalated to administrators: all reviewers are excluded, from the case or from the pending decision. Missing for none."`
	EscalatedAt       *store.Time      `json:"escalated_at,omitzero"`
	BlockingHits      int64            `json:"blocking_hits,omitzero" doc:"How many hits on sanctions lists block the verification; missing for none."`
}

// EachUser names the assignee and the proposer.
func (c Case) EachUser(add func(id string)) {
	if c.Assignee != nil {
		add(*c.Assignee)
	}
	if c.PendingDecision != nil {
		add(c.PendingDecision.ProposedBy)
	}
}

// Cases returns the open cases, for reviewers, without those about the caller. It returns apierr.NoAccess for other callers.
func (s *Service) Cases(ctx context.Context, in ListInput) (list.Page[Case], error) {
	caller := access.From(ctx)
	if !mayReview(caller) {
		return list.Page[Case]{}, apierr.NoAccess
	}
	where, err := s.notOwn(ctx)
	if err != nil {
		return list.Page[Case]{}, err
	}
	page, err := caseList.Page(ctx, s.db, in.Query, where, table.Visible(caller))
	if err != nil {
		return page, err
	}
	ids := make([]string, len(page.Data.Rows))
	for i, c := range page.Data.Rows {
		ids[i] = c.CustomerID
	}
	hits, err := s.Peers.Screening.CountBlocking(ctx, s.db, ids)
	for i := range page.Data.Rows {
		page.Data.Rows[i].BlockingHits = hits[page.Data.Rows[i].CustomerID]
	}
	return page, err
}

// maxTaken is the number of cases that one request takes or gives back.
const maxTaken = 100

// TakeInput names cases that the caller will work on.
type TakeInput struct {
	CustomerIDs []string `json:"customer_ids" format:"uuid" minItems:"1" maxItems:"100"`
	TakeOver    bool     `json:"take_over" required:"false" doc:"Whether to take cases that another reviewer works on."`
}

// Validate checks the ids.
func (in *TakeInput) Validate(v *apierr.Fields) {
	in.CustomerIDs = validate.IDs(v, "customer_ids", in.CustomerIDs, maxTaken)
}

// GiveBackInput names cases that the caller will not work on any more.
type GiveBackInput struct {
	CustomerIDs []string `json:"customer_ids" format:"uuid" minItems:"1" maxItems:"100"`
}

// Validate checks the ids.
func (in *GiveBackInput) Validate(v *apierr.Fields) {
	in.CustomerIDs = validate.IDs(v, "customer_ids", in.CustomerIDs, maxTaken)
}

// The outcomes of taking a case or giving it back.
const (
	caseTaken     = "taken"
	caseGivenBack = "given_back"
	caseAssigned  = "assigned"    // another reviewer works on it
	caseClosed    = "closed"      // the customer does not wait for a reviewer any more
	caseForbidden = "not_allowed" // the reviewer is the customer, or may not read it
)

// CaseOutcome says what happened to one case.
type CaseOutcome struct {
	CustomerID string  `json:"customer_id"`
	Outcome    string  `json:"outcome" enum:"taken,given_back,assigned,closed,not_allowed"`
	Assignee   *string `json:"assignee" doc:"The reviewer who works on the case now."`
}

// CaseOutcomes are the outcomes for the cases of a request, in the order of the request.
type CaseOutcomes struct {
	Cases []CaseOutcome `json:"cases"`
}

// EachUser names the reviewers who work on the cases.
func (o CaseOutcomes) EachUser(add func(id string)) {
	for _, c := range o.Cases {
		if c.Assignee != nil {
			add(*c.Assignee)
		}
	}
}

// Take assigns cases to the caller, and moves those that are pending to in_review. A case of another reviewer stays theirs,
// unless the input says otherwise. Cases are taken one by one: an error leaves those before it taken.
func (s *Service) Take(ctx context.Context, in TakeInput) (CaseOutcomes, error) {
	return s.eachCase(ctx, in.CustomerIDs, func(ctx context.Context, id string) (CaseOutcome, error) { return s.take(ctx, id, in.TakeOver) })
}

// GiveBack ends the assignment of cases to the caller. Their state stays.
func (s *Service) GiveBack(ctx context.Context, in GiveBackInput) (CaseOutcomes, error) {
	return s.eachCase(ctx, in.CustomerIDs, s.giveBack)
}

func (s *Service) eachCase(ctx context.Context, ids []string, change func(ctx context.Context, id string) (CaseOutcome, error)) (CaseOutcomes, error) {
	out := CaseOutcomes{Cases: []CaseOutcome{}}
	if !mayReview(access.From(ctx)) {
		return out, apierr.NoAccess
	}
	for _, id := range ids {
		outcome, err := change(ctx, id)
		switch {
		case errors.Is(err, apierr.CustomerNotFound), errors.Is(err, apierr.RecordErased):
			outcome.Outcome = caseClosed
		case errors.Is(err, apierr.NoAccess), errors.Is(err, apierr.SelfVerification):
			outcome.Outcome = caseForbidden
		case err != nil:
			return out, err
		}
		outcome.CustomerID = id
		out.Cases = append(out.Cases, outcome)
	}
	return out, nil
}

// take assigns one case to the caller.
func (s *Service) take(ctx context.Context, id string, takeOver bool) (CaseOutcome, error) {
	caller := access.From(ctx).UserID
	var out CaseOutcome
	prepare := func(ctx context.Context, q store.Querier, before Customer) (preparedChange, error) {
		if err := s.rejectSelfReview(ctx, q, before); err != nil {
			return preparedChange{}, err
		}
		c := before
		if c.KYCStatus != Pending {
			return preparedChange{before: before, after: before}, nil
		}
		c.KYCStatus = InReview
		return s.prepareVerification(before, c, "customers.kyc_decide", reasons{}), nil
	}
	write := func(ctx context.Context, tx *store.Tx, change preparedChange) error {
		held, err := selectCase(ctx, tx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			out = CaseOutcome{Outcome: caseClosed}
			return nil
		case err != nil:
			return err
		case held.assignee != nil && *held.assignee != caller && !takeOver:
			out = CaseOutcome{Outcome: caseAssigned, Assignee: held.assignee}
			return nil
		}
		out = CaseOutcome{Outcome: caseTaken, Assignee: &caller}
		if held.decisionID == nil && change.after.KYCStatus != change.before.KYCStatus {
			if err := s.write(ctx, tx, change); err != nil {
				return err
			}
		}
		return assignCase(ctx, tx, id, &caller, "customers.kyc_take")
	}
	_, err := records.UpdatePrepared(ctx, s.db, table, id, access.Update, prepare, write)
	return out, err
}

// giveBack ends the assignment of one case to the caller.
func (s *Service) giveBack(ctx context.Context, id string) (CaseOutcome, error) {
	var out CaseOutcome
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := table.Get(ctx, tx, id, access.Update); err != nil {
			return err
		}
		held, err := selectCase(ctx, tx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			out = CaseOutcome{Outcome: caseClosed}
			return nil
		case err != nil:
			return err
		case held.assignee != nil && *held.assignee != access.From(ctx).UserID:
			out = CaseOutcome{Outcome: caseAssigned, Assignee: held.assignee}
			return nil
		}
		out = CaseOutcome{Outcome: caseGivenBack}
		if held.assignee == nil {
			return nil
		}
		return assignCase(ctx, tx, id, nil, "customers.kyc_give_back")
	})
	return out, err
}

// refreshCase opens, updates or closes the case of a customer after a change of the verification.
func (s *Service) refreshCase(ctx context.Context, tx *store.Tx, c Customer) error {
	pending, waits, err := selectPending(ctx, tx, c.ID)
	if err != nil {
		return err
	}
	if c.Erased() || !waits && c.KYCStatus != Pending && c.KYCStatus != InReview {
		_, err := tx.Exec(ctx, eraseCase, c.ID)
		return err
	}
	today := types.DateOf(tx.Now().Std())
	documents, err := documentValidity(ctx, tx, c.ID, nil, today)
	if err != nil {
		return err
	}
	var decisionID *string
	if waits {
		decisionID = &pending.ID
	}
	ready := slices.ContainsFunc(documents, Document.hasFiles) && len(missingScans(documents, today)) == 0
	_, unopened := selectCase(ctx, tx, c.ID)
	_, err = tx.Exec(ctx, upsertCaseStatement, c.ID, tx.Now(), string(supportedLevel(documents, today)), c.residence(), decisionID, ready)
	if err != nil || !errors.Is(unopened, store.ErrNotFound) {
		return err
	}
	return s.checkReviewers(ctx, tx, c)
}

// residence returns the country of a customer: alpha-3, of the address or else the nationality; empty for none.
func (c Customer) residence() string {
	if country, err := types.CountryOf(c.address().Country); err == nil && country.String() != "" {
		return country.String()
	}
	return types.EmptyIfNil(c.Nationality)
}

const upsertCaseStatement = `
	INSERT INTO kyc_cases (customer_id, opened_at, suggested_level, country, decision_id, ready)
	VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (customer_id) DO UPDATE SET suggested_level = excluded.suggested_level, country = excluded.country,
		decision_id = excluded.decision_id, ready = excluded.ready,
		escalation = CASE WHEN excluded.decision_id IS NULL AND kyc_cases.escalation = 'no_second_person' THEN '' ELSE kyc_cases.escalation END,
		escalated_at = CASE WHEN excluded.decision_id IS NULL AND kyc_cases.escalation = 'no_second_person' THEN NULL ELSE kyc_cases.escalated_at END`

const selectCaseStatement = `SELECT assignee, decision_id FROM kyc_cases WHERE customer_id = $1`

const assignCaseStatement = `UPDATE kyc_cases SET assignee = $2, assigned_at = $3 WHERE customer_id = $1`

const selectStaleAssignments = `
	SELECT customer_id FROM kyc_cases WHERE assigned_at < $1 ORDER BY customer_id LIMIT $2`

const selectCasesAfter = `SELECT customer_id FROM kyc_cases WHERE customer_id > $1 ORDER BY customer_id LIMIT $2`

const (
	caseTables = `kyc_cases JOIN customers ON customers.id = kyc_cases.customer_id LEFT JOIN kyc_decisions d ON d.id = kyc_cases.decision_id`

	caseColumns = `
		kyc_cases.customer_id, customers.type, customers.first_name, customers.last_name, kyc_cases.country, customers.kyc_status,
		customers.verification_level, kyc_cases.suggested_level, kyc_cases.ready, kyc_cases.opened_at, kyc_cases.assignee, kyc_cases.assigned_at,
		kyc_cases.escalation, kyc_cases.escalated_at, d.id, d.kyc_status, d.verification_level, d.reason, d.customer_reason, d.proposed_at, d.proposed_by`

	selectCaseOf = `SELECT ` + caseColumns + ` FROM ` + caseTables + ` WHERE kyc_cases.customer_id = $1`
)

// caseList are the open cases. A pending decision adds no rows: a case has at most one.
var caseList = list.New(list.Source[Case]{
	From: caseTables, Columns: caseColumns,
	ID: "kyc_cases.customer_id", Created: "kyc_cases.opened_at", Tables: []string{"kyc_cases", "customers.id", "kyc_decisions.customer_id"}, Scan: scanCase,
	Fields: list.Fields{
		{Name: "customer_id", Type: list.UUID, Column: "kyc_cases.customer_id"},
		{Name: "type", Type: list.Text, Column: "customers.type", Key: "customers.type"},
		{Name: "first_name", Type: list.Text, Column: "customers.first_name", Key: "customers.first_name_key"},
		{Name: "last_name", Type: list.Text, Column: "customers.last_name", Key: "customers.last_name_key"},
		{Name: "country", Type: list.Text, Column: "kyc_cases.country", Key: "kyc_cases.country", Fold: strings.ToUpper},
		{Name: "kyc_status", Type: list.Text, Column: "customers.kyc_status", Key: "customers.kyc_status"},
		{Name: "suggested_level", Type: list.Text, Column: "kyc_cases.suggested_level", Key: "kyc_cases.suggested_level"},
		{Name: "ready", Type: list.Bool, Column: "kyc_cases.ready"},
		{Name: "opened_at", Type: list.Time, Column: "kyc_cases.opened_at"},
		{Name: "assignee", Type: list.UUID, Column: "kyc_cases.assignee", Null: true},
		{Name: "escalation", Type: list.Text, Column: "kyc_cases.escalation", Key: "kyc_cases.escalation"},
		{Name: "second_person", Type: list.Bool, Column: "(kyc_cases.decision_id IS NOT NULL)"},
		{Name: "proposed_level", Type: list.Text, Column: "d.verification_level", Key: "d.verification_level", Null: true},
		{Name: "proposed_by", Type: list.UUID, Column: "d.proposed_by", Null: true},
	},
})

func scanCase(row records.Row) (Case, error) {
	var c Case
	var d struct {
		id, status, level, reason, customerReason, by *string
		at                                            *store.Time
	}
	err := row.Scan(&c.CustomerID, &c.Type, &c.FirstName, &c.LastName, &c.Country, (*string)(&c.KYCStatus), (*string)(&c.VerificationLevel),
		(*string)(&c.SuggestedLevel), &c.Ready, &c.OpenedAt, &c.Assignee, &c.AssignedAt, &c.Escalation, &c.EscalatedAt, &d.id, &d.status, &d.level, &d.reason, &d.customerReason, &d.at, &d.by)
	if err == nil && d.id != nil {
		c.PendingDecision = &PendingDecision{ID: *d.id, State: DecisionPending, KYCStatus: Status(*d.status), VerificationLevel: Level(*d.level),
			Reason: *d.reason, CustomerReason: *d.customerReason, ProposedAt: *d.at, ProposedBy: *d.by}
	}
	return c, err
}

// heldCase is who works on a case.
type heldCase struct{ assignee, decisionID *string }

func selectCase(ctx context.Context, q store.Querier, customerID string) (c heldCase, err error) {
	err = q.QueryRow(ctx, selectCaseStatement, customerID).Scan(&c.assignee, &c.decisionID)
	return c, err
}

// assignCase assigns a case to a user, or to no user, with an audit entry about the customer.
func assignCase(ctx context.Context, tx *store.Tx, customerID string, userID *string, action string) error {
	var at *store.Time
	if userID != nil {
		now := tx.Now()
		at = &now
	}
	if _, err := tx.Exec(ctx, assignCaseStatement, customerID, userID, at); err != nil {
		return err
	}
	table.Audit(ctx, tx, action, customerID, nil, nil)
	return nil
}

// assignmentLife is how long a reviewer keeps a case without deciding it.
const assignmentLife = 24 * time.Hour

const caseBatch = 100

// EndAssignments gives back the cases whose reviewers took them more than 24 hours ago, and escalates those that have lost their last
// reviewer. It runs hourly.
func (s *Service) EndAssignments(ctx context.Context) error {
	err := store.EachFound(ctx, s.db, func(q store.Querier) ([]string, error) {
		return store.All(ctx, q, store.Text, selectStaleAssignments, q.Now().Add(-assignmentLife), caseBatch)
	}, func(tx *store.Tx, id string) error {
		return assignCase(ctx, tx, id, nil, "customers.kyc_assignment_end")
	})
	if err != nil {
		return err
	}
	return s.EscalateCases(ctx)
}

// refreshCases updates the levels and countries of open cases, because documents expire with time.
func (s *Service) refreshCases(ctx context.Context) error {
	last := ""
	for ctx.Err() == nil {
		var ids []string
		err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
			if ids, err = store.All(ctx, tx, store.Text, selectCasesAfter, last, caseBatch); err != nil {
				return err
			}
			for _, id := range ids {
				c, err := table.GetUnchecked(ctx, tx, id)
				if err == nil {
					err = s.refreshCase(ctx, tx, c)
				}
				if err != nil {
					return fmt.Errorf("change the case of %s: %w", id, err)
				}
			}
			return nil
		})
		if err != nil || len(ids) < caseBatch {
			return err
		}
		last = ids[len(ids)-1]
	}
	return ctx.Err()
}
