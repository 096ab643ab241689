// Package privacy exports and erases the data of a person (nFADP, GDPR), within the retention periods of the law.
//
// A person is a customer, a user or a persona, with all records that belong to it. Every module exports and erases its own
// tables, see [kontor/modules/kit/personal]. This package decides who may, when, and in which order, and keeps the record of it.
//
// An erasure runs in small transactions. The first marks the record of the person: nothing is written about them any more. Then
// the ledger beside the database names the erasure, so that it is applied again after the restore of an older backup. At the end
// the files of the database hold nothing of it. An interrupted erasure continues at the next start, before requests are served.
//
// Of several nodes on one database the leader erases; the others wait for it. Such a database has no ledger beside it: the table
// of erasures is written to a file with [Service.Ledger], and applied to a restored database with [Service.Apply].
//
// The module owns the tables erasures, legal_holds and relationships. It publishes no views.
package privacy

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"kontor/modules/kit/evidence"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
	"kontor/store"
)

// Customers is what the module needs of customers.
type Customers interface {
	// Allow returns apierr.CustomerNotFound, apierr.NoAccess and, for a change of an erased customer, apierr.RecordErased.
	Allow(ctx context.Context, q store.Querier, id string, wanted access.Permission) error
	// LastVerified returns when the identity of a customer was last verified, or nil if it never was.
	LastVerified(ctx context.Context, q store.Querier, id string) (*store.Time, error)
	// OfUser returns customers that are not erased and are, or were, the same person as the user.
	OfUser(ctx context.Context, q store.Querier, userID string) ([]string, error)
	// SamePerson returns the customers and users who are, or were, the same person as a customer, and its identity if that says who it is.
	// All of it is proven.
	SamePerson(ctx context.Context, q store.Querier, id string) (customers, users []string, identity *evidence.Proven[types.Identity], err error)
	// CreatorOf returns the user who has recorded themselves as a customer; empty for a record of the bank.
	CreatorOf(ctx context.Context, q store.Querier, id string) (string, error)
	// OfIdentities returns customers that are not erased and have, or had, one of the identities.
	OfIdentities(ctx context.Context, q store.Querier, identities []evidence.Proven[types.Identity]) ([]string, error)
	// CheckSecondPerson returns apierr.SecondPersonRequired and apierr.SelfVerification for a caller who does not count as another
	// person than the proposer of a change of a customer.
	CheckSecondPerson(ctx context.Context, q store.Querier, customerID, proposer string) error
}

// Users is what the module needs of users.
type Users interface {
	// AllowUser returns apierr.UserNotFound and apierr.NoAccess.
	AllowUser(ctx context.Context, q store.Querier, id string, wanted access.Permission) error
	// CheckErasable returns apierr.LastAdministrator.
	CheckErasable(ctx context.Context, tx *store.Tx, userID string) error
}

// Personas is what the module needs of personas.
type Personas interface {
	// AllowPersona returns apierr.PersonaNotFound and apierr.NoAccess.
	AllowPersona(ctx context.Context, q store.Querier, id string, wanted access.Permission) error
	// OfUser returns the personas that are linked to the user alone.
	OfUser(ctx context.Context, q store.Querier, userID string) ([]string, error)
	// RejectOwn returns apierr.OwnPersona for a caller who may review customers and is, or was, the persona, or is linked to it.
	RejectOwn(ctx context.Context, q store.Querier, personaID string) error
	// UsersOf returns the users who are, or were, a persona.
	UsersOf(ctx context.Context, q store.Querier, personaID string) ([]string, error)
	// WithIdentity returns the personas to which staff gave an identity, now or earlier.
	WithIdentity(ctx context.Context, q store.Querier, i evidence.Proven[types.Identity]) ([]string, error)
	// IdentitiesOf returns the present and former identities of a persona that staff wrote.
	IdentitiesOf(ctx context.Context, q store.Querier, personaID string) ([]evidence.Proven[types.Identity], error)
}

// Options are the settings and dependencies of the module.
type Options struct {
	RetentionYears int

	Customers Customers
	Users     Users
	Personas  Personas
	// Modules hold personal data, in the order in which they erase it.
	Modules []personal.Module
	// Owners are the modules that own the records of the kinds.
	Owners map[personal.Kind]personal.Module

	Texts endpoint.Texts
	Log   *slog.Logger
}

// Service is the module. Create one with [New].
type Service struct {
	Options
	db *store.DB

	ctx    context.Context // of erasures in the background
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu      sync.Mutex
	running map[string]chan struct{} // by the id of the erasure; closed at its end
	turn    sync.Mutex               // one erasure at a time

	topic   *store.Topic  // of the status of erasures; the key is an id
	changed chan struct{} // closed and replaced when the status of an erasure has changed
}

// New returns the module on a database.
func New(db *store.DB, o Options) *Service {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Service{Options: o, db: db, ctx: ctx, cancel: cancel,
		running: map[string]chan struct{}{}, changed: make(chan struct{})}
	s.topic = db.Topic("erasures", s.receive)
	return s
}

