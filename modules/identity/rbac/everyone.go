package rbac

import (
	"context"
	"errors"
	"fmt"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/store"
)

// Every active user holds the role Everyone, see [access.HeldRoles]. It has grants on endpoints only, for data of the caller's own:
// permissions on records for everyone would make customers staff.

const (
	selectRoleNamed = `SELECT ` + roleColumns + ` FROM roles WHERE name_key = $1`

	selectName = `SELECT 1 FROM roles WHERE name_key = $1`

	// Grants that administrators have created are theirs.
	selectInitialGrants = `
		SELECT ` + grantColumns + ` FROM grant_records
		WHERE endpoint = $1 AND role_id IN ($2, $3) AND created_by = $4 ORDER BY id`

	selectMachines = `
		SELECT h.user_id FROM held_roles h JOIN people p ON p.id = h.user_id
		WHERE h.role_id = $1 AND p.kind = 'service' ORDER BY h.user_id`
)

// introduceEveryone gives a database the grants of Everyone. In earlier versions the roles Advisor and Customer had them. They lose
// them, so that what is taken from Everyone is taken from all people. Service accounts with these roles get grants of their own: they do
// not hold Everyone, and may call what they could call before.
func introduceEveryone(ctx context.Context, tx *store.Tx, table []endpoint.Endpoint) error {
	for _, e := range table {
		key := e.Key()
		if !e.HeldByEveryone() {
			continue
		}
		if err := seedGrant(ctx, tx, endpointGrant(access.Everyone, key)); err != nil {
			return err
		}
		initial, err := store.All(ctx, tx, scanGrant, selectInitialGrants, key, access.Advisor, access.Customer, store.NilID)
		if err != nil {
			return err
		}
		for _, g := range initial {
			if e.ForMachines() {
				if err := keepForMachines(ctx, tx, g); err != nil {
					return err
				}
			}
			if err := deleteGrant(ctx, tx, g); err != nil {
				return err
			}
			grantTable.Audit(ctx, tx, "rbac.grants.delete", g.ID, g, nil)
		}
	}
	return nil
}

// endpointGrant returns an initial grant of a role on an endpoint.
func endpointGrant(role, key string) Grant {
	return Grant{RoleID: &role, Permissions: []string{}, Endpoint: &key}
}

// keepForMachines gives the service accounts that hold the role of a grant on an endpoint the same grant.
func keepForMachines(ctx context.Context, tx *store.Tx, g Grant) error {
	machines, err := store.All(ctx, tx, store.Text, selectMachines, *g.RoleID)
	for _, id := range machines {
		if err == nil {
			err = seedGrant(ctx, tx, Grant{UserID: &id, Permissions: []string{}, Endpoint: g.Endpoint})
		}
	}
	return err
}

// freeName renames a role of the bank that has the name of a built-in role that is new to the database.
func freeName(ctx context.Context, tx *store.Tx, name string) error {
	before, err := scanRole(tx.QueryRow(ctx, selectRoleNamed, types.Fold(name)))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	after := before
	for n := 2; ; n++ {
		after.Name = fmt.Sprintf("%s (%d)", before.Name, n)
		taken, err := store.Exists(ctx, tx, selectName, types.Fold(after.Name))
		if err != nil {
			return err
		}
		if !taken {
			break
		}
	}
	after.ModifiedAt, after.ModifiedBy, after.version = tx.Now(), store.NilID, before.version+1
	roleTable.Audit(ctx, tx, "rbac.roles.update", after.ID, before, after)
	return tx.Run(ctx, updateRoleRow, after.ID, after.Name, types.Fold(after.Name), after.Description,
		after.ModifiedAt, after.ModifiedBy, after.version)
}
