package rbac

import (
	"context"
	"slices"
	"strings"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// matrixChange is the difference between the grants of a role and those that are wanted.
type matrixChange struct {
	*Service
	roleID, userID string

	types          []typeChange
	added, removed []string // endpoints
}

// typeChange is the change of the permissions on one record type.
type typeChange struct {
	recType        string
	added, removed access.Permission
}

func (c *matrixChange) empty() bool { return len(c.types)+len(c.added)+len(c.removed) == 0 }

// compare finds out what changes.
func (c *matrixChange) compare(before Matrix, in MatrixInput) {
	if in.Types != nil {
		wanted := Matrix{Types: *in.Types}.permissions()
		held := before.permissions()
		for _, t := range before.Types {
			now, next := held[t.RecType], wanted[t.RecType]
			if now != next {
				c.types = append(c.types, typeChange{t.RecType, next &^ now, now &^ next})
			}
		}
	}
	if in.Endpoints != nil {
		wanted := unique(slices.Clone(*in.Endpoints))
		c.added = slices.DeleteFunc(slices.Clone(wanted), func(key string) bool { return slices.Contains(before.Endpoints, key) })
		c.removed = slices.DeleteFunc(slices.Clone(before.Endpoints), func(key string) bool { return slices.Contains(wanted, key) })
	}
}

// apply writes the change. The grants of a type that loses permissions are replaced by one grant with the rest.
func (c *matrixChange) apply(ctx context.Context, tx *store.Tx) error {
	for _, t := range c.types {
		rest := t.added
		if t.added != access.None {
			in := GrantInput{RoleID: c.roleID, RecType: t.recType, Permissions: t.added.Names()}
			if err := c.checkDelegation(ctx, tx, c.userID, access.None, in); err != nil {
				return err
			}
		}
		if t.removed != access.None {
			kept, err := c.remove(ctx, tx, selectGrantsOfRole+` AND rec_type = $2 AND rec_id IS NULL`, t.recType,
				t.removed, func(g Grant) bool { return !g.later && parsePermissions(g.Permissions)&t.removed != 0 })
			if err != nil {
				return err
			}
			rest |= kept &^ t.removed
		}
		if rest == access.None {
			continue
		}
		if err := c.insert(ctx, tx, GrantInput{RoleID: c.roleID, RecType: t.recType, Permissions: rest.Names()}); err != nil {
			return err
		}
	}
	for _, key := range c.removed {
		if _, err := c.remove(ctx, tx, selectGrantsOfRole+` AND endpoint = $2`, key, access.None, func(g Grant) bool { return !g.later }); err != nil {
			return err
		}
	}
	for _, key := range c.added {
		if !c.serves(key) {
			return apierr.EndpointNotFound
		}
		in := GrantInput{RoleID: c.roleID, Endpoint: key}
		if err := c.checkDelegation(ctx, tx, c.userID, access.None, in); err != nil {
			return err
		}
		if err := c.insert(ctx, tx, in); err != nil {
			return err
		}
	}
	return nil
}

// keepRest replaces a grant with an end by one with the permissions that are not gone, and with the same end.
func (c *matrixChange) keepRest(ctx context.Context, tx *store.Tx, g Grant, gone access.Permission) error {
	rest := parsePermissions(g.Permissions) &^ gone
	if rest == access.None {
		return nil
	}
	in := g.input()
	in.Permissions = rest.Names()
	return c.insert(ctx, tx, in)
}

// remove deletes those grants that a statement selects and that match. gone are the permissions that the role loses. It returns
// the permissions of the deleted grants, without those that have an end: of these it keeps the rest.
func (c *matrixChange) remove(ctx context.Context, tx *store.Tx, statement, of string, gone access.Permission, matches func(Grant) bool) (access.Permission, error) {
	found, err := store.All(ctx, tx, scanGrant, statement, c.roleID, of)
	if err != nil {
		return access.None, err
	}
	var removed access.Permission
	for _, g := range found {
		if !matches(g) {
			continue
		}
		if _, err := grantTable.Get(ctx, tx, g.ID, access.Delete); err != nil {
			return access.None, err
		}
		if err := c.checkTaking(ctx, tx, g, c.roleID); err != nil {
			return access.None, err
		}
		if err := deleteGrant(ctx, tx, g); err != nil {
			return access.None, err
		}
		grantTable.Audit(ctx, tx, "rbac.grants.delete", g.ID, g, nil)
		if g.ExpiresAt == nil {
			removed |= parsePermissions(g.Permissions)
		} else if err := c.keepRest(ctx, tx, g, gone); err != nil {
			return access.None, err
		}
	}
	return removed, nil
}

func (c *matrixChange) insert(ctx context.Context, tx *store.Tx, in GrantInput) error {
	g := in.grant()
	g.CreatedBy, g.CreatedAt = c.userID, tx.Now()
	if g.Permissions == nil {
		g.Permissions = []string{}
	}
	if err := insertGrant(ctx, tx, g); err != nil {
		return err
	}
	grantTable.Audit(ctx, tx, "rbac.grants.create", g.ID, nil, g)
	return nil
}

// audit writes one entry about the change as a whole, with the permissions of each changed type before and after.
func (c *matrixChange) audit(ctx context.Context, tx *store.Tx, before, after Matrix) {
	was, is := before.permissions(), after.permissions()
	var changes []store.FieldChange
	for _, t := range c.types {
		changes = append(changes, store.Changed(t.recType, strings.Join(was[t.recType].Names(), ", "), strings.Join(is[t.recType].Names(), ", ")))
	}
	for _, key := range c.removed {
		changes = append(changes, store.Changed("endpoints", key, ""))
	}
	for _, key := range c.added {
		changes = append(changes, store.Changed("endpoints", "", key))
	}
	tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: "rbac.roles.permissions", RecType: access.Roles.Name, RecID: c.roleID, Changes: changes})
}

// checkMatrixMatch compares If-Match with the grants of a role.
func checkMatrixMatch(ctx context.Context, m Matrix) error { return endpoint.CheckMatch(ctx, m.ETag()) }
