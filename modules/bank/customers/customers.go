// Package customers stores the customers of the bank and the verification of their identity (KYC).
//
// A caller creates a customer, users with access add documents, and reviewers decide. The module sends notifications in the
// transaction of the change. Payers, tasks and chats of a customer belong to their own modules.
//
// The module owns the tables customers, customer_keys, customer_identities, customer_addresses, kyc_documents, kyc_changes,
// kyc_decisions, kyc_decision_exclusions, kyc_cases, customer_name_keys and customer_distinctions. It publishes four views:
//
//   - customer_languages (id, language): the language for messages to a customer, empty for none.
//   - customer_verifications (customer_id, verified_at): the evidence of when a customer was verified. The latest time counts.
//   - customer_subjects (id, customer_id, name, company, birth, nationality, country): whom to compare with sanctions lists.
//   - customer_users (customer_id, user_id): who has recorded themselves as the customer, without erased ones.
package customers

import (
	"cmp"
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/event"
	"kontor/modules/kit/evidence"
	"kontor/modules/kit/hit"
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Customer is the API's representation of a customer.
type Customer struct {
	ID                string         `json:"id"`
	Type              string         `json:"type" enum:"individual,business"`
	FirstName         string         `json:"first_name"`
	LastName          string         `json:"last_name" doc:"The name of a business."`
	Email             string         `json:"email"`
	Phone             *string        `json:"phone" doc:"E.164."`
	DateOfBirth       types.Date     `json:"date_of_birth"`
	Nationality       *string        `json:"nationality" doc:"ISO 3166-1 alpha-3, XKX for Kosovo, or a code of ICAO 9303-3 such as XXA for a stateless person."`
	Address           *Address       `json:"address"`
	KYCStatus         Status         `json:"kyc_status"`
	VerificationLevel Level          `json:"verification_level"`
	Metadata          jsontext.Value `json:"metadata"`
	ExternalID        string         `json:"external_id,omitzero" format:"-" example:"K-1001" doc:"What the bank calls the customer: metadata.external_id as staff wrote it. Imports find the customer by it. Missing if staff wrote none."`
	CreatedAt         store.Time     `json:"created_at"`
	UpdatedAt         store.Time     `json:"updated_at"`
	ErasedAt          *store.Time    `json:"erased_at,omitzero" doc:"When the personal data was erased; missing from all other customers."`

	createdBy  string
	byStaff    bool // the creator acted for the bank, see [records.Creator]
	proven     proven
	verifiedAt *store.Time
	version    int64
}

// proven says which members are proven: staff wrote them, or a reviewer has confirmed them. All others are claimed, see [evidence]. The
// external id is always proven.
type proven struct{ email, phone, identity bool }

// Address is a postal address. Its country is stored as the client sent it.
type Address struct {
	Street     string `json:"street" maxLength:"200"`
	City       string `json:"city" maxLength:"100"`
	PostalCode string `json:"postal_code" maxLength:"20"`
	Country    string `json:"country" doc:"ISO 3166-1, two or three letters, stored as sent."`
}

// The types of customers.
const (
	Individual = "individual"
	Business   = "business"
)

// ETag returns the version of the record.
func (c Customer) ETag() string { return endpoint.VersionTag(c.version) }

// Erased reports whether the personal data was erased. The record does not change any more.
func (c Customer) Erased() bool { return c.ErasedAt != nil }

// notifier sends notifications about an event, in the transaction of the event.
type notifier interface {
	// Prerender renders the messages of an event before the transaction.
	Prerender(ctx context.Context, n event.Event) event.Event
	Notify(ctx context.Context, tx *store.Tx, n event.Event) error
}

// users is implemented by the module directory.
type users interface {
	// Marks returns the names and addresses of a user, also former ones, as keyed digests.
	Marks(ctx context.Context, q store.Querier, userID string) (evidence.User, error)
	// WithAddress returns the users who have validated an address, and those who gave it up.
	WithAddress(ctx context.Context, q store.Querier, address evidence.Proven[string]) ([]string, error)
	// WithFormerAddress returns the users who gave up an address with one of the digests.
	WithFormerAddress(ctx context.Context, q store.Querier, digests []evidence.Proven[string]) ([]string, error)
	// Administrators returns the ids of the active people with the role Administrator.
	Administrators(ctx context.Context, q store.Querier) ([]string, error)
	// Active reports which of the users exist and are active.
	Active(ctx context.Context, q store.Querier, userIDs ...string) (map[string]bool, error)
}

// identities is implemented by the module personas.
type identities interface {
	// Identities returns the present and former identities of a user, from the personas linked to them.
	Identities(ctx context.Context, q store.Querier, userID string) ([]evidence.Proven[types.Identity], []evidence.Claimed[types.Identity], error)
	// LinkedIdentities returns the identities, as staff wrote them, of the personas that are or were linked to those of a user.
	LinkedIdentities(ctx context.Context, q store.Querier, userID string) ([]evidence.Proven[types.Identity], error)
	// RelatedUsers returns the users who are or were the same person as a user, or whose personas are or were linked to theirs.
	RelatedUsers(ctx context.Context, q store.Querier, userID string) (map[string]bool, error)
	// BirthDates returns the dates of birth of a user that other members of staff have recorded.
	BirthDates(ctx context.Context, q store.Querier, userID string) ([]evidence.Proven[string], error)
}

// Service manages customers. Create one with [New].
type Service struct {
	access.Records // answers permission checks from the relations of the table

	db         *store.DB
	notify     notifier
	users      users
	identities identities
	quota      records.Quota
	texts      endpoint.Texts
	fourEyes   string
	cached     *records.Cached[Customer]
	encoded    *list.Kept // customerList with encoded rows

	Peers Peers // set before the first request
}

// Options are the settings of the module.
type Options struct {
	FourEyes string // which decisions need a second person; empty: FourEyesEnhanced
	Texts    endpoint.Texts
}

// Peers are what customers need of modules that are built later.
type Peers struct {
	Screening hit.Screening // compares customers with sanctions lists
}

// New returns a service on a database.
func New(db *store.DB, notify notifier, users users, identities identities, o Options) *Service {
	s := &Service{Records: records.Of(db, table), db: db, notify: notify, users: users, identities: identities,
		texts: o.Texts, fourEyes: cmp.Or(o.FourEyes, FourEyesEnhanced), cached: records.Cache(db, table)}
	s.encoded = list.Of(customerList, s.cached)
	registerKeys(db)
	db.RegisterSealed(store.SealedColumn{Table: documentsTable, Column: numberColumn, Next: s.oldDocuments})
	db.RegisterSealed(store.SealedColumn{Table: changesTable, Column: changesColumn, Next: s.oldChanges})
	return s
}

// SetQuota limits the storage of each user. Without a quota nothing is counted.
func (s *Service) SetQuota(q records.Quota) { s.quota = q }

// Create creates a customer whose verification has not started.
func (s *Service) Create(ctx context.Context, in CreateInput) (Customer, error) {
	n := s.newCustomer(ctx, in.customer)
	answer := s.db.Answer(ctx, n.Customer)
	n.after = s.db.Digest(store.Record{Answer: answer, Stored: n.stored(&n.keys)})
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.insert(ctx, tx, n); err != nil {
			return err
		}
		tx.Respond(answer)
		return nil
	})
	return n.Customer, err
}

