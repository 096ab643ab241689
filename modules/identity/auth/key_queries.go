package auth

import (
	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
)

const keyColumns = "id, name, created_at, created_by, last_used_at, revoked_at, scopes, expires_at, version"

func scanKey(row records.Row) (APIKey, error) {
	var k APIKey
	var scopes string
	err := row.Scan(&k.ID, &k.Name, &k.CreatedAt, &k.CreatedBy, &k.LastUsedAt, &k.RevokedAt, &scopes, &k.ExpiresAt, &k.version)
	k.Scopes = shownScopes(scopes)
	return k, err
}

var keyTable = records.Table[APIKey]{
	Type: access.APIKeys, From: "api_keys", Columns: keyColumns, Scan: scanKey,
	Relations: []records.Relation{records.Created}, Missing: apierr.APIKeyNotFound,
}

var keyList = list.New(list.Source[APIKey]{
	From: "api_keys", Columns: keyColumns, ID: "id", Created: "created_at", Tables: []string{"api_keys"}, Scan: scanKey,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "name", Type: list.Text, Column: "name"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
		{Name: "last_used_at", Type: list.Time, Column: "last_used_at", Null: true},
		{Name: "revoked_at", Type: list.Time, Column: "revoked_at", Null: true},
		{Name: "expires_at", Type: list.Time, Column: "expires_at", Null: true},
	},
})

const (
	insertKey = `
		INSERT INTO api_keys (id, name, key_hash, created_at, created_by, scopes, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`

	selectKeyByHash = `SELECT id, scopes, expires_at FROM api_keys WHERE key_hash = $1 AND revoked_at IS NULL`

	updateKeyRevoked = `UPDATE api_keys SET revoked_at = $2, version = version + 1 WHERE id = $1 AND revoked_at IS NULL`

	// The clock of the node that saw the use may be behind the one that created the key, or was set back since.
	updateKeyUse = `
		UPDATE api_keys SET last_used_at = CASE WHEN created_at > $2 THEN created_at ELSE $2 END
		WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)`
)
