// Package customers keeps the customers of the bank and the verification of their identity (KYC).
//
// A customer is entered with his data; documents are added to him; reviewers decide. Who is to hear of a change is
// told to the notifier inside the transaction of the change. What happens to a customer's payers, tasks and chats is
// the matter of their modules.
package customers

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/event"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Customer is a customer as the API shows him.
type Customer struct {
	ID                string         `json:"id"`
	Type              string         `json:"type" enum:"individual,business"` // individual or business
	FirstName         string         `json:"first_name"`
	LastName          string         `json:"last_name" doc:"Of a business: its name."` // of a business: its name
	Email             string         `json:"email"`
	Phone             *string        `json:"phone" doc:"E.164."` // E.164
	DateOfBirth       types.Date     `json:"date_of_birth"`
	Nationality       *string        `json:"nationality" doc:"ISO 3166-1 alpha-3."` // ISO 3166-1 alpha-3
	Address           *Address       `json:"address"`
	KYCStatus         Status         `json:"kyc_status"`
	VerificationLevel Level          `json:"verification_level"`
	Metadata          jsontext.Value `json:"metadata"`
	CreatedAt         store.Time     `json:"created_at"`
	UpdatedAt         store.Time     `json:"updated_at"`

	createdBy  string
	verifiedAt *store.Time
	version    int64
}

// Address is a postal address. The country is an ISO 3166-1 code of two or three letters, kept as given.
type Address struct {
	Street     string `json:"street" maxLength:"200"`
	City       string `json:"city" maxLength:"100"`
	PostalCode string `json:"postal_code" maxLength:"20"`
	Country    string `json:"country" doc:"ISO 3166-1, two or three letters, kept as given."`
}

// The types of customers.
const (
	Individual = "individual"
	Business   = "business"
)

// ETag is the version of the record.
func (c Customer) ETag() string { return endpoint.VersionTag(c.version) }

// notifier tells people what happened, in the transaction in which it did.
type notifier interface {
	Notify(ctx context.Context, tx *store.Tx, n event.Event) error
}

// identities knows which personas belong to a user.
type identities interface {
	// Identities returns who a user is, or ever was, by the personas that are linked to them.
	Identities(ctx context.Context, q store.Querier, userID string) ([]types.Identity, error)
}

// Service is the module. Make one with [New].
type Service struct {
	db         *store.DB
	notify     notifier
	identities identities
	quota      records.Quota
}

// New makes the module on a database.
func New(db *store.DB, notify notifier, identities identities) *Service {
	return &Service{db: db, notify: notify, identities: identities}
}

// SetQuota bounds what one user may store. Without it nothing is counted.
func (s *Service) SetQuota(q records.Quota) { s.quota = q }

// Create enters a customer. His verification has not started.
func (s *Service) Create(ctx context.Context, in CreateInput) (Customer, error) {
	c := in.customer
	c.ID, c.createdBy = store.NewID(), access.From(ctx).UserID
	c.KYCStatus, c.VerificationLevel, c.version = NotStarted, LevelNone, 1
	c.CreatedAt = s.db.Now()
	c.UpdatedAt = c.CreatedAt
	keys := c.derive()
	after := s.db.Digest(auditedWith(c, keys))
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.quota.Charge(ctx, tx, access.Customers, c.createdBy, 1, c.weight()); err != nil {
			return err
		}
		if err := insertCustomer(ctx, tx, c, keys); err != nil {
			return err
		}
		table.Audit(ctx, tx, "customers.create", c.ID, nil, after)
		tx.Respond(http.StatusCreated, c)
		return s.notify.Notify(ctx, tx, event.Event{
			Kind: event.CustomerCreated, CustomerID: c.ID, Type: access.Customers, RecordID: c.ID,
			Recipients: []string{c.createdBy}, Args: map[string]any{"Name": c.name()},
		})
	})
	return c, err
}

// weight is what the customer takes of the quota of its creator.
func (c Customer) weight() int64 {
	a := c.address()
	return records.Weight(c.FirstName, c.LastName, c.Email, a.Street, a.City, string(c.Metadata))
}

// name is how the customer is called in notifications.
func (c Customer) name() string {
	if c.FirstName == "" {
		return c.LastName
	}
	return c.FirstName + " " + c.LastName
}

// Get gives one customer. It returns apierr.CustomerNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Customer, error) {
	return table.Get(ctx, s.db, in.ID, access.Read)
}

// List gives the customers that the caller may see.
func (s *Service) List(ctx context.Context, in ListInput) (list.Page[Customer], error) {
	return customerList.Page(ctx, s.db, in.Query, table.Visible(access.From(ctx)))
}

// Update replaces the data that are given and keeps the others. A verified customer whose identity changes goes back to
// review. It returns apierr.SelfVerification for a reviewer who would become the customer whose case they have decided.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Customer, error) {
	prepare := func(ctx context.Context, q store.Querier, before Customer) (step, error) {
		after, err := in.apply(before, types.DateOf(s.db.Now().Std()))
		if err != nil {
			return step{}, err
		}
		return s.revision(ctx, q, before, after)
	}
	st, err := records.Revise(ctx, s.db, table, in.ID, access.Update, prepare, s.write)
	return st.after, err
}

// Allow tells other modules whether the caller may do with a customer what is wanted. It returns apierr.CustomerNotFound
// and apierr.NoAccess.
func (s *Service) Allow(ctx context.Context, q store.Querier, id string, wanted access.Permission) error {
	_, err := table.Get(ctx, q, id, wanted)
	return err
}

// Standings answers permission checks: the creator of a customer reads, updates and deletes him.
func (s *Service) Standings(ctx context.Context, userID string, ids []string) (map[string]access.Standing, error) {
	return table.Standings(ctx, s.db, userID, ids)
}
