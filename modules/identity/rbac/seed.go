package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// BuiltInNames returns the names of the roles that every database has and that users can be given.
func BuiltInNames() []string {
	var names []string
	for _, role := range builtIn {
		if role.ID != access.Everyone {
			names = append(names, role.Name)
		}
	}
	return names
}

// builtIn are the roles of every database. Their names and ids never change; administrators may change the descriptions.
var builtIn = []Role{
	{ID: access.Administrator, Name: "Administrator", Description: "May do everything."},
	{ID: access.Advisor, Name: "Advisor", Description: "Works with all customers, personas, payers and tasks."},
	{ID: access.Customer, Name: "Customer", Description: "Works with own records."},
	{ID: access.Registrant, Name: "Registrant", Description: "Has registered and validates the first credential."},
	{ID: access.Everyone, Name: "Everyone", Description: "Every active user has it without being given it, for data of their own."},
}

// typeGrants are the initial permissions of the built-in roles on a record type. A database gets them when it first sees the
// type. Administrators hold all permissions without grants.
var typeGrants = map[access.RecordType]map[string]access.Permission{
	access.Customers: {access.Advisor: access.ReadAll | access.Create | access.Update, access.Customer: access.Create},
	access.Personas:  {access.Advisor: access.ReadAll | access.Create | access.Update, access.Customer: access.Create},
	access.Payers:    {access.Advisor: access.ReadAll | access.Create | access.Update, access.Customer: access.Create},
	access.Tasks:     {access.Advisor: access.ReadAll | access.Create | access.Update},
	access.Chats:     {access.Advisor: access.Create, access.Customer: access.Create},
	access.Invoices:  {access.Advisor: access.Create | access.Read},
}

// defaultLimits are the initial rate-limit rules of expensive endpoints, in requests a minute. A database gets them when it
// first sees the endpoint.
var defaultLimits = map[string]int{
	"POST /v1/invoices/qrcode":   600,
	"POST /v1/profile/avatar":    120,
	"GET /v1/notifications/sse":  300,
	"POST /v1/notifications/sse": 300,
}

// Start records the endpoints of this version in the database and puts the policy in force. Roles, record types and endpoints
// that are new to the database get their initial grants, once: a grant that an administrator deletes does not return.
func (s *Service) Start(ctx context.Context, table []endpoint.Endpoint) error {
	s.endpoints = make(map[string]Endpoint, len(table))
	for _, e := range table {
		s.endpoints[e.Key()] = describe(e)
	}
	s.readers = readersOf(table)
	if err := s.seed(ctx, table); err != nil {
		return fmt.Errorf("initial grants: %w", err)
	}
	if err := s.retime(ctx); err != nil {
		return err
	}
	if err := s.ApplyTerms(ctx); err != nil {
		return err
	}
	return s.policy.load(ctx)
}

// missingSeeds are the roles, types and endpoints that a database does not have yet.
type missingSeeds struct {
	roles     []Role
	types     []access.RecordType
	endpoints []endpoint.Endpoint // new ones
	changed   []Endpoint          // with a new description, or removed (not active)
	later     []laterGrant        // about which nothing was decided
}

func (missing missingSeeds) empty() bool {
	return len(missing.roles)+len(missing.types)+len(missing.endpoints)+len(missing.changed)+len(missing.later) == 0
}

// seed writes only if something is missing, so that an ordinary start needs no transaction.
func (s *Service) seed(ctx context.Context, table []endpoint.Endpoint) error {
	found, err := s.missingSeeds(ctx, table)
	if err != nil || found.empty() {
		return err
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		for _, role := range found.roles {
			if err := seedRole(ctx, tx, role); err != nil {
				return fmt.Errorf("role %s: %w", role.Name, err)
			}
		}
		for _, t := range found.types {
			if err := seedType(ctx, tx, t); err != nil {
				return fmt.Errorf("record type %s: %w", t, err)
			}
		}
		for _, e := range found.endpoints {
			if err := seedEndpoint(ctx, tx, e); err != nil {
				return fmt.Errorf("endpoint %s: %w", e.Key(), err)
			}
		}
		if slices.ContainsFunc(found.roles, func(r Role) bool { return r.ID == access.Everyone }) {
			if err := introduceEveryone(ctx, tx, table); err != nil {
				return fmt.Errorf("grants of Everyone: %w", err)
			}
		}
		for _, e := range found.changed {
			if err := upsertEndpoint(ctx, tx, e); err != nil {
				return fmt.Errorf("endpoint %s: %w", e.Endpoint, err)
			}
		}
		for _, g := range found.later {
			if err := decide(ctx, tx, g, table); err != nil {
				return fmt.Errorf("grant on %s: %w", g.endpoint, err)
			}
		}
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "rbac.seed", RecType: access.Grants.Name, RecID: store.NilID})
		return nil
	})
}

