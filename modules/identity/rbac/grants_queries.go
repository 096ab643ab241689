package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const grantColumns = "id, role_id, user_id, rec_type, rec_id, permissions, endpoint, created_at, created_by, starts_at, expires_at, in_force"

var grantTable = &records.Table[Grant]{
	Type: access.Grants, From: "grant_records", Columns: grantColumns, Scan: scanGrant,
	Relations: []records.Relation{records.CreatorWhile(access.Grants, "grant_records")}, Missing: apierr.GrantNotFound, Record: auditedGrant,
}

var grantList = list.New(list.Source[Grant]{
	From: "grant_records", Columns: grantColumns, ID: "id", Created: "created_at", Tables: []string{"grant_records"}, Scan: scanGrant,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "role_id", Type: list.UUID, Column: "role_id", Null: true},
		{Name: "user_id", Type: list.UUID, Column: "user_id", Null: true},
		{Name: "rec_type", Type: list.Text, Column: "rec_type", Key: "rec_type", Null: true},
		{Name: "rec_id", Type: list.Text, Column: "rec_id", Key: "rec_id", Fold: types.FoldID, Null: true},
		{Name: "endpoint", Type: list.Text, Column: "endpoint", Key: "lower(endpoint)", Null: true},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
		{Name: "starts_at", Type: list.Time, Column: "starts_at", Null: true},
		{Name: "expires_at", Type: list.Time, Column: "expires_at", Null: true},
	},
})

func scanGrant(row list.Row) (Grant, error) {
	var g Grant
	var permissions string
	var inForce bool
	err := row.Scan(&g.ID, &g.RoleID, &g.UserID, &g.RecType, &g.RecID, &permissions, &g.Endpoint, &g.CreatedAt, &g.CreatedBy,
		&g.StartsAt, &g.ExpiresAt, &inForce)
	g.later = !inForce
	g.Permissions = []string{}
	if permissions != "" {
		g.Permissions = strings.Split(permissions, ",")
	}
	return g, err
}

func names(p access.Permission) string { return strings.Join(p.Names(), ", ") }

const insertGrantRecord = `
	INSERT INTO grant_records (id, role_id, user_id, rec_type, rec_id, permissions, endpoint, created_at, created_by, starts_at, expires_at, in_force)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

// rightsTable has the statements on a table of permissions in force.
type rightsTable struct{ insert, held, remove, kinds string }

var ownRights = rightsTable{
	insert: `INSERT INTO grants (id, principal_kind, principal_id, rec_type, permission, rec_id, created_at, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
	held:   `SELECT permission FROM grants WHERE rec_type = $1 AND rec_id = $2 AND principal_id = $3`,
	remove: `DELETE FROM grants WHERE rec_type = $1 AND rec_id = $2 AND principal_id = $3 AND permission = $4`,
	kinds:  `SELECT permission, principal_kind FROM grants WHERE rec_type = $1 AND rec_id = $2 AND principal_id = $3 ORDER BY permission`,
}

