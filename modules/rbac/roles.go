package rbac

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Role is a set of grants that users can hold. Built-in roles keep their names and cannot be deleted; their
// descriptions and grants can be changed.
type Role struct {
	ID          string     `json:"id"`
	Name        string     `json:"name" example:"Auditor"`
	Description string     `json:"description" example:"Reads everything, changes nothing"`
	BuiltIn     bool       `json:"built_in" example:"false" doc:"A built-in role cannot be changed or deleted."`
	CreatedAt   store.Time `json:"created_at"`
	CreatedBy   string     `json:"created_by"`
	ModifiedAt  store.Time `json:"modified_at"`
	ModifiedBy  string     `json:"modified_by"`

	version int64
}

// ETag is the version of the role.
func (r Role) ETag() string { return endpoint.VersionTag(r.version) }

const (
	maxRoleName        = 100  // characters
	maxRoleDescription = 1000 // characters
)

// RoleInput is what a caller may say about a role. What an update leaves out stays as it is.
type RoleInput struct {
	Name        *string `json:"name" maxLength:"100" example:"Auditor"`
	Description *string `json:"description" maxLength:"1000" example:"Reads everything, changes nothing"`
}

// Validate brings name and description into their stored form. A name that looks like an id is refused: where roles are
// given by name or id, nobody could tell them apart.
func (in *RoleInput) Validate(v *apierr.Fields) {
	if in.Name != nil {
		name, err := types.Required(*in.Name, maxRoleName)
		if err == nil && types.IsID(name) {
			v.Add("name", "invalid.role_name_is_id")
		}
		addRule(v, "name", err, maxRoleName)
		in.Name = &name
	}
	if in.Description != nil {
		description, err := types.Text(*in.Description, maxRoleDescription)
		addRule(v, "description", err, maxRoleDescription)
		in.Description = &description
	}
}

// addRule words what a text breaks.
func addRule(v *apierr.Fields, field string, err error, limit int) {
	switch {
	case err == nil:
	case errors.Is(err, types.RuleTooLong):
		v.Add(field, "invalid.max_length", apierr.Args{"Max": limit})
	case errors.Is(err, types.RuleRequired):
		v.Add(field, "invalid.required")
	default:
		v.Add(field, "invalid.control_characters")
	}
}

// createRoleInput is a RoleInput whose name is needed.
type createRoleInput struct {
	Name        *string `json:"name" maxLength:"100" nullable:"false" example:"Auditor"`
	Description *string `json:"description" maxLength:"1000" example:"Reads everything, changes nothing"`
}

// Validate is that of RoleInput with a name.
func (in *createRoleInput) Validate(v *apierr.Fields) {
	if in.Name == nil {
		v.Add("name", "invalid.required")
	}
	(*RoleInput)(in).Validate(v)
}

// CreateRole adds a role without any rights. It returns apierr.RoleExists when the name is taken, whatever its case.
func (s *Service) CreateRole(ctx context.Context, in RoleInput) (Role, error) {
	caller := access.From(ctx)
	role := Role{ID: store.NewID(), CreatedBy: caller.UserID, ModifiedBy: caller.UserID, version: 1}
	role.apply(in)
	role.CreatedAt = s.db.Now()
	role.ModifiedAt = role.CreatedAt
	after, answer := roleTable.Digest(s.db, role), s.db.Answer(ctx, role)
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := insertRole(ctx, tx, role); err != nil {
			return err
		}
		roleTable.Audit(ctx, tx, "rbac.roles.create", role.ID, nil, after)
		tx.Respond(http.StatusCreated, answer)
		return nil
	})
	return role, roleFault(err)
}

func (r *Role) apply(in RoleInput) {
	if in.Name != nil {
		r.Name = *in.Name
	}
	if in.Description != nil {
		r.Description = *in.Description
	}
}

// roleFault says what a failed write to roles means.
func roleFault(err error) error {
	if errors.Is(err, store.ErrDuplicate) {
		return apierr.RoleExists.Wrap(err)
	}
	return err
}

// Role reads a role. It returns apierr.RoleNotFound and apierr.NoAccess.
func (s *Service) Role(ctx context.Context, id string) (Role, error) {
	return roleTable.Get(ctx, s.db, id, access.Read)
}

// Roles lists the roles that the caller may read.
func (s *Service) Roles(ctx context.Context, p list.Params) (list.Page[Role], error) {
	return roleList.Page(ctx, s.db, p, roleTable.Visible(access.From(ctx)))
}

// UpdateRole changes name and description. It returns apierr.RoleNotFound, apierr.NoAccess, apierr.RoleBuiltIn for
// another name of a built-in role, apierr.RoleExists and apierr.PreconditionFailed.
func (s *Service) UpdateRole(ctx context.Context, id string, in RoleInput) (Role, error) {
	role, err := records.Change(ctx, s.db, roleTable, id, records.Changing[Role]{
		Action: "rbac.roles.update", Wanted: access.Update,
		Apply: func(before Role, now store.Time) (Role, bool, error) {
			role := before
			role.apply(in)
			if role.BuiltIn && role.Name != before.Name {
				return role, false, apierr.RoleBuiltIn
			}
			changed := role != before
			role.ModifiedAt, role.ModifiedBy, role.version = now, access.From(ctx).UserID, before.version+1
			return role, changed, nil
		},
		Write: func(ctx context.Context, tx *store.Tx, _, after Role) error { return updateRole(ctx, tx, after) },
	})
	return role, roleFault(err)
}

// DeleteRole removes a role, its grants, and takes it from everybody who holds it, from their next request on. Nobody
// deletes a role that he holds himself: that would change his own roles. It returns apierr.RoleNotFound,
// apierr.NoAccess, apierr.RoleBuiltIn, apierr.GrantToSelf and apierr.PreconditionFailed.
func (s *Service) DeleteRole(ctx context.Context, id string) error {
	caller := access.From(ctx)
	return s.db.InTx(ctx, func(tx *store.Tx) error {
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
		holders, err := holdersOf(ctx, tx, id)
		if err != nil {
			return err
		}
		for _, userID := range holders {
			if userID == caller.UserID {
				return apierr.GrantToSelf
			}
		}
		if err := deleteRole(ctx, tx, id); err != nil {
			return fmt.Errorf("delete role %s: %w", id, err)
		}
		for _, userID := range holders {
			s.Sessions.Changed(tx, userID)
			if err := records.UserRoles.Audit(ctx, tx, records.ActionUserRoles, userID, nil); err != nil {
				return err
			}
		}
		roleTable.Audit(ctx, tx, "rbac.roles.delete", id, role, nil)
		tx.AfterCommit(s.policy.changed)
		return nil
	})
}
