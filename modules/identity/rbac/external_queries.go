package rbac

import (
	"context"
	"errors"
	"slices"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	insertExternalTypeRow = `
		INSERT INTO record_types (id, name, description, permissions, created_at, created_by) VALUES ($1, $2, $3, $4, $5, $6)`
	deleteRecordType    = `DELETE FROM record_types WHERE id = $1`
	selectRecordType    = `SELECT ` + typeColumns + ` FROM record_types WHERE id = $1`
	selectTypeOrigin    = `SELECT created_at, created_by FROM record_types WHERE id = $1 AND permissions <> ''`
	selectPermissionsOf = `SELECT permissions FROM record_types WHERE name = $1 AND permissions <> ''`
	countGrantsOnType   = `SELECT COUNT(*) FROM grant_records WHERE rec_type = $1`

	insertExternalPermission = `
		INSERT INTO external_grants (id, principal_kind, principal_id, rec_type, permission, rec_id, created_at, created_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	deleteExternalPermission = `
		DELETE FROM external_grants WHERE rec_type = $1 AND rec_id = $2 AND permission = $3 AND principal_id = $4`
	selectExternalHeld = `SELECT permission FROM external_grants WHERE rec_type = $1 AND rec_id = $2 AND principal_id = $3`

	countExternalHeld = `
		SELECT COUNT(*) FROM external_grants
		WHERE rec_type = $2 AND rec_id IN ($3, '') AND permission = $4 AND principal_id IN (` + records.Principals + `)`
)

// typeColumns are the columns of a record type.
const typeColumns = "id, name, description, permissions"

func scanType(row list.Row) (RecordType, error) {
	var t RecordType
	var permissions string
	err := row.Scan(&t.ID, &t.Name, &t.Description, &permissions)
	if t.External = permissions != ""; t.External {
		t.Permissions = strings.Split(permissions, ",")
	} else {
		t.Permissions = access.All.Names()
	}
	return t, err
}

func insertExternalType(ctx context.Context, tx *store.Tx, t RecordType, by string) error {
	_, err := tx.Exec(ctx, insertExternalTypeRow, t.ID, t.Name, t.Description, strings.Join(t.Permissions, ","), tx.Now(), by)
	return err
}

func selectExternalType(ctx context.Context, q store.Querier, id string) (RecordType, error) {
	t, err := scanType(q.QueryRow(ctx, selectRecordType, id))
	if errors.Is(err, store.ErrNotFound) {
		err = apierr.RecordTypeNotFound
	}
	return t, err
}

// externalTypeProof covers the record types of other applications. The program defines the others.
var externalTypeProof = records.Proof{
	Type: "record_types", From: "(SELECT id FROM record_types WHERE permissions <> '') AS external_types", Key: "id",
	Read: readExternalType, Migration: 70,
}

func readExternalType(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	stored := struct {
		CreatedAt store.Time `json:"created_at"`
		CreatedBy string     `json:"created_by"`
	}{}
	if err := q.QueryRow(ctx, selectTypeOrigin, id).Scan(&stored.CreatedAt, &stored.CreatedBy); err != nil {
		return store.Record{}, err
	}
	t, err := scanType(q.QueryRow(ctx, selectRecordType, id))
	return store.Record{Answer: t, Stored: stored}, err
}

// externalPermissions returns the permissions of a record type of another application; nil for an unknown type.
func externalPermissions(ctx context.Context, q store.Querier, recType string) ([]string, error) {
	var permissions string
	err := q.QueryRow(ctx, selectPermissionsOf, recType).Scan(&permissions)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return strings.Split(permissions, ","), nil
}

// insertExternal stores the permissions of a grant on another application's record type.
func insertExternal(ctx context.Context, tx *store.Tx, g Grant, kind, principal string) error {
	held, err := store.All(ctx, tx, store.Text, selectExternalHeld, *g.RecType, g.recID(), principal)
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
		_, err := tx.Exec(ctx, insertExternalPermission, store.NewID(), kind, principal, *g.RecType, permission, g.recID(), g.CreatedAt, g.CreatedBy)
		if err != nil {
			return err
		}
	}
	return nil
}

// deleteExternal deletes the permissions of a grant on another application's record type.
func deleteExternal(ctx context.Context, tx *store.Tx, g Grant, principal string) error {
	for _, permission := range g.Permissions {
		if _, err := tx.Exec(ctx, deleteExternalPermission, *g.RecType, g.recID(), permission, principal); err != nil {
			return err
		}
	}
	return nil
}

// holdsExternal reports whether a grant gives a user, or a role of theirs, a permission on another application's record.
func holdsExternal(ctx context.Context, q store.Querier, userID, recType, recID, permission string) (bool, error) {
	var n int
	err := q.QueryRow(ctx, countExternalHeld, userID, recType, recID, permission).Scan(&n)
	return n > 0, err
}

// externalGrantsOn reads which principals of a caller hold a permission on records, or on the type as a whole (an empty id). It is one
// search of the index for each record and principal, however many grants either has.
func externalGrantsOn(ctx context.Context, q store.Querier, caller *access.Caller, recType, permission string, ids []string) (map[string]grantHolders, error) {
	found := map[string]grantHolders{}
	args := store.AppendIn([]any{recType, permission}, ids)
	principals := append(slices.Clone(caller.Roles), caller.UserID)
	statement := `SELECT rec_id, principal_id FROM external_grants WHERE rec_type = $1 AND permission = $2 AND rec_id IN (` + store.In(3, len(ids)) +
		`) AND principal_id IN (` + store.In(len(args)+1, len(principals)) + `)`
	err := each(ctx, q, func(rows *store.Rows) error {
		var id, principal string
		if err := rows.Scan(&id, &principal); err != nil {
			return err
		}
		found[id] = found[id].with(caller, principal)
		return nil
	}, statement, store.AppendIn(args, principals)...)
	return found, err
}

// lackingExternal returns a right on another application's records that a holder has and a caller does not have, or an empty text.
func lackingExternal(ctx context.Context, q store.Querier, caller, holder *access.Caller) (string, error) {
	has := principalsOf(holder)
	if len(has) == 0 {
		return "", nil
	}
	asks := principalsOf(caller)
	args := store.AppendIn(nil, has)
	asking := store.In(len(args)+1, len(asks))
	rows, err := store.All(ctx, q, store.Text, `
		SELECT h.rec_type || ':' || h.permission || ' ' || h.rec_id FROM external_grants h
		WHERE h.principal_id IN (`+store.In(1, len(has))+`) AND NOT EXISTS (
			SELECT 1 FROM external_grants c
			WHERE c.rec_type = h.rec_type AND c.rec_id IN (h.rec_id, '') AND c.permission = h.permission
				AND c.principal_id IN (`+asking+`))
		ORDER BY h.rec_type, h.rec_id LIMIT 1`, store.AppendIn(args, asks)...)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return strings.TrimSpace(rows[0]), nil
}

// principalsOf returns the ids of a user and of their roles.
func principalsOf(c *access.Caller) []string {
	principals := slices.Clone(c.Roles)
	if c.UserID != "" {
		principals = append(principals, c.UserID)
	}
	return principals
}
