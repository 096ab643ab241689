package rbac

import (
	"context"
	"errors"
	"fmt"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// builtIn are the roles of every database. Name and id never change; the description is a first one.
var builtIn = []Role{
	{ID: access.Administrator, Name: "Administrator", Description: "May do everything."},
	{ID: access.Advisor, Name: "Advisor", Description: "Works with all customers, personas, payers and tasks."},
	{ID: access.Customer, Name: "Customer", Description: "Works with own records."},
	{ID: access.Registrant, Name: "Registrant", Description: "Has registered and validates the first credential."},
}

// typeGrants are what the built-in roles hold on a record type when a database first sees it. Administrators hold
// everything without grants.
var typeGrants = map[access.RecordType]map[string]access.Permission{
	access.Customers: {access.Advisor: access.ReadAll | access.Create | access.Update, access.Customer: access.Create},
	access.Personas:  {access.Advisor: access.ReadAll | access.Create | access.Update, access.Customer: access.Create},
	access.Payers:    {access.Advisor: access.ReadAll | access.Create | access.Update, access.Customer: access.Create},
	access.Tasks:     {access.Advisor: access.ReadAll | access.Create | access.Update},
	access.Chats:     {access.Advisor: access.Create, access.Customer: access.Create},
	access.Invoices:  {access.Advisor: access.Create | access.Read},
}

// firstLimits are the rate-limit rules, in requests a minute, of endpoints that cost much, when a database first sees
// them.
var firstLimits = map[string]int{
	"POST /v1/invoices/qrcode":   600,
	"POST /v1/profile/avatar":    120,
	"GET /v1/notifications/sse":  300,
	"POST /v1/notifications/sse": 300,
}

// Start makes the database know the endpoints of this version and puts the policy in force. Roles, record types and
// endpoints that the database has not seen get their first grants, once: what an administrator takes away stays away.
func (s *Service) Start(ctx context.Context, table []endpoint.Endpoint) error {
	s.table = make(map[string]Endpoint, len(table))
	for _, e := range table {
		s.table[e.Key()] = describe(e)
	}
	if err := s.seed(ctx, table); err != nil {
		return fmt.Errorf("first grants: %w", err)
	}
	return s.policy.load(ctx)
}

// unseen is what a database does not know yet, or knows otherwise.
type unseen struct {
	roles     []Role
	types     []access.RecordType
	endpoints []endpoint.Endpoint // new ones
	changed   []Endpoint          // described otherwise, or gone (not Active)
}

func (u unseen) nothing() bool {
	return len(u.roles)+len(u.types)+len(u.endpoints)+len(u.changed) == 0
}

// seed only writes when there is something new, so that an ordinary start needs no transaction.
func (s *Service) seed(ctx context.Context, table []endpoint.Endpoint) error {
	found, err := s.unseen(ctx, table)
	if err != nil || found.nothing() {
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
		for _, e := range found.changed {
			if err := upsertEndpoint(ctx, tx, e); err != nil {
				return fmt.Errorf("endpoint %s: %w", e.Endpoint, err)
			}
		}
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "rbac.seed", RecType: access.Grants.Name, RecID: store.NilID})
		return nil
	})
}

func (s *Service) unseen(ctx context.Context, table []endpoint.Endpoint) (unseen, error) {
	var u unseen
	roles, err := column(ctx, s.db, selectBuiltInRoles)
	if err != nil {
		return u, err
	}
	for _, role := range builtIn {
		if !roles[role.ID] {
			u.roles = append(u.roles, role)
		}
	}
	types, err := column(ctx, s.db, selectRecordTypes)
	if err != nil {
		return u, err
	}
	for _, t := range access.RecordTypes() {
		if !types[t.ID] {
			u.types = append(u.types, t)
		}
	}
	known, err := knownEndpoints(ctx, s.db)
	if err != nil {
		return u, err
	}
	for _, e := range table {
		before, seen := known[e.Key()]
		switch now := s.table[e.Key()]; {
		case !seen:
			u.endpoints = append(u.endpoints, e)
		case before != now:
			u.changed = append(u.changed, now)
		}
		delete(known, e.Key())
	}
	for _, gone := range known {
		if gone.active {
			gone.active = false
			u.changed = append(u.changed, gone)
		}
	}
	return u, nil
}

func seedRole(ctx context.Context, tx *store.Tx, role Role) error {
	role.BuiltIn, role.CreatedAt, role.CreatedBy = true, tx.Now(), store.NilID
	role.ModifiedAt, role.ModifiedBy, role.version = role.CreatedAt, role.CreatedBy, 1
	auditSeed(tx, access.Roles.Name, role.ID, auditedRole(role))
	return insertRole(ctx, tx, role)
}

func seedType(ctx context.Context, tx *store.Tx, t access.RecordType) error {
	if _, err := tx.Exec(ctx, insertRecordType, t.ID, t.Name, tx.Now()); err != nil {
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
		if err := seedGrant(ctx, tx, Grant{RoleID: &role, Permissions: []string{}, Endpoint: &key}); err != nil {
			return err
		}
	}
	perMinute, ok := firstLimits[key]
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

// seedGrant makes a first grant, unless a part of it is there already.
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
