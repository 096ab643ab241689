package customers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/store"
)

const upsertCaseStatement = `
	INSERT INTO kyc_cases (customer_id, opened_at, suggested_level, country, decision_id, ready)
	VALUES ($1, $2, $3, $4, $5, $6)
	ON CONFLICT (customer_id) DO UPDATE SET suggested_level = excluded.suggested_level, country = excluded.country,
		decision_id = excluded.decision_id, ready = excluded.ready`

const selectCaseStatement = `SELECT assignee, decision_id FROM kyc_cases WHERE customer_id = $1`

const assignCaseStatement = `UPDATE kyc_cases SET assignee = $2, assigned_at = $3 WHERE customer_id = $1`

const selectStaleAssignments = `
	SELECT customer_id FROM kyc_cases WHERE assigned_at < $1 AND customer_id > $2 ORDER BY customer_id LIMIT $3`

const selectCasesAfter = `SELECT customer_id FROM kyc_cases WHERE customer_id > $1 ORDER BY customer_id LIMIT $2`

const (
	caseTables = `kyc_cases JOIN customers ON customers.id = kyc_cases.customer_id LEFT JOIN kyc_decisions d ON d.id = kyc_cases.decision_id`

	caseColumns = `
		kyc_cases.customer_id, customers.type, customers.first_name, customers.last_name, kyc_cases.country, customers.kyc_status,
		customers.verification_level, kyc_cases.suggested_level, kyc_cases.ready, kyc_cases.opened_at, kyc_cases.assignee, kyc_cases.assigned_at,
		d.id, d.kyc_status, d.verification_level, d.reason, d.customer_reason, d.proposed_at, d.proposed_by`

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
		(*string)(&c.SuggestedLevel), &c.Ready, &c.OpenedAt, &c.Assignee, &c.AssignedAt, &d.id, &d.status, &d.level, &d.reason, &d.customerReason, &d.at, &d.by)
	if err == nil && d.id != nil {
		c.PendingDecision = &PendingDecision{ID: *d.id, State: DecisionPending, KYCStatus: Status(*d.status), VerificationLevel: Level(*d.level),
			Reason: *d.reason, CustomerReason: *d.customerReason, ProposedAt: *d.at, ProposedBy: *d.by}
	}
	return c, err
}

func upsertCase(ctx context.Context, tx *store.Tx, c Customer, level Level, ready bool, decisionID *string) error {
	_, err := tx.Exec(ctx, upsertCaseStatement, c.ID, tx.Now(), string(level), c.residence(), decisionID, ready)
	return err
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

// EndAssignments gives back the cases whose reviewers took them more than 24 hours ago. It runs hourly.
func (s *Service) EndAssignments(ctx context.Context) error {
	return s.eachCaseID(ctx, func(ctx context.Context, q store.Querier, last string) ([]string, error) {
		return store.All(ctx, q, store.Text, selectStaleAssignments, q.Now().Add(-assignmentLife), last, caseBatch)
	}, func(ctx context.Context, tx *store.Tx, id string) error {
		return assignCase(ctx, tx, id, nil, "customers.kyc_assignment_end")
	})
}

// refreshCases updates the levels and countries of open cases, because documents expire with time.
func (s *Service) refreshCases(ctx context.Context) error {
	return s.eachCaseID(ctx, func(ctx context.Context, q store.Querier, last string) ([]string, error) {
		return store.All(ctx, q, store.Text, selectCasesAfter, last, caseBatch)
	}, func(ctx context.Context, tx *store.Tx, id string) error {
		c, err := table.GetUnchecked(ctx, tx, id)
		if err != nil {
			return err
		}
		return s.refreshCase(ctx, tx, c)
	})
}

// eachCaseID changes the cases that next returns after an id, one transaction a batch.
func (s *Service) eachCaseID(ctx context.Context, next func(ctx context.Context, q store.Querier, last string) ([]string, error),
	change func(ctx context.Context, tx *store.Tx, id string) error,
) error {
	last := ""
	for ctx.Err() == nil {
		var ids []string
		err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
			if ids, err = next(ctx, tx, last); err != nil {
				return err
			}
			for _, id := range ids {
				if err := change(ctx, tx, id); err != nil {
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
