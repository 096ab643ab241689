package directory

import (
	"context"
	"errors"
	"fmt"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

const credentialColumns = "id, user_id, type, value, value_key, validated, validated_at, created_at, version, trusted_from, session_id"

func scanCredential(row records.Row) (Credential, error) {
	var c Credential
	var trusted store.Time
	err := row.Scan(&c.ID, &c.UserID, &c.Type, &c.Value, &c.key, &c.Validated, &c.ValidatedAt, &c.CreatedAt, &c.version, &trusted, &c.session)
	c.trust(trusted)
	return c, err
}

// credentialTable holds the credentials as records. They belong to their user, not to their creator. A missing credential is
// reported as a missing user, as the specification defines for the deletion.
var credentialTable = records.Table[Credential]{
	Type:      access.Credentials,
	From:      "credentials",
	Columns:   credentialColumns,
	Scan:      scanCredential,
	Relations: []records.Relation{{Name: access.RelationHolder, Allows: access.Read | access.Update | access.Delete, SQL: "user_id = $1"}},
	Missing:   apierr.UserNotFound,
}

var credentialList = list.New(list.Source[Credential]{
	From:    "credentials",
	Columns: credentialColumns,
	ID:      "id",
	Created: "created_at",
	Tables:  []string{"credentials"},
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "user_id", Type: list.UUID, Column: "user_id"},
		{Name: "type", Type: list.Text, Column: "type", Key: "type"},
		{Name: "value", Type: list.Text, Column: "value", Key: "value_key", Fold: LoginKey},
		{Name: "validated", Type: list.Bool, Column: "validated"},
		{Name: "validated_at", Type: list.Time, Column: "validated_at", Null: true},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
	},
	Scan: scanCredential,
})

const (
	insertCredential = `
		INSERT INTO credentials (id, user_id, type, value, value_key, validated, validated_at, created_at, created_by, trusted_from, value_skeleton, session_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`

	// A claim is deleted when its first code has expired and the value is claimed again, or when another user validates it.
	selectOldClaim = `
		SELECT ` + credentialColumns + ` FROM credentials
		WHERE value_key = $1 AND validated = FALSE AND created_at <= $2`

	validateCredential = `
		UPDATE credentials SET validated = TRUE, validated_at = $2, value_key = $3, trusted_from = $4, session_id = '', version = version + 1
		WHERE id = $1 AND validated = FALSE`

	deleteCredential = `DELETE FROM credentials WHERE id = $1`

	countValidated = `SELECT count(*) FROM credentials WHERE user_id = $1 AND validated = TRUE`

	countCredentials = `
		SELECT count(*), COALESCE(sum(CASE WHEN value_key = $2 OR value_key = $2 || ' ' || id THEN 1 ELSE 0 END), 0)
		FROM credentials WHERE user_id = $1`

	countTaken = `SELECT count(*) FROM credentials WHERE value_key = $1 AND (validated = TRUE OR created_at > $2)`

	selectUntrustedOf = `
		SELECT ` + credentialColumns + ` FROM credentials
		WHERE user_id = $1 AND (validated = FALSE OR trusted_from > $2 AND trusted_from < $3) ORDER BY id`

	selectUserExists = `SELECT count(*) FROM users WHERE id = $1`

	// The former key of a value takes precedence: it belongs to a credential that collides with an older one.
	selectValidatedByKey = `
		SELECT ` + credentialColumns + ` FROM credentials
		WHERE (value_key = $1 OR value_key = $2) AND validated = TRUE
		ORDER BY CASE WHEN value_key = $2 THEN 0 ELSE 1 END LIMIT 1`
)

// loginKeys are the keys of a sign-in value.
type loginKeys struct{ key, former string }

func keysOf(text string) loginKeys { return loginKeys{LoginKey(text), FormerKey(text)} }

// selectValidated returns the validated credential of a value, or store.ErrNotFound.
func selectValidated(ctx context.Context, q store.Querier, k loginKeys) (Credential, error) {
	return scanCredential(q.QueryRow(ctx, selectValidatedByKey, k.key, k.former))
}

// selectUntrusted returns the credentials of a user that are not validated or on trial.
func selectUntrusted(ctx context.Context, q store.Querier, userID string) ([]Credential, error) {
	rows, err := q.Query(ctx, selectUntrustedOf, userID, q.Now(), never)
	if err != nil {
		return nil, err
	}
	return readCredentials(rows)
}

func readCredentials(rows *store.Rows) ([]Credential, error) {
	defer rows.Close()
	var found []Credential
	for rows.Next() {
		c, err := scanCredential(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	return found, rows.Err()
}

// userExists returns apierr.UserNotFound for an unknown id.
func userExists(ctx context.Context, q store.Querier, userID string) error {
	var n int
	if err := q.QueryRow(ctx, selectUserExists, userID).Scan(&n); err != nil {
		return fmt.Errorf("find a user: %w", err)
	}
	if n == 0 {
		return apierr.UserNotFound
	}
	return nil
}

// credentialOf returns a credential of a user with which the caller may do what is wanted. It returns apierr.UserNotFound,
// apierr.CredentialNotFound or apierr.NoAccess.
func credentialOf(ctx context.Context, q store.Querier, userID, credentialID string, wanted access.Permission) (Credential, error) {
	c, err := credentialTable.Get(ctx, q, credentialID, wanted)
	if err == nil && c.UserID == userID {
		return c, nil
	}
	if err != nil && !errors.Is(err, apierr.UserNotFound) && !errors.Is(err, apierr.NoAccess) {
		return Credential{}, err
	}
	if err := userExists(ctx, q, userID); err != nil {
		return Credential{}, err
	}
	if caller := access.From(ctx); caller.UserID != userID && !caller.May(access.Credentials, wanted) {
		return Credential{}, apierr.NoAccess
	}
	return Credential{}, apierr.CredentialNotFound
}