// Start applies the erasures of the ledger that the database does not have, and continues interrupted ones. Call it before
// requests are served. It returns store.ErrLedger for a ledger that is not authentic.
func (s *Service) Start(ctx context.Context) error {
	if err := s.reconcile(ctx); err != nil {
		return fmt.Errorf("compare the ledger of erasures: %w", err)
	}
	unfinished, err := store.All(ctx, s.db, scanErasure, selectUnfinishedErasures)
	if err != nil {
		return err
	}
	if len(s.db.Nodes()) > 1 {
		return nil // another node may be at it: the leader continues them
	}
	for _, e := range unfinished {
		if e.Status == Running {
			s.Log.Warn("continuing an erasure", "erasure", e.ID, "kind", e.Kind)
			if err := s.eraseData(ctx, e); err != nil {
				return fmt.Errorf("continue erasure %s: %w", e.ID, err)
			}
		}
	}
	return nil
}

// Resume finishes erasures that were interrupted. It runs regularly.
func (s *Service) Resume(ctx context.Context) error {
	unfinished, err := store.All(ctx, s.db, scanErasure, selectUnfinishedErasures)
	if err != nil {
		return err
	}
	for _, e := range unfinished {
		select {
		case <-s.begin(e):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close ends erasures in the background. They continue at the next start.
func (s *Service) Close() {
	s.cancel()
	s.wait.Wait()
}

// answerWithin is how long a request waits for an erasure. A longer one is answered with 202 and continues.
const answerWithin = 8 * time.Second

// person describes the rows of a kind of person.
type person struct {
	kind    personal.Kind
	path    string
	recType access.RecordType
	missing apierr.Kind
	roles   []string // may export
	subject access.Subject
}

var persons = []person{
	{personal.Customer, "/v1/customers/{id}", access.Customers, apierr.CustomerNotFound, []string{access.Advisor, access.Customer}, access.Subject{}},
	{personal.User, "/v1/users/{id}", access.Users, apierr.UserNotFound, []string{access.Advisor, access.Customer}, access.UserIn("id")},
	{personal.Persona, "/v1/personas/{persona_id}", access.Personas, apierr.PersonaNotFound, []string{access.Advisor}, access.PersonaIn("persona_id")},
}

// recordTypes are the types of the records of persons.
var recordTypes = func() map[personal.Kind]access.RecordType {
	byKind := map[personal.Kind]access.RecordType{}
	for _, p := range persons {
		byKind[p.kind] = p.recType
	}
	return byKind
}()

// Endpoints returns the rows of the module.
func (s *Service) Endpoints() []endpoint.Endpoint {
	customer := access.On(access.Customers, access.Read)
	remove := access.On(access.Customers, access.Delete)
	advisors := []string{access.Advisor}
	rows := []endpoint.Endpoint{
		{Name: "privacy.relationship.get", Method: http.MethodGet, Path: "/v1/customers/{id}/relationship", Access: customer, Roles: advisors,
			Summary: "Get the business relationship with a customer, and until when its data must be kept.",
			Faults:  []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.GetRelationship)},
		{Name: "privacy.relationship.set", Method: http.MethodPut, Path: "/v1/customers/{id}/relationship",
			Access: access.On(access.Customers, access.Update), Assurance: endpoint.Decision, Find: s.findReviewed,
			Roles: advisors, Summary: "Record the end of the business relationship with a customer.",
			Faults: []apierr.Kind{apierr.CustomerNotFound, apierr.RecordErased, apierr.SecondPersonRequired, apierr.SelfVerification, apierr.PreconditionFailed},
			Doc: endpoint.Doc{Answers: []endpoint.Answer{
				{Status: http.StatusOK, Body: Relationship{}},
				{Status: http.StatusAccepted, Says: "The end is far in the past. It counts when a second person sends the same.", Body: Relationship{}},
			}},
			Handle: endpoint.JSON(http.StatusOK, s.SetRelationship)},
		{Name: "privacy.hold.get", Method: http.MethodGet, Path: "/v1/customers/{id}/legal-hold", Access: customer,
			Summary: "Get the legal hold of a customer, or that there is none.",
			Faults:  []apierr.Kind{apierr.CustomerNotFound}, Handle: endpoint.JSON(http.StatusOK, s.GetHold)},
		{Name: "privacy.hold.set", Method: http.MethodPut, Path: "/v1/customers/{id}/legal-hold", Access: remove,
			Assurance: endpoint.SecondFactor, Find: s.findHeld,
			Summary: "Place a customer under a legal hold: its data cannot be erased.",
			Faults:  []apierr.Kind{apierr.CustomerNotFound, apierr.RecordErased}, Handle: endpoint.JSON(http.StatusOK, s.SetHold)},
		{Name: "privacy.hold.remove", Method: http.MethodDelete, Path: "/v1/customers/{id}/legal-hold", Access: remove,
			Assurance: endpoint.SecondFactor, Find: s.findHeld,
			Summary: "Remove the legal hold of a customer.",
			Faults:  []apierr.Kind{apierr.CustomerNotFound, apierr.HoldNotFound}, Handle: endpoint.JSON(http.StatusOK, s.RemoveHold)},
		{Name: "privacy.erasures.list", Method: http.MethodGet, Path: "/v1/erasures", Access: remove, Summary: "List erasures.",
			Doc: endpoint.Doc{Search: erasureList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.List)},
		{Name: "privacy.erasures.due", Method: http.MethodGet, Path: "/v1/erasures/due", Access: remove,
			Summary: "List customers whose retention period has ended and whose data may be erased.",
			Doc:     endpoint.Doc{Search: dueList.Search()}, Handle: endpoint.JSON(http.StatusOK, s.ListDue)},
		{Name: "privacy.erasures.get", Method: http.MethodGet, Path: "/v1/erasures/{id}", Access: remove, Summary: "Get an erasure.",
			Faults: []apierr.Kind{apierr.ErasureNotFound}, Handle: endpoint.JSON(http.StatusOK, s.Get)},
	}
	for _, p := range persons {
		rows = append(rows, s.exportRow(p), s.reportRow(p), s.erasureRow(p))
	}
	return endpoint.Group("Privacy", ratelimit.Private, rows)
}

func (s *Service) exportRow(p person) endpoint.Endpoint {
	return endpoint.Endpoint{
		Name: "privacy.export_" + string(p.kind), Method: http.MethodGet, Path: p.path + "/export", Subject: p.subject,
		Access: access.On(p.recType, access.Read), Assurance: endpoint.SecondFactor, Find: s.find(p.kind, s.allowExport), Roles: p.roles,
		Summary: "Export what the caller may read about a " + string(p.kind) + ", as one JSON document.",
		Faults:  []apierr.Kind{p.missing},
		Doc: endpoint.Doc{
			Description: "The answer is streamed. A document that ends early is not valid JSON. Each row is one that the caller could read at its own address, too. Each caller can have one export at a time.",
			Answers:     []endpoint.Answer{{Status: http.StatusOK, Says: "The document.", Body: Export{}}},
			Sends:       []string{"Content-Disposition"},
		},
		Handle: endpoint.Raw(nil, s.send(p.kind, document{action: "privacy.export", file: "-", allow: s.allowExport})),
	}
}

// reportRow has no roles: the right to call it is for the data-protection officer of the bank.
func (s *Service) reportRow(p person) endpoint.Endpoint {
	return endpoint.Endpoint{
		Name: "privacy.report_" + string(p.kind), Method: http.MethodGet, Path: p.path + "/report", Subject: p.subject,
		Access: access.On(p.recType, access.ReadAll), Assurance: endpoint.SecondFactor, Find: s.find(p.kind, s.allowReport),
		PeopleOnly: true,
		Summary:    "Report all that is held about a " + string(p.kind) + ", for the data-protection officer.",
		Faults:     []apierr.Kind{p.missing},
		Doc: endpoint.Doc{
			Description: "The form is that of the export, with the rows that only staff may read. The officer decides what of it the person gets. It contains no codes, keys or passwords.",
			Answers:     []endpoint.Answer{{Status: http.StatusOK, Says: "The document.", Body: Export{}}},
			Sends:       []string{"Content-Disposition"},
		},
		Handle: endpoint.Raw(nil, s.send(p.kind, document{action: "privacy.report", file: "-report-", complete: true, allow: s.allowReport})),
	}
}

func (s *Service) erasureRow(p person) endpoint.Endpoint {
	faults := []apierr.Kind{p.missing}
	switch p.kind {
	case personal.Customer:
		faults = append(faults, apierr.Retained, apierr.RelationshipOpen, apierr.OnHold)
	case personal.User:
		faults = append(faults, apierr.LastAdministrator, apierr.SelfErasure, apierr.HasCustomers, apierr.OnHold)
	case personal.Persona:
		faults = append(faults, apierr.OwnPersona, apierr.OnHold)
	}
	handle := endpoint.JSON(http.StatusOK, s.erase(p.kind))
	if p.kind == personal.Persona {
		handle = endpoint.JSON(http.StatusOK, s.erasePersona)
	}
	return endpoint.Endpoint{
		Name: "privacy.erase_" + string(p.kind), Method: http.MethodPost, Path: p.path + "/erasure", Subject: p.subject, OwnTime: true,
		Access: access.On(p.recType, access.Delete), Assurance: endpoint.SecondFactor, Find: s.find(p.kind, s.allowErasure),
		Summary: "Erase the personal data of a " + string(p.kind) + ". This cannot be undone.",
		Faults:  faults,
		Doc: endpoint.Doc{Answers: []endpoint.Answer{
			{Status: http.StatusOK, Says: "The data are erased, also from the files. A repeated request returns the first erasure.", Body: Erasure{}},
			{Status: http.StatusAccepted, Says: "The erasure has begun and continues.", Body: Erasure{}},
		}},
		Handle: handle,
	}
}
