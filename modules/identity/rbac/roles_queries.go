package rbac

import (
	"context"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const roleColumns = "id, name, description, builtin, created_at, created_by, modified_at, modified_by, version"

var roleTable = &records.Table[Role]{
	Type: access.Roles, From: "roles", Columns: roleColumns, Scan: scanRole,
	Relations: []records.Relation{records.Created}, Missing: apierr.RoleNotFound, Record: auditedRole,
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
	_, err := tx.Exec(ctx, insertRoleRow, r.ID, r.Name, types.Fold(r.Name), r.Description, r.BuiltIn, r.CreatedAt, r.CreatedBy)
	return err
}

const updateRoleRow = `
	UPDATE roles SET name = $2, name_key = $3, description = $4, modified_at = $5, modified_by = $6, version = $7
	WHERE id = $1`

func updateRole(ctx context.Context, tx *store.Tx, r Role) error {
	_, err := tx.Exec(ctx, updateRoleRow, r.ID, r.Name, types.Fold(r.Name), r.Description, r.ModifiedAt, r.ModifiedBy, r.version)
	return err
}

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
	for _, statement := range deleteRoleRows {
		if _, err := tx.Exec(ctx, statement, id); err != nil {
			return err
		}
	}
	return nil
}
