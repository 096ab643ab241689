package app

import (
	"context"
	"errors"

	"kontor/modules/bank/customers"
	"kontor/modules/bank/personas"
	"kontor/modules/duty/screening"
	"kontor/modules/kit/hit"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// newScreening builds the comparison with sanctions lists.
func newScreening(m *Modules) *screening.Service {
	o := m.Settings.Screening
	return screening.New(m.DB, screening.Options{
		Dir: o.Dir, Threshold: float64(o.ThresholdPercent) / 100, MaxAge: o.MaxAge, FourEyes: m.Settings.KYC.FourEyes,
		Reviews: reviews{m.Customers, m.Personas, m.Policy}, Notifier: m.Notifications, Texts: m.Texts, Log: m.Log,
	})
}

// reviews decides about hits with the rules for verifications.
type reviews struct {
	customers *customers.Service
	personas  *personas.Service
	policy    *access.Current
}

// IsSubject reports whether a reviewer is, or was, the subject of a hit.
func (r reviews) IsSubject(ctx context.Context, q store.Querier, h hit.Hit, userID string) (bool, error) {
	reviewer := access.Caller{UserID: userID, Roles: []string{access.Administrator}}.WithPolicy(r.policy.Load())
	err := r.CheckOther(access.With(ctx, reviewer), q, h)
	if errors.Is(err, apierr.SelfVerification) || errors.Is(err, apierr.OwnPersona) {
		return true, nil
	}
	return false, err
}

// Own returns the customers and personas that are, or were, the caller.
func (r reviews) Own(ctx context.Context, q store.Querier) (customers, personas records.Selection, err error) {
	customers, err = r.customers.Own(ctx, q)
	return customers, r.personas.Own(ctx), err
}

// CheckOther rejects a caller who is, or was, the subject of a hit.
func (r reviews) CheckOther(ctx context.Context, q store.Querier, h hit.Hit) error {
	if h.CustomerID == nil {
		return r.personas.RejectOwn(ctx, q, h.SubjectID)
	}
	return r.customers.CheckOther(ctx, q, *h.CustomerID)
}

// CheckSecondPerson rejects a caller who does not count as another person than the proposer.
func (r reviews) CheckSecondPerson(ctx context.Context, q store.Querier, h hit.Hit, proposer string) error {
	if h.CustomerID == nil {
		return r.customers.CheckOtherProposer(ctx, q, proposer)
	}
	return r.customers.CheckSecondPerson(ctx, q, *h.CustomerID, proposer)
}
