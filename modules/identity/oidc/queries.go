package oidc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const identityColumns = "id, user_id, issuer, subject, email, created_at, created_by, last_used_at, trusted_from"

func scanIdentity(row records.Row) (Identity, error) {
	var i Identity
	var trusted store.Time
	err := row.Scan(&i.ID, &i.UserID, &i.Issuer, &i.Subject, &i.Email, &i.CreatedAt, &i.CreatedBy, &i.LastUsedAt, &trusted)
	if trusted > 0 {
		i.TrustedFrom = &trusted
	}
	return i, err
}

var identityTable = records.Table[Identity]{
	Type: access.Identities, From: "identities", Columns: identityColumns, Scan: scanIdentity,
	Relations: []records.Relation{{Name: access.RelationHolder, Allows: access.Read | access.Delete, SQL: "user_id = $1"}},
	Missing:   apierr.IdentityNotFound,
}

var identityList = list.New(list.Source[Identity]{
	From: "identities", Columns: identityColumns, ID: "id", Created: "created_at", Tables: []string{"identities"}, Scan: scanIdentity,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "user_id", Type: list.UUID, Column: "user_id"},
		{Name: "issuer", Type: list.Text, Column: "issuer"},
		{Name: "subject", Type: list.Text, Column: "subject"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "last_used_at", Type: list.Time, Column: "last_used_at", Null: true},
	},
})

const (
	insertIdentityRow = `
		INSERT INTO identities (id, user_id, issuer, subject, email, created_at, created_by, trusted_from)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

	selectIdentityRow = `SELECT ` + identityColumns + ` FROM identities WHERE issuer = $1 AND subject = $2`

	selectOnTrial = `SELECT ` + identityColumns + ` FROM identities WHERE user_id = $1 AND trusted_from > $2 ORDER BY id`

	countTrusted = `SELECT count(*) FROM identities WHERE user_id = $1 AND issuer = $2 AND trusted_from <= $3`

	countIdentities = `SELECT count(*) FROM identities WHERE user_id = $1`

	updateIdentityUse = `UPDATE identities SET last_used_at = $2 WHERE id = $1`

	deleteIdentityRow = `DELETE FROM identities WHERE id = $1`

	insertState = `INSERT INTO oidc_states (state_hash, expires_at) VALUES ($1, $2)`

	insertCode = `
		INSERT INTO oidc_codes (code_hash, browser_hash, purpose, user_id, data, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`

	selectCode = `SELECT browser_hash, user_id, data, expires_at FROM oidc_codes WHERE code_hash = $1 AND purpose = $2`

	deleteCode = `DELETE FROM oidc_codes WHERE code_hash = $1`

	// The codes of an identity that was deleted are useless, too; they are few and of one user.
	deleteCodesOf = `DELETE FROM oidc_codes WHERE user_id = $1`

	purgeStates = `
		DELETE FROM oidc_states WHERE state_hash IN (SELECT state_hash FROM oidc_states WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)`

	purgeCodes = `
		DELETE FROM oidc_codes WHERE code_hash IN (SELECT code_hash FROM oidc_codes WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)`

	selectStatus = `SELECT status FROM people WHERE id = $1`

	selectHeldRoles = `SELECT role_id FROM held_roles WHERE user_id = $1 ORDER BY role_id`

	selectRoleByName = `SELECT id FROM role_names WHERE name_key = $1`

	selectOwnerOfEmail = `
		SELECT user_id FROM user_credentials WHERE value_key = $1 AND type = 'email' AND validated = TRUE`
)

// selectIdentity returns the identity of a subject, or store.ErrNotFound.
func selectIdentity(ctx context.Context, q store.Querier, issuer, subject string) (Identity, error) {
	return scanIdentity(q.QueryRow(ctx, selectIdentityRow, issuer, subject))
}

// selectText returns the text that a statement selects, or an empty one.
func selectText(ctx context.Context, q store.Querier, statement string, arg any) (text string, err error) {
	err = q.QueryRow(ctx, statement, arg).Scan(&text)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil
	}
	return text, err
}

// selectRoleID returns the id of a role by its name, or an empty text.
func selectRoleID(ctx context.Context, q store.Querier, name string) (string, error) {
	id, err := selectText(ctx, q, selectRoleByName, types.Fold(name))
	if err != nil {
		return "", fmt.Errorf("find a role: %w", err)
	}
	return id, nil
}

// isActiveStaff reports whether a user is active, and whether they are staff. exists is false for an unknown id.
func (s *Service) isActiveStaff(ctx context.Context, q store.Querier, userID string) (exists, active, staff bool, err error) {
	status, err := selectText(ctx, q, selectStatus, userID)
	if err != nil || status == "" {
		return false, false, false, err
	}
	policy := s.options.Policy.Load()
	roles, err := store.All(ctx, q, store.Text, selectHeldRoles, userID)
	return true, status == "active", policy.Staff(userID) || slices.ContainsFunc(roles, policy.Staff), err
}
