package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Role is a named set of grants that users can hold. Built-in roles can neither be renamed nor deleted. Their descriptions and
// grants can be changed.
type Role struct {
	ID          string     `json:"id"`
	Name        string     `json:"name" example:"Auditor"`
	Description string     `json:"description" example:"Reads everything, changes nothing"`
	BuiltIn     bool       `json:"built_in" example:"false" doc:"A built-in role can neither be renamed nor deleted."`
	CreatedAt   store.Time `json:"created_at"`
	CreatedBy   string     `json:"created_by"`
	ModifiedAt  store.Time `json:"modified_at"`
	ModifiedBy  string     `json:"modified_by"`

	version int64
}

// EachUser names the creator and the last editor.
func (r Role) EachUser(add func(id string)) {
	add(r.CreatedBy)
	add(r.ModifiedBy)
}

// ETag returns the version of the role.
func (r Role) ETag() string { return endpoint.VersionTag(r.version) }

const (
	maxRoleName        = 100  // characters
	maxRoleDescription = 1000 // characters
)

// checkRole checks the name and the description of a role, as far as they are given. A name that looks like an id could not be used
// to name the role.
func checkRole(v *apierr.Fields, name, description *string) {
	if name != nil {
		if *name = validate.Required(v, "name", *name, maxRoleName); types.IsID(*name) {
			v.Add("name", "invalid.role_name_is_id")
		}
	}
	if description != nil {
		*description = validate.Text(v, "description", *description, maxRoleDescription)
	}
}

// createRoleInput describes a new role; its name is required.
type createRoleInput struct {
	Name        *string `json:"name" maxLength:"100" nullable:"false" example:"Auditor"`
	Description *string `json:"description" maxLength:"1000" example:"Reads everything, changes nothing"`
}

// Validate applies the rules of RoleInput and requires a name.
func (in *createRoleInput) Validate(v *apierr.Fields) {
	if in.Name == nil {
		v.Add("name", "invalid.required")
	}
	checkRole(v, in.Name, in.Description)
}

// postRole creates a role without grants. It returns apierr.RoleInSettings, and apierr.RoleExists for a name that exists; case does
// not matter.
func (s *Service) postRole(ctx context.Context, in createRoleInput) (Role, error) {
	caller := access.From(ctx)
	role := Role{ID: store.NewID(), CreatedBy: caller.UserID, ModifiedBy: caller.UserID, version: 1}
	role.apply(in.Name, in.Description)
	if err := s.checkSettingRole(ctx, role); err != nil {
		return Role{}, err
	}
	role.CreatedAt = s.db.Now()
	role.ModifiedAt = role.CreatedAt
	after, answer := roleTable.Answer(ctx, s.db, role)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := insertRole(ctx, tx, role); err != nil {
			return err
		}
		roleTable.Audit(ctx, tx, "rbac.roles.create", role.ID, nil, after)
		tx.Respond(answer)
		return nil
	})
	return role, roleError(err)
}

func (r *Role) apply(name, description *string) {
	if name != nil {
		r.Name = *name
	}
	if description != nil {
		r.Description = *description
	}
}

// roleError translates errors of writes to the table roles.
func roleError(err error) error {
	if errors.Is(err, store.ErrDuplicate) {
		return apierr.RoleExists.Wrap(err)
	}
	return err
}

// getRole returns a role. It returns apierr.RoleNotFound and apierr.NoAccess.
func (s *Service) getRole(ctx context.Context, in endpoint.ByID) (Role, error) {
	return roleTable.Get(ctx, s.db, in.ID, access.Read)
}

// listRoles returns the roles that the caller may read.
func (s *Service) listRoles(ctx context.Context, in list.Input) (list.Page[Role], error) {
	return roleList.Page(ctx, s.db, in.Query, roleTable.Visible(access.From(ctx)))
}

// checkSettingRole returns apierr.RoleInSettings for a role that the settings name, by auth.oidc.role_map or auth.mfa.required_roles,
// unless the caller is an administrator. Such a name gives the role to people, or obliges its holders to a second factor: creating,
// renaming or deleting the role gives and takes as much, beyond what its grants say.
func (s *Service) checkSettingRole(ctx context.Context, roles ...Role) error {
	if access.From(ctx).Administrator() {
		return nil
	}
	for _, named := range s.SettingRoles {
		for _, role := range roles {
			if strings.EqualFold(named, role.ID) || types.Fold(named) == types.Fold(role.Name) {
				return apierr.RoleInSettings
			}
		}
	}
	return nil
}

// putRole changes the name and description of a role. It returns apierr.RoleNotFound, apierr.NoAccess, apierr.RoleBuiltIn
// for a new name of a built-in role, apierr.RoleInSettings, apierr.RoleExists and apierr.PreconditionFailed.
func (s *Service) putRole(ctx context.Context, in putRoleInput) (Role, error) {
	role, err := records.Update(ctx, s.db, roleTable, in.ID, records.Edit[Role]{
		Action: "rbac.roles.update", Wanted: access.Update,
		Apply: func(before Role, now store.Time) (Role, bool, error) {
			role := before
			role.apply(in.Name, in.Description)
			if role.BuiltIn && role.Name != before.Name {
				return role, false, apierr.RoleBuiltIn
			}
			if role.Name != before.Name {
				if err := s.checkSettingRole(ctx, before, role); err != nil {
					return role, false, err
				}
			}
			changed := role != before
			role.ModifiedAt, role.ModifiedBy, role.version = now, access.From(ctx).UserID, before.version+1
			return role, changed, nil
		},
		Write: func(ctx context.Context, tx *store.Tx, _, r Role) error {
			return tx.Run(ctx, updateRoleRow, r.ID, r.Name, types.Fold(r.Name), r.Description, r.ModifiedAt, r.ModifiedBy, r.version)
		},
	})
	return role, roleError(err)
}