// newCustomer is a customer that a transaction will create, with what is computed before it.
type newCustomer struct {
	Customer

	keys  searchKeys
	after store.Digest
}

// newCustomer returns the customer that the caller creates from checked data, without the digest.
func (s *Service) newCustomer(ctx context.Context, c Customer) *newCustomer {
	c.ID, c.createdBy, c.byStaff = store.NewID(), access.From(ctx).UserID, access.From(ctx).ActsForBank(access.Customers)
	c.prove(Customer{}, c.byStaff)
	c.KYCStatus, c.VerificationLevel, c.version = NotStarted, LevelNone, 1
	c.CreatedAt = s.db.Now()
	c.UpdatedAt = c.CreatedAt
	return &newCustomer{Customer: c, keys: c.searchKeys()}
}

// insert creates a customer. It writes nothing when it returns apierr.QuotaExceeded.
func (s *Service) insert(ctx context.Context, tx *store.Tx, n *newCustomer) error {
	if err := s.quota.Charge(ctx, tx, access.Customers, n.createdBy, 1, n.weight()); err != nil {
		return err
	}
	if err := insertCustomer(ctx, tx, &n.Customer, &n.keys); err != nil {
		return err
	}
	table.Audit(ctx, tx, "customers.create", n.ID, nil, n.after)
	return nil
}

