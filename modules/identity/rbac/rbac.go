// Package rbac manages roles, grants and stored rate-limit rules, applies them, and answers permission checks.
//
// Grants on record types and endpoints and the rate-limit rules are few. They are kept in memory as one [access.Policy].
// Every commit that changes one of them reloads the whole policy, on every node, before the change is acknowledged. Grants on single records
// stay in their table; the statement that reads a record reads them, too.
//
// The module directory stores which user holds which role. The modules that own records answer for the relations of users to
// them, through [access.Records].
//
// Other applications may have record types of their own ([Service.Ask]): Kontor decides about records that it does not have.
//
// The module owns the tables roles, grants, endpoint_grants, grant_records, record_types, external_grants, endpoints,
// rate_limit_rules, rate_limit_counts, right_uses and access_reviews. It publishes three views:
//
//   - permissions (principal_id, rec_type, rec_id, permission): what a principal may do with a record, or with a type as a whole
//     when rec_id is empty;
//   - role_names (id, name, name_key): the names of roles, as written and folded;
//   - reviewed_rights: the roles of users and the grants of users and roles, with their last use and review.
package rbac

import (
	"context"
	"errors"
	"log/slog"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// users is implemented by the module directory, which stores the roles of users.
type users interface {
	// RolesOf returns the ids of the roles that a user holds, in their order.
	RolesOf(ctx context.Context, q store.Querier, userID string) ([]string, error)
	// AssignedRoles returns the ids of the roles that a user holds now or later, in their order.
	AssignedRoles(ctx context.Context, q store.Querier, userID string) ([]string, error)
	// NextTerm returns when the next role of a user begins or ends; nil: none does.
	NextTerm(ctx context.Context, q store.Querier) (*store.Time, error)
	// ApplyTerms begins and ends roles that are due, at most limit of them, and returns their number.
	ApplyTerms(ctx context.Context, tx *store.Tx, limit int) (int, error)
	// RemoveRole takes a role from all users who hold it. Their sessions see the change on the next request.
	RemoveRole(ctx context.Context, tx *store.Tx, roleID string) error
	// RemoveRoles takes all roles from a user, by the rules of the operation that replaces them.
	RemoveRoles(ctx context.Context, tx *store.Tx, userID string) error
	// HolderOf returns the id of the user who has a credential, or an empty text.
	HolderOf(ctx context.Context, q store.Querier, credentialID string) (string, error)
	// InvitedRoles returns the ids of the roles that an invitation of another user than the caller gives.
	InvitedRoles(ctx context.Context, q store.Querier, invitationID string) ([]string, error)
}

// personas is the module that stores who a persona is.
type personas interface {
	// UsersOf returns the ids of the users who are, or were, a persona.
	UsersOf(ctx context.Context, q store.Querier, personaID string) ([]string, error)
}

// Options are the dependencies of a service.
type Options struct {
	// Policy receives each new policy; the server reads it.
	Policy *access.Current
	// Users stores the roles that users hold.
	Users users
	// Notifier notifies users that a grant ends.
	Notifier notifier
	// Personas stores who a persona is; nil: there are none.
	Personas personas
	// SettingRoles are the names or ids of the roles that settings name: see [Service.checkSettingRole].
	SettingRoles []string
	// Texts are the texts of the locale files.
	Texts endpoint.Texts
	// Records answer for the records of each type. The map may be filled until [Service.Start]. A type without an entry
	// has no records that a grant could name. This package itself answers for roles and grants.
	Records map[access.RecordType]access.Records
	// Log receives errors that occur after a commit; nil means slog's default logger.
	Log *slog.Logger
}

// Service manages roles, grants and rate-limit rules and answers permission checks.
type Service struct {
	Options
	db           *store.DB
	policy       policyLoader
	changed      *store.Topic // the policy; the key does not matter
	terms        terms
	uses         uses
	termsChanged *store.Topic
	endpoints    map[string]Endpoint // by key, the endpoints that this process serves; set by Start
	readers      map[string][]reader // by record type, the endpoints that read a record; set by Start
}

// New returns a service. No policy is in force before [Service.Start].
func New(db *store.DB, o Options) *Service {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Service{
		Options: o, db: db,
		policy: policyLoader{db: db, current: o.Policy, log: o.Log},
	}
	s.changed = db.Topic("rbac.policy", func(string) { s.policy.reload() })
	s.terms.next.Store(never)
	s.termsChanged = db.Topic("rbac.terms", func(string) {
		if err := s.retime(context.Background()); err != nil && !errors.Is(err, store.ErrClosed) {
			s.Log.Error("cannot read when rights begin and end; it is tried again", "cause", err)
		}
	})
	return s
}

// Renew begins and ends the rights that are due, and reads the policy again if it has changed, for a node that does not hear changes.
func (s *Service) Renew(ctx context.Context) error {
	if !s.db.Remembers() {
		if err := s.retime(ctx); err != nil {
			return err
		}
	}
	if err := s.ApplyTerms(ctx); err != nil {
		return err
	}
	return s.policy.load(ctx)
}

// recordsOf returns the [access.Records] that answers for a type, or nil.
func (s *Service) recordsOf(t access.RecordType) access.Records {
	switch t {
	case access.Roles:
		return records.Of(s.db, roleTable)
	case access.Grants:
		return records.Of(s.db, grantTable)
	}
	return s.Records[t]
}
