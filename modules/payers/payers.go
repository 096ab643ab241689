// Package payers keeps the people and companies that pay for a customer.
//
// A payer belongs to one customer for ever; whoever may change the customer may add payers to him, and from then on a
// payer has rights of its own. A payer is never removed: it becomes inactive, and stays readable as such.
//
// The list has a shape and parameters of its own, stricter than those of the other lists, and is made by the same
// query layer.
package payers

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Payer is a payer as the API shows it.
type Payer struct {
	ID         string         `json:"id"`
	CustomerID string         `json:"customer_id"`
	Email      *string        `json:"email"`
	Name       *string        `json:"name" doc:"Of the person; there is a name or a company."` // of the person; there is a name or a company
	Company    *string        `json:"company"`                                                 // its name
	Country    *string        `json:"country" pattern:"^[A-Z]{3}$" doc:"ISO 3166-1 alpha-3."`  // ISO 3166-1 alpha-3
	Active     bool           `json:"active"`
	Metadata   jsontext.Value `json:"metadata"`
	CreatedAt  store.Time     `json:"created_at"`
	CreatedBy  string         `json:"created_by"`
	ModifiedAt store.Time     `json:"modified_at"`
	ModifiedBy string         `json:"modified_by"`

	version int64
}

// ETag is the version of the record.
func (p Payer) ETag() string { return endpoint.VersionTag(p.version) }

// Page is a part of the list of payers.
type Page struct {
	Payers  []Payer `json:"payers"`
	Total   int64   `json:"total" doc:"Payers that the caller may see and that match."` // payers that the caller may see and that match
	HasMore bool    `json:"has_more" doc:"There are payers after these."`               // there are payers after these
}

// customers is what payers needs of the customers.
type customers interface {
	// Allow returns apierr.CustomerNotFound for an unknown customer, and apierr.NoAccess unless the caller may do with
	// him what is wanted.
	Allow(ctx context.Context, q store.Querier, id string, wanted access.Permission) error
}

// Service is the module. Make one with [New].
type Service struct {
	db        *store.DB
	customers customers
	texts     endpoint.Texts
	quota     records.Quota
}

// New makes the module on a database.
func New(db *store.DB, customers customers, texts endpoint.Texts) *Service {
	return &Service{db: db, customers: customers, texts: texts}
}

// SetQuota bounds what one user may store. Without it nothing is counted.
func (s *Service) SetQuota(q records.Quota) { s.quota = q }

// Create adds a payer to a customer that the caller may update. It returns apierr.CustomerNotFound for an unknown
// customer and apierr.NoAccess for one that is not for the caller to change.
func (s *Service) Create(ctx context.Context, in CreateInput) (Payer, error) {
	p := in.payer
	p.ID, p.CreatedBy, p.Active, p.version = store.NewID(), access.From(ctx).UserID, true, 1
	p.ModifiedBy, p.CreatedAt = p.CreatedBy, s.db.Now()
	p.ModifiedAt = p.CreatedAt
	after, answer := table.Digest(s.db, p), s.db.Answer(ctx, p)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.customers.Allow(ctx, tx, p.CustomerID, access.Update); err != nil {
			return err
		}
		if err := s.quota.Charge(ctx, tx, access.Payers, p.CreatedBy, 1, p.weight()); err != nil {
			return err
		}
		if err := insertPayer(ctx, tx, p); err != nil {
			return err
		}
		table.Audit(ctx, tx, "payers.create", p.ID, nil, after)
		tx.Respond(http.StatusCreated, answer)
		return nil
	})
	return p, err
}

// Get gives one payer. It returns apierr.PayerNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Payer, error) {
	return table.Get(ctx, s.db, in.ID, access.Read)
}

// List gives the payers that the caller may see, inactive ones among them, newest first.
func (s *Service) List(ctx context.Context, in ListInput) (Page, error) {
	page, err := payerList.Page(ctx, s.db, in.query, table.Visible(access.From(ctx)), in.ofCompany())
	return Page{Payers: page.Data.Rows, Total: page.Total, HasMore: page.HasMore}, err
}

// Update replaces the data that are given and keeps the others.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Payer, error) {
	return s.change(ctx, in.ID, "payers.update", access.Update, func(before Payer) (Payer, bool, error) {
		p, err := in.apply(before)
		return p, true, err
	})
}

// Archive makes a payer inactive. One that is inactive already stays as it is.
func (s *Service) Archive(ctx context.Context, in OneInput) (endpoint.Message, error) {
	_, err := s.change(ctx, in.ID, "payers.archive", access.Delete, func(p Payer) (Payer, bool, error) {
		changed := p.Active
		p.Active = false
		return p, changed, nil
	})
	return endpoint.Confirm(ctx, s.texts, "payers.archived"), err
}

// change changes a payer by apply and writes its new state.
func (s *Service) change(ctx context.Context, id, action string, wanted access.Permission, apply func(before Payer) (Payer, bool, error)) (Payer, error) {
	return records.Change(ctx, s.db, table, id, records.Changing[Payer]{
		Action: action, Wanted: wanted,
		Apply: func(before Payer, now store.Time) (Payer, bool, error) {
			p, changed, err := apply(before)
			p.ModifiedAt, p.ModifiedBy, p.version = now, access.From(ctx).UserID, before.version+1
			return p, changed, err
		},
		Write: func(ctx context.Context, tx *store.Tx, before, after Payer) error {
			if err := s.quota.Charge(ctx, tx, access.Payers, before.CreatedBy, 0, after.weight()-before.weight()); err != nil {
				return err
			}
			return updatePayer(ctx, tx, after)
		},
	})
}

// weight is what the payer takes of the quota of its creator.
func (p Payer) weight() int64 { return records.Weight(string(p.Metadata)) }

// Standings answers permission checks: the creator of a payer reads, updates and deletes it.
func (s *Service) Standings(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
	return table.Standings(ctx, s.db, userID, ids)
}