// deleteRole deletes a role and its grants and takes it from its holders, in force for their next request. Callers cannot
// delete a role that they hold, because that would change their own roles. It returns apierr.RoleNotFound, apierr.NoAccess,
// apierr.RoleBuiltIn, apierr.RoleInSettings, apierr.GrantToSelf and apierr.PreconditionFailed.
func (s *Service) deleteRole(ctx context.Context, in endpoint.ByID) (endpoint.Message, error) {
	err := s.db.InTx(ctx, func(tx *store.Tx) error { return s.removeRole(ctx, tx, in.ID) })
	return endpoint.Confirm(ctx, s.Texts, "rbac.role_deleted"), err
}

// removeRole is deleteRole within a transaction.
func (s *Service) removeRole(ctx context.Context, tx *store.Tx, id string) error {
	role, err := roleTable.Get(ctx, tx, id, access.Delete)
	if err != nil {
		return err
	}
	if err := endpoint.CheckMatch(ctx, role.ETag()); err != nil {
		return err
	}
	if role.BuiltIn {
		return apierr.RoleBuiltIn
	}
	if err := s.checkSettingRole(ctx, role); err != nil {
		return err
	}
	own, err := s.Users.RolesOf(ctx, tx, access.From(ctx).UserID)
	if err != nil {
		return err
	}
	if slices.Contains(own, id) {
		return apierr.GrantToSelf
	}
	if err := s.Users.RemoveRole(ctx, tx, id); err != nil {
		return fmt.Errorf("take role %s from its holders: %w", id, err)
	}
	if err := deleteRole(ctx, tx, id); err != nil {
		return fmt.Errorf("delete role %s: %w", id, err)
	}
	roleTable.Audit(ctx, tx, "rbac.roles.delete", id, role, nil)
	tx.Announce(s.changed, "")
	return nil
}

const roleColumns = "id, name, description, builtin, created_at, created_by, modified_at, modified_by, version"

var roleTable = &records.Table[Role]{
	Type: access.Roles, From: "roles", Columns: roleColumns, Scan: scanRole,
	Relations: []records.Relation{records.CreatorWhile(access.Roles, "roles")}, Missing: apierr.RoleNotFound, Record: auditedRole,
}

var roleList = list.New(list.Source[Role]{
	From: "roles", Columns: roleColumns, ID: "id", Created: "created_at", Tables: []string{"roles"}, Scan: scanRole,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "name", Type: list.Text, Column: "name", Key: "name_key"},
		{Name: "description", Type: list.Text, Column: "description"},
		{Name: "built_in", Type: list.Bool, Column: "builtin"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
		{Name: "modified_at", Type: list.Time, Column: "modified_at"},
		{Name: "modified_by", Type: list.UUID, Column: "modified_by"},
	},
})

func scanRole(row list.Row) (Role, error) {
	var r Role
	err := row.Scan(&r.ID, &r.Name, &r.Description, &r.BuiltIn, &r.CreatedAt, &r.CreatedBy, &r.ModifiedAt, &r.ModifiedBy, &r.version)
	return r, err
}

const insertRoleRow = `
	INSERT INTO roles (id, name, name_key, description, builtin, created_at, created_by, modified_at, modified_by, version)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $6, $7, 1)`

func insertRole(ctx context.Context, tx *store.Tx, r Role) error {
	return tx.Run(ctx, insertRoleRow, r.ID, r.Name, types.Fold(r.Name), r.Description, r.BuiltIn, r.CreatedAt, r.CreatedBy)
}

const updateRoleRow = `
	UPDATE roles SET name = $2, name_key = $3, description = $4, modified_at = $5, modified_by = $6, version = $7
	WHERE id = $1`

// deleteRoleRows delete a role and its grants, in the order that foreign keys require.
var deleteRoleRows = []string{
	`DELETE FROM grants WHERE principal_id = $1`,
	`DELETE FROM endpoint_grants WHERE principal_id = $1`,
	`DELETE FROM external_grants WHERE principal_id = $1`,
	`DELETE FROM grant_records WHERE role_id = $1`,
	`DELETE FROM roles WHERE id = $1`,
}

const selectGrantsOfRole = `SELECT ` + grantColumns + ` FROM grant_records WHERE role_id = $1`

// deleteRole deletes a role, its grants, and the grants on its record. No user may hold the role any more.
func deleteRole(ctx context.Context, tx *store.Tx, id string) error {
	if err := deleteRecordGrants(ctx, tx, access.Roles.Name, id); err != nil {
		return err
	}
	if err := auditDeletion(ctx, tx, selectGrantsOfRole, id); err != nil {
		return err
	}
	return tx.RunEach(ctx, id, deleteRoleRows...)
}
