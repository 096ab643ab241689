// Package payers manages the people and companies that pay for a customer.
//
// A payer belongs to one customer permanently. Callers who may update the customer may add payers to it. Access to an existing
// payer does not depend on access to its customer. A payer is never deleted: it becomes inactive and stays readable. An update can
// reactivate it.
//
// The list has its own form and stricter parameters than other lists, but uses the same query layer.
//
// The module owns the table payers. It publishes the view payer_subjects, with the columns of customer_subjects: the active payers.
package payers

import (
	"context"

	"kontor/modules/kit/recordtype"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// OneInput is the id of a payer.
type OneInput struct {
	ID string `path:"id"`
}

// customers is implemented by the module customers.
type customers interface {
	// Allow returns apierr.CustomerNotFound for an unknown customer, and apierr.NoAccess if the caller does not have the
	// permission on it.
	Allow(ctx context.Context, q store.Querier, id string, wanted access.Permission) error
}

// Service manages payers. Create one with [New].
type Service struct {
	recordtype.Service[Payer]

	db        *store.DB
	customers customers
	texts     endpoint.Texts
}

// New returns a service on a database.
func New(db *store.DB, customers customers, texts endpoint.Texts) *Service {
	return &Service{Service: recordtype.NewService(db, payers, recordtype.Hooks[Payer]{}), db: db, customers: customers, texts: texts}
}

// Create adds a payer to a customer that the caller may update. It returns apierr.CustomerNotFound and apierr.NoAccess.
func (s *Service) Create(ctx context.Context, in CreateInput) (Payer, error) {
	return s.Service.Create(ctx, in.payer, func(ctx context.Context, tx *store.Tx) error {
		return s.customers.Allow(ctx, tx, in.payer.CustomerID, access.Update)
	})
}

// Get returns a payer. It returns apierr.PayerNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Payer, error) {
	return s.Service.Get(ctx, in.ID)
}

// Update replaces the members that the input contains. It reactivates an archived payer, but archives none: callers with
// the permission to update may not have the one to delete.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Payer, error) {
	return s.Service.Update(ctx, in.ID, in.apply)
}

// Archive makes a payer inactive. An inactive payer stays unchanged.
func (s *Service) Archive(ctx context.Context, in OneInput) (endpoint.Message, error) {
	err := s.Service.Archive(ctx, in.ID)
	return endpoint.Confirm(ctx, s.texts, "payers.archived"), err
}