// weight returns how many bytes of its creator's quota the customer uses.
func (c Customer) weight() int64 {
	a := c.address()
	return records.Weight(c.FirstName, c.LastName, c.Email, a.Street, a.City, string(c.Metadata))
}

// name returns the customer's name for notifications.
func (c Customer) name() string { return types.FullName(c.FirstName, c.LastName) }

// Get returns a customer. It returns apierr.CustomerNotFound and apierr.NoAccess.
func (s *Service) Get(ctx context.Context, in OneInput) (Customer, error) {
	return table.Get(ctx, s.db, in.ID, access.Read)
}

// getEncoded is Get with the encoded answer.
func (s *Service) getEncoded(ctx context.Context, in OneInput) (*endpoint.Encoded, error) {
	return s.cached.Get(ctx, in.ID, access.Read)
}

// List returns the customers that the caller may read.
func (s *Service) List(ctx context.Context, in ListInput) (list.Page[Customer], error) {
	return customerList.Page(ctx, s.db, in.Query.WithText(in.Text, source), table.Visible(access.From(ctx)))
}

// listEncoded is List with the encoded answer.
func (s *Service) listEncoded(ctx context.Context, in ListInput) (*endpoint.Encoded, error) {
	page, err := s.encoded.Page(ctx, s.db, in.Query.WithText(in.Text, source), table.Visible(access.From(ctx)))
	if err != nil {
		return nil, err
	}
	return list.Encode(page)
}

// Update replaces the members that the input contains. A verified customer whose identity changes returns to review. Update
// returns apierr.SelfVerification when a reviewer gives a customer they have decided about their own identity.
func (s *Service) Update(ctx context.Context, in UpdateInput) (Customer, error) {
	return s.update(ctx, in, func(*store.Tx) error { return nil })
}

// update is Update with a further write in its transaction.
func (s *Service) update(ctx context.Context, in UpdateInput, and func(tx *store.Tx) error) (Customer, error) {
	prepare := func(ctx context.Context, q store.Querier, before Customer) (preparedChange, error) {
		after, err := in.apply(before, types.DateOf(s.db.Now().Std()))
		if err != nil {
			return preparedChange{}, err
		}
		return s.prepareUpdate(ctx, q, before, after)
	}
	if err := s.prepareKey(ctx, in.ID); err != nil {
		return Customer{}, err
	}
	change, err := records.UpdatePrepared(ctx, s.db, table, in.ID, access.Update, prepare, func(ctx context.Context, tx *store.Tx, change preparedChange) error {
		if err := s.write(ctx, tx, change); err != nil {
			return err
		}
		return and(tx)
	})
	return change.after, err
}

const selectErased = `SELECT erased_at IS NOT NULL FROM customers WHERE id = $1`

// NotErased returns apierr.RecordErased for a customer whose personal data was erased: no new records may refer to it.
func (s *Service) NotErased(ctx context.Context, q store.Querier, id string) error {
	var erased bool
	err := q.QueryRow(ctx, selectErased, id).Scan(&erased)
	if err == nil && erased {
		return apierr.RecordErased
	}
	return err
}

// Allow checks for other modules that the caller has a permission on a customer. It returns apierr.CustomerNotFound,
// apierr.NoAccess and, for a change of an erased customer, apierr.RecordErased.
func (s *Service) Allow(ctx context.Context, q store.Querier, id string, wanted access.Permission) error {
	c, err := table.Get(ctx, q, id, wanted)
	if err == nil && c.Erased() && wanted != access.Read {
		err = apierr.RecordErased
	}
	return err
}
