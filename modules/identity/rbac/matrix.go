package rbac

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Matrix holds all grants of a role on record types as a whole and on endpoints. Grants on single records are not part of it.
type Matrix struct {
	RoleID    string            `json:"role_id" format:"uuid"`
	Fixed     bool              `json:"fixed" doc:"true for Administrator, which may do everything without grants."`
	Holders   int64             `json:"holders" doc:"The number of users who hold the role."`
	Types     []TypePermissions `json:"types" doc:"Every record type, in alphabetical order."`
	Endpoints []string          `json:"endpoints" doc:"The endpoints that the role may call, in alphabetical order." example:"GET /v1/customers/{id}"`
}

// TypePermissions are the permissions on a record type as a whole.
type TypePermissions struct {
	RecType     string   `json:"rec_type" example:"customers"`
	Permissions []string `json:"permissions" enum:"create,read,update,delete,read_all" maxItems:"5"`
}

// ETag covers the permissions and endpoints, and not the number of holders.
func (m Matrix) ETag() string {
	h := fnv.New64a()
	for _, t := range m.Types {
		fmt.Fprintf(h, "%s %q\n", t.RecType, t.Permissions)
	}
	fmt.Fprintf(h, "%q", m.Endpoints)
	return fmt.Sprintf("%016x", h.Sum64())
}

// permissions returns the permissions by name of the record type.
func (m Matrix) permissions() map[string]access.Permission {
	found := map[string]access.Permission{}
	for _, t := range m.Types {
		found[t.RecType] = parsePermissions(t.Permissions)
	}
	return found
}

func parsePermissions(names []string) (p access.Permission) {
	for _, name := range names {
		one, _ := access.ParsePermission(name)
		p |= one
	}
	return p
}

const (
	countHolders = `SELECT COUNT(*) FROM held_roles WHERE role_id = $1`

	countEveryone = `SELECT COUNT(*) FROM people WHERE id IN (` + records.HoldersOfEveryone + `)`
)

// matrix returns the grants of a role that the caller may read. It returns apierr.RoleNotFound and apierr.NoAccess.
func (s *Service) matrix(ctx context.Context, in endpoint.ByID) (m Matrix, err error) {
	err = s.db.View(ctx, func(v *store.View) error {
		if _, err := roleTable.Get(ctx, v, in.ID, access.Read); err != nil {
			return err
		}
		m, err = readMatrix(ctx, v, in.ID)
		return err
	})
	return m, err
}

func readMatrix(ctx context.Context, q store.Querier, roleID string) (Matrix, error) {
	m := Matrix{RoleID: roleID, Fixed: roleID == access.Administrator, Endpoints: []string{}}
	held, err := readGrants(ctx, q, ` AND principal_id = $1`, roleID)
	counting, of := countHolders, roleID
	if roleID == access.Everyone {
		counting, of = countEveryone, access.Registrant
	}
	if err == nil {
		err = q.QueryRow(ctx, counting, of).Scan(&m.Holders)
	}
	if err != nil {
		return m, err
	}
	for _, t := range access.RecordTypes() {
		permissions := held.Types[roleID][t.Name]
		if m.Fixed {
			permissions = access.All
		}
		m.Types = append(m.Types, TypePermissions{t.Name, permissions.Names()})
	}
	slices.SortFunc(m.Types, func(a, b TypePermissions) int { return strings.Compare(a.RecType, b.RecType) })
	m.Endpoints = append(m.Endpoints, held.Endpoints[roleID]...)
	slices.Sort(m.Endpoints)
	return m, nil
}

// MatrixInput contains the wanted grants of a role. A missing member keeps what the role has. The limits exceed the numbers of record types
// and endpoints.
type MatrixInput struct {
	ID        string             `path:"id"`
	Types     *[]TypePermissions `json:"types" required:"false" nullable:"false" maxItems:"1000" doc:"The permissions on all record types. A type that is not listed gets none."`
	Endpoints *[]string          `json:"endpoints" required:"false" nullable:"false" maxItems:"1000" doc:"All endpoints that the role may call, as GET /v1/rbac/endpoints lists them." example:"GET /v1/customers/{id}"`
}

// Validate checks types and permissions. The service checks endpoints.
func (in *MatrixInput) Validate(v *apierr.Fields) {
	if in.Types != nil {
		seen := map[string]bool{}
		for i, t := range *in.Types {
			at := fmt.Sprintf("types.%d.", i)
			if _, known := access.LookupType(t.RecType); !known || seen[t.RecType] {
				v.Add(at+"rec_type", "invalid.unknown_record_type")
			}
			seen[t.RecType] = true
			for _, name := range t.Permissions {
				if _, known := access.ParsePermission(name); !known {
					v.Add(at+"permissions", "invalid.one_of", apierr.Args{"Values": names(access.All)})
					break
				}
			}
		}
	}
}

// setMatrix replaces the grants of a role on record types and endpoints in one transaction, in force for the next request. The
// rules of single grants apply to each of them. Callers can only add what they hold themselves, and nothing to a role of theirs.
// They can only remove grants that they may delete. Administrator cannot be changed, so that its holders always keep all rights.
//
// It returns apierr.RoleNotFound, apierr.NoAccess, apierr.FixedPermissions, apierr.EndpointNotFound, apierr.GrantToSelf,
// apierr.GrantNotHeld and apierr.PreconditionFailed.
func (s *Service) setMatrix(ctx context.Context, in MatrixInput) (m Matrix, err error) {
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if _, err := roleTable.Get(ctx, tx, in.ID, access.Read); err != nil {
			return err
		}
		before, err := readMatrix(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		change := matrixChange{Service: s, roleID: in.ID, userID: access.From(ctx).UserID}
		change.compare(before, in)
		m = before
		if err := endpoint.CheckMatch(ctx, before.ETag()); err != nil || change.empty() {
			return err
		}
		if before.Fixed {
			return apierr.FixedPermissions
		}
		if err := change.apply(ctx, tx); err != nil {
			return err
		}
		if m, err = readMatrix(ctx, tx, in.ID); err != nil {
			return err
		}
		change.audit(ctx, tx, before, m)
		tx.Announce(s.changed, "")
		return nil
	})
	return m, err
}

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