// Permissions on record types of other applications are in a table of their own, which the policy does not read.
var externalRights = rightsTable{
	insert: `INSERT INTO external_grants (id, principal_kind, principal_id, rec_type, permission, rec_id, created_at, created_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
	held:   `SELECT permission FROM external_grants WHERE rec_type = $1 AND rec_id = $2 AND principal_id = $3`,
	remove: `DELETE FROM external_grants WHERE rec_type = $1 AND rec_id = $2 AND principal_id = $3 AND permission = $4`,
	kinds:  `SELECT permission, principal_kind FROM external_grants WHERE rec_type = $1 AND rec_id = $2 AND principal_id = $3 ORDER BY permission`,
}

// rights returns the statements on the table of a grant's permissions.
func (g Grant) rights() rightsTable {
	if g.external() {
		return externalRights
	}
	return ownRights
}

const insertEndpointGrant = `
	INSERT INTO endpoint_grants (id, principal_kind, principal_id, endpoint, created_at, created_by)
	VALUES ($1, $2, $3, $4, $5, $6)`

const selectEndpointGrant = `SELECT 1 FROM endpoint_grants WHERE principal_id = $1 AND endpoint = $2`

// insertGrant stores a grant and its permissions. A principal has each permission by at most one grant, so that deleting this
// grant takes it away. insertGrant returns apierr.GrantExists with the permissions that the principal already has.
func insertGrant(ctx context.Context, tx *store.Tx, g Grant) error {
	if err := checkLater(ctx, tx, g); err != nil {
		return err
	}
	if err := insertRights(ctx, tx, g); err != nil {
		return err
	}
	return tx.Run(ctx, insertGrantRecord, g.ID, g.RoleID, g.UserID, g.RecType, g.RecID, strings.Join(g.Permissions, ","),
		g.Endpoint, g.CreatedAt, g.CreatedBy, g.StartsAt, g.ExpiresAt, !g.later)
}

// insertRights puts the permissions or the endpoint of a grant in force. Of a grant that begins later it only checks that no other
// grant gives them.
func insertRights(ctx context.Context, tx *store.Tx, g Grant) error {
	kind, principal := g.principal()
	if g.Endpoint != nil {
		granted, err := store.Exists(ctx, tx, selectEndpointGrant, principal, *g.Endpoint)
		if err != nil {
			return err
		}
		if granted {
			return apierr.GrantExists
		}
		if g.later {
			return nil
		}
		return tx.Run(ctx, insertEndpointGrant, g.ID, kind, principal, *g.Endpoint, g.CreatedAt, g.CreatedBy)
	}
	rights := g.rights()
	held, err := store.All(ctx, tx, store.Text, rights.held, *g.RecType, g.recID(), principal)
	if err != nil {
		return err
	}
	if held = slices.DeleteFunc(held, func(p string) bool { return !slices.Contains(g.Permissions, p) }); len(held) > 0 {
		slices.Sort(held)
		return apierr.GrantExists.Detail("permissions", held)
	}
	if g.later {
		return nil
	}
	for _, permission := range g.Permissions {
		_, err := tx.Exec(ctx, rights.insert, store.NewID(), kind, principal, *g.RecType, permission, g.recID(), g.CreatedAt, g.CreatedBy)
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	deleteGrantRecord   = `DELETE FROM grant_records WHERE id = $1`
	deleteEndpointGrant = `DELETE FROM endpoint_grants WHERE id = $1`
)

func deleteGrant(ctx context.Context, tx *store.Tx, g Grant) error {
	if err := deleteRecordGrants(ctx, tx, access.Grants.Name, g.ID); err != nil {
		return err
	}
	if g.Endpoint != nil {
		if _, err := tx.Exec(ctx, deleteEndpointGrant, g.ID); err != nil {
			return err
		}
	}
	_, principal := g.principal()
	for _, permission := range g.Permissions {
		if _, err := tx.Exec(ctx, g.rights().remove, *g.RecType, g.recID(), principal, permission); err != nil {
			return err
		}
	}
	return tx.Run(ctx, deleteGrantRecord, g.ID)
}

// auditDeletion writes an audit entry for each grant that a statement selects. Callers delete these grants next, together with
// their role or their record.
func auditDeletion(ctx context.Context, tx *store.Tx, statement string, args ...any) error {
	found, err := store.All(ctx, tx, scanGrant, statement, args...)
	for _, g := range found {
		grantTable.Audit(ctx, tx, "rbac.grants.vanish", g.ID, g, nil)
	}
	return err
}

const (
	selectGrantsOnRecord       = `SELECT ` + grantColumns + ` FROM grant_records WHERE rec_id = $1 AND rec_type = $2`
	deletePermissionsOnRecord  = `DELETE FROM grants WHERE rec_id = $1 AND rec_type = $2`
	deleteGrantRecordsOnRecord = `DELETE FROM grant_records WHERE rec_id = $1 AND rec_type = $2`
)

// deleteRecordGrants deletes the grants on a record.
func deleteRecordGrants(ctx context.Context, tx *store.Tx, recType, recID string) error {
	if err := auditDeletion(ctx, tx, selectGrantsOnRecord, recID, recType); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deletePermissionsOnRecord, recID, recType); err != nil {
		return err
	}
	return tx.Run(ctx, deleteGrantRecordsOnRecord, recID, recType)
}

// Forget deletes the grants on a record that is deleted in the same transaction. [Service.Sweep] removes the orphaned grants
// that a module did not report. Until then they allow nothing, because ids are never reused.
func (s *Service) Forget(ctx context.Context, tx *store.Tx, t access.RecordType, id string) error {
	if err := deleteRecordGrants(ctx, tx, t.Name, id); err != nil {
		return fmt.Errorf("delete grants on %s %s: %w", t, id, err)
	}
	return nil
}

// selectGrantedRecords reads the records that one step of a sweep checks.
const selectGrantedRecords = `
	SELECT DISTINCT rec_id FROM grants WHERE rec_type = $1 AND rec_id > $2 ORDER BY rec_id LIMIT 200`

// Sweep deletes orphaned grants, those on records that no longer exist. It returns the number of these records. It works in
// small steps and may run at any time.
func (s *Service) Sweep(ctx context.Context) (removed int, err error) {
	for _, t := range access.RecordTypes() {
		if s.recordsOf(t) == nil {
			continue
		}
		n, err := s.sweepType(ctx, t)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("sweep grants on %s: %w", t, err)
		}
	}
	return removed, nil
}

func (s *Service) sweepType(ctx context.Context, t access.RecordType) (removed int, err error) {
	last := ""
	for {
		ids, err := store.All(ctx, s.db, store.Text, selectGrantedRecords, t.Name, last)
		if err != nil || len(ids) == 0 {
			return removed, err
		}
		last = ids[len(ids)-1]
		found, err := s.recordsOf(t).Relations(ctx, store.NilID, ids)
		if err != nil {
			return removed, err
		}
		orphaned := slices.DeleteFunc(ids, func(id string) bool { _, exists := found[id]; return exists })
		if err := s.deleteOrphans(ctx, t, orphaned); err != nil {
			return removed, err
		}
		removed += len(orphaned)
	}
}

// deleteOrphans deletes the grants on records in one transaction.
func (s *Service) deleteOrphans(ctx context.Context, t access.RecordType, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		for _, id := range ids {
			if err := deleteRecordGrants(ctx, tx, t.Name, id); err != nil {
				return err
			}
			tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "rbac.grants.sweep", RecType: t.Name, RecID: id})
		}
		return nil
	})
}

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "roles", Why: "Roles are named by administrators and describe no person."},
		{Name: "grants", Why: "It holds ids and permissions; those of an erased user have no effect."},
		{Name: "grant_records", Why: "It holds ids and permissions; those of an erased user have no effect."},
		{Name: "endpoint_grants", Why: "It holds ids and endpoints; those of an erased user have no effect."},
		{Name: "endpoints", Why: "It holds the endpoints of the program."},
		{Name: "record_types", Why: "It holds the record types of the program and of other applications."},
		{Name: "external_grants", Why: "It holds ids and permissions; those of an erased user have no effect."},
		{Name: "rate_limit_counts", Why: "It holds keyed hashes of callers of limited endpoints, for minutes."},
		{Name: "right_uses", Why: "It holds ids and hours; those of rights that were removed are deleted."},
		{Name: "access_reviews", Why: "It holds ids and names of roles, and proves who reviewed whose access."},
		{Name: "rate_limit_rules", Why: "It holds endpoints and numbers."},
	}
}
