package rbac

import (
	"context"
	"fmt"
	"slices"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// laterGrant is a grant on an endpoint that a built-in role did not have in earlier versions. A database gets it once, unless
// administrators have changed the role's grants: then they decide.
type laterGrant struct {
	name     string // of its audit entry, which says that it was decided
	role     string // id
	endpoint string
}

var laterGrants = []laterGrant{
	{name: "grant-customers-read-bills", role: access.Customer, endpoint: "POST /v1/invoices/qrcode"},
	{name: "grant-registrants-read-themselves", role: access.Registrant, endpoint: "GET /v1/users/me"},
}

const (
	selectGrantedEndpoints = `SELECT endpoint FROM endpoint_grants WHERE principal_id = $1`
	countOtherGrants       = `SELECT COUNT(*) FROM grant_records WHERE role_id = $1 AND created_by <> $2`
)

// undecided returns the later grants about which nothing was decided in this database.
func (s *Service) undecided(ctx context.Context) ([]laterGrant, error) {
	var open []laterGrant
	for _, g := range laterGrants {
		if !s.serves(g.endpoint) {
			continue
		}
		seq, err := store.LastAuditEntry(ctx, s.db, access.Audit.Name, g.name)
		if err != nil {
			return nil, fmt.Errorf("read whether %s was decided: %w", g.name, err)
		}
		if seq == 0 {
			open = append(open, g)
		}
	}
	return open, nil
}

// decide gives the role the endpoint, unless administrators have changed its grants, and records that this was decided. The initial
// grants must be complete.
func decide(ctx context.Context, tx *store.Tx, g laterGrant, table []endpoint.Endpoint) error {
	changed, err := changedByAdministrators(ctx, tx, g, table)
	if err != nil {
		return err
	}
	if !changed {
		if err := seedGrant(ctx, tx, Grant{RoleID: &g.role, Permissions: []string{}, Endpoint: &g.endpoint}); err != nil {
			return err
		}
	}
	tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "rbac.seed", RecType: access.Audit.Name, RecID: g.name})
	return nil
}

// changedByAdministrators reports whether the role has grants that it did not get at a start, or lacks an initial one.
func changedByAdministrators(ctx context.Context, tx *store.Tx, g laterGrant, table []endpoint.Endpoint) (bool, error) {
	var added int
	if err := tx.QueryRow(ctx, countOtherGrants, g.role, store.NilID).Scan(&added); err != nil {
		return false, err
	}
	granted, err := selectSet(ctx, tx, selectGrantedEndpoints, g.role)
	if err != nil || added > 0 {
		return added > 0, err
	}
	return slices.ContainsFunc(table, func(e endpoint.Endpoint) bool {
		return slices.Contains(e.Roles, g.role) && e.Key() != g.endpoint && !granted[e.Key()]
	}), nil
}
