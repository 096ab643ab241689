// Package payers manages the people and companies that pay for a customer.
//
// A payer belongs to one customer permanently. Callers who may update the customer may add payers to it. Access to an existing
// payer does not depend on access to its customer. A payer is never deleted: it becomes inactive and stays readable. An update can
// reactivate it.
//
// The list has its own form and stricter parameters than other lists, but uses the same query layer.
//
// The module owns the table payers and publishes no views.
package payers

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Payer is the API's representation of a payer.
type Payer struct {
	ID         string         `json:"id"`
	CustomerID string         `json:"customer_id"`
	Email      *string        `json:"email"`
	Name       *string        `json:"name" doc:"The name of a person. A payer has a name, a company or both."`
	Company    *string        `json:"company" doc:"The name of a company."`
	Country    *string        `json:"country" pattern:"^[A-Z]{3}$" doc:"ISO 3166-1 alpha-3."`
	Active     bool           `json:"active"`
	Metadata   jsontext.Value `json:"metadata"`
	CreatedAt  store.Time     `json:"created_at"`
	CreatedBy  string         `json:"created_by"`
	ModifiedAt store.Time     `json:"modified_at"`
	ModifiedBy string         `json:"modified_by"`
	ErasedAt   *store.Time    `json:"erased_at,omitzero" doc:"When the personal data was erased; missing from all other payers."`

	version int64
}

// ETag returns the version of the record.
func (p Payer) ETag() string { return endpoint.VersionTag(p.version) }

// Erased reports whether the personal data was erased. The record does not change any more.
func (p Payer) Erased() bool { return p.ErasedAt != nil }

// EachUser names the creator and the last editor.
func (p Payer) EachUser(add func(id string)) {
	add(p.CreatedBy)
	add(p.ModifiedBy)
}

// Page is one page of the list of payers.
type Page struct {
	Payers  []Payer `json:"payers"`
	Total   int64   `json:"total" doc:"The number of matching payers that the caller may read."`
	HasMore bool    `json:"has_more" doc:"Whether more payers follow."`
}

// EachUser names the users of all payers of the page.
func (p Page) EachUser(add func(id string)) {
	for _, payer := range p.Payers {
		payer.EachUser(add)
	}
}

// customers is implemented by the module customers.
type customers interface {
	// Allow returns apierr.CustomerNotFound for an unknown customer, and apierr.NoAccess if the caller does not have the
	// permission on it.
	Allow(ctx context.Context, q store.Querier, id string, wanted access.Permission) error
}

// Service manages payers. Create one with [New].
type Service struct {
	access.Records // answers permission checks from the relations of the table

	db        *store.DB
	customers customers
	texts     endpoint.Texts
	quota     records.Quota
}

// New returns a service on a database.
func New(db *store.DB, customers customers, texts endpoint.Texts) *Service {
	return &Service{Records: records.Of(db, table), db: db, customers: customers, texts: texts}
}

// SetQuota limits the storage of each user. Without a quota nothing is counted.
func (s *Service) SetQuota(q records.Quota) { s.quota = q }

// Create adds a payer to a customer that the caller may update. It returns apierr.CustomerNotFound and apierr.NoAccess.
func (s *Service) Create(ctx context.Context, in CreateInput) (Payer, error) {
	p := in.payer
	p.ID, p.CreatedBy, p.Active, p.version = store.NewID(), access.From(ctx).UserID, true, 1
	p.ModifiedBy, p.CreatedAt = p.CreatedBy, s.db.Now()
	p.ModifiedAt = p.CreatedAt
	after, answer := table.Answer(ctx, s.db, p)
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
		tx.Respond(answer)
		return nil
	})
	return p, err
}

// Get returns a payer. It returns apierr.PayerNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Payer, error) {
	return table.Get(ctx, s.db, in.ID, access.Read)
}

// List returns the payers that the caller may read, including inactive ones, newest first.
func (s *Service) List(ctx context.Context, in ListInput) (Page, error) {
	page, err := payerList.Page(ctx, s.db, in.query, table.Visible(access.From(ctx)), in.ofCompany())
	return Page{Payers: page.Data.Rows, Total: page.Total, HasMore: page.HasMore}, err
}

// editor updates and archives payers.
var editor = records.Editor[Payer]{
	Table: table, Write: updatePayer,
	Owner:  func(p Payer) string { return p.CreatedBy },
	Weight: Payer.weight,
	Active: func(p *Payer) *bool { return &p.Active },
	Stamp: func(before, after Payer, now store.Time, editor string) Payer {
		after.ModifiedAt, after.ModifiedBy, after.version = now, editor, before.version+1
		return after
	},
}

// Update replaces the members that the input contains. It reactivates an archived payer, but archives none: callers with
// the permission to update may not have the one to delete.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Payer, error) {
	return editor.Update(ctx, s.db, s.quota, in.ID, "payers.update", in.apply)
}

// Archive makes a payer inactive. An inactive payer stays unchanged.
func (s *Service) Archive(ctx context.Context, in OneInput) (endpoint.Message, error) {
	err := editor.Archive(ctx, s.db, s.quota, in.ID, "payers.archive")
	return endpoint.Confirm(ctx, s.texts, "payers.archived"), err
}

// weight returns how many bytes of its creator's quota the payer uses.
func (p Payer) weight() int64 { return records.Weight(string(p.Metadata)) }