func (s *Service) missingSeeds(ctx context.Context, table []endpoint.Endpoint) (missingSeeds, error) {
	var missing missingSeeds
	roles, err := store.All(ctx, s.db, store.Text, selectBuiltInRoles)
	if err != nil {
		return missing, err
	}
	for _, role := range builtIn {
		if !slices.Contains(roles, role.ID) {
			missing.roles = append(missing.roles, role)
		}
	}
	types, err := store.All(ctx, s.db, store.Text, selectRecordTypes)
	if err != nil {
		return missing, err
	}
	for _, t := range access.RecordTypes() {
		if !slices.Contains(types, t.ID) {
			missing.types = append(missing.types, t)
		}
	}
	if missing.later, err = s.undecided(ctx); err != nil {
		return missing, err
	}
	known, err := knownEndpoints(ctx, s.db)
	if err != nil {
		return missing, err
	}
	for _, e := range table {
		before, seen := known[e.Key()]
		switch now := s.endpoints[e.Key()]; {
		case !seen:
			missing.endpoints = append(missing.endpoints, e)
		case before != now:
			missing.changed = append(missing.changed, now)
		}
		delete(known, e.Key())
	}
	for _, gone := range known {
		if gone.active {
			gone.active = false
			missing.changed = append(missing.changed, gone)
		}
	}
	return missing, nil
}

func seedRole(ctx context.Context, tx *store.Tx, role Role) error {
	role.BuiltIn, role.CreatedAt, role.CreatedBy = true, tx.Now(), store.NilID
	role.ModifiedAt, role.ModifiedBy, role.version = role.CreatedAt, role.CreatedBy, 1
	if err := freeName(ctx, tx, role.Name); err != nil {
		return err
	}
	auditSeed(tx, access.Roles.Name, role.ID, auditedRole(role))
	return insertRole(ctx, tx, role)
}

func seedType(ctx context.Context, tx *store.Tx, t access.RecordType) error {
	_, err := tx.Exec(ctx, insertRecordType, t.ID, t.Name, tx.Now())
	if errors.Is(err, store.ErrDuplicate) { // grants on that type must not become grants on records of Kontor
		err = fmt.Errorf("a record type of another application has this name; delete it with the former version of Kontor: %w", err)
	}
	if err != nil {
		return err
	}
	for _, role := range builtIn {
		permissions := typeGrants[t][role.ID]
		if permissions == access.None {
			continue
		}
		if err := seedGrant(ctx, tx, Grant{RoleID: &role.ID, RecType: &t.Name, Permissions: permissions.Names()}); err != nil {
			return err
		}
	}
	return nil
}

func seedEndpoint(ctx context.Context, tx *store.Tx, e endpoint.Endpoint) error {
	key := e.Key()
	if err := upsertEndpoint(ctx, tx, describe(e)); err != nil {
		return err
	}
	for _, role := range e.Roles {
		if err := seedGrant(ctx, tx, endpointGrant(role, key)); err != nil {
			return err
		}
	}
	perMinute, ok := defaultLimits[key]
	if !ok {
		return nil
	}
	if _, err := selectLimit(ctx, tx, key); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	rule := RateLimit{Endpoint: key, PerMinute: &perMinute, ModifiedAt: tx.Now(), ModifiedBy: store.NilID, version: 1}
	auditSeed(tx, access.RateLimits.Name, key, auditedLimit(rule))
	return upsertLimit(ctx, tx, rule)
}

// seedGrant creates an initial grant. It does nothing if the role already has one of its permissions.
func seedGrant(ctx context.Context, tx *store.Tx, g Grant) error {
	g.ID, g.CreatedAt, g.CreatedBy = store.NewID(), tx.Now(), store.NilID
	err := insertGrant(ctx, tx, g)
	if errors.Is(err, apierr.GrantExists) {
		return nil
	}
	if err == nil {
		auditSeed(tx, access.Grants.Name, g.ID, auditedGrant(g))
	}
	return err
}
