package serviceaccounts

import (
	"context"
	"slices"
	"strings"

	"kontor/modules/kit/list"
	"kontor/modules/kit/personal"
	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Name and status belong to the user, which the view people shows.
const accountColumns = `
	id, description, created_at, created_by, modified_at, modified_by, version,
	(SELECT p.display_name FROM people p WHERE p.id = service_accounts.id),
	(SELECT p.status FROM people p WHERE p.id = service_accounts.id)`

func scanAccount(row records.Row) (Account, error) {
	a := Account{Roles: []string{}}
	err := row.Scan(&a.ID, &a.Description, &a.CreatedAt, &a.CreatedBy, &a.ModifiedAt, &a.ModifiedBy, &a.version, &a.Name, &a.Status)
	return a, err
}

// accountTable holds the accounts as records. Creators have no rights by themselves: an account outlives their job.
var accountTable = records.Table[Account]{
	Type: access.Services, From: "service_accounts", Columns: accountColumns, Scan: scanAccount, Missing: apierr.ServiceAccountNotFound,
}

var accountList = list.New(list.Source[Account]{
	From: "service_accounts", Columns: accountColumns, ID: "id", Created: "created_at", Tables: []string{"service_accounts"},
	Scan: scanAccount,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "description", Type: list.Text, Column: "description"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
		{Name: "modified_at", Type: list.Time, Column: "modified_at"},
	},
})

const tokenColumns = "id, account_id, name, scopes, networks, created_at, created_by, expires_at, revoked_at, last_used_at, version"

func scanToken(row records.Row) (Token, error) {
	var t Token
	var scopes, networks string
	err := row.Scan(&t.ID, &t.AccountID, &t.Name, &scopes, &networks, &t.CreatedAt, &t.CreatedBy, &t.ExpiresAt, &t.RevokedAt, &t.LastUsedAt, &t.version)
	t.Scopes, t.Networks = shown(scopes), split(networks)
	return t, err
}

var tokenList = list.New(list.Source[Token]{
	From: "service_tokens", Columns: tokenColumns, ID: "id", Created: "created_at", Tables: []string{"service_tokens"}, Scan: scanToken,
	Fields: list.Fields{
		{Name: "id", Type: list.UUID, Column: "id"},
		{Name: "name", Type: list.Text, Column: "name"},
		{Name: "created_at", Type: list.Time, Column: "created_at"},
		{Name: "created_by", Type: list.UUID, Column: "created_by"},
		{Name: "expires_at", Type: list.Time, Column: "expires_at"},
		{Name: "revoked_at", Type: list.Time, Column: "revoked_at", Null: true},
		{Name: "last_used_at", Type: list.Time, Column: "last_used_at", Null: true},
	},
})

// shown returns stored scopes as the API shows them.
func shown(stored string) []string {
	if stored == "" {
		return []string{allScopes}
	}
	return strings.Split(stored, ",")
}

// split returns the parts of a stored list.
func split(stored string) []string {
	if stored == "" {
		return []string{}
	}
	return strings.Split(stored, ",")
}

func contains(sorted []string, text string) bool {
	_, found := slices.BinarySearch(sorted, text)
	return found
}

const (
	insertAccount = `
		INSERT INTO service_accounts (id, description, created_at, created_by, modified_at, modified_by)
		VALUES ($1, $2, $3, $4, $3, $4)`

	updateDescription = `
		UPDATE service_accounts SET description = $2, modified_at = $3, modified_by = $4, version = version + 1 WHERE id = $1`

	selectRoleNames = `
		SELECT h.user_id, r.name FROM held_roles h JOIN role_names r ON r.id = h.role_id
		WHERE h.user_id IN (%s) ORDER BY r.name_key`

	insertToken = `
		INSERT INTO service_tokens (id, account_id, name, token_hash, scopes, networks, created_at, created_by, expires_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	countLive = `SELECT count(*) FROM service_tokens WHERE account_id = $1 AND revoked_at IS NULL AND expires_at > $2`

	selectLive = `SELECT id FROM service_tokens WHERE account_id = $1 AND revoked_at IS NULL ORDER BY id`

	updateRevoked = `UPDATE service_tokens SET revoked_at = $2, version = version + 1 WHERE id = $1 AND revoked_at IS NULL`

	updateUse = `UPDATE service_tokens SET last_used_at = $2 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)`

	updateHash = `UPDATE service_tokens SET token_hash = $3, version = version + 1 WHERE id = $1 AND token_hash = $2`

	updateWarned = `UPDATE service_tokens SET warned_at = $2 WHERE id = $1`

	selectAccountOf = `SELECT account_id FROM service_tokens WHERE id = $1`

	// One row for each role, at least one.
	selectVerified = `
		SELECT t.token_hash, t.scopes, t.networks, t.expires_at, COALESCE(h.role_id, '')
		FROM service_tokens t
		JOIN people p ON p.id = t.account_id
		LEFT JOIN held_roles h ON h.user_id = t.account_id
		WHERE t.id = $1 AND t.revoked_at IS NULL AND p.status = 'active' AND p.kind = 'service'
		ORDER BY h.role_id`

	// The parameters are the pattern of the newest hashes, and the present time.
	countOlderHashes = `
		SELECT count(*) FROM service_tokens WHERE token_hash NOT LIKE $1 AND revoked_at IS NULL AND expires_at > $2`

	selectExpiring = `
		SELECT t.id, t.account_id, t.name, t.expires_at, p.display_name
		FROM service_tokens t JOIN people p ON p.id = t.account_id
		WHERE t.expires_at > $1 AND t.expires_at <= $2 AND t.revoked_at IS NULL AND t.warned_at IS NULL AND p.status = 'active'
		ORDER BY t.expires_at, t.id LIMIT $3`
)

// fillRoles adds the names of their roles to accounts.
func fillRoles(ctx context.Context, q store.Querier, accounts []Account) error {
	at := make(map[string]*Account, len(accounts))
	ids := make([]string, len(accounts))
	for i := range accounts {
		ids[i], at[accounts[i].ID] = accounts[i].ID, &accounts[i]
	}
	return store.EachOf(ctx, q, func(row store.Scanner) error {
		var id, name string
		if err := row.Scan(&id, &name); err != nil {
			return err
		}
		at[id].Roles = append(at[id].Roles, name)
		return nil
	}, selectRoleNames, ids)
}

const selectAccountsOf = `SELECT id, account_id FROM service_tokens WHERE id IN (%s)`

// AccountsOf returns the ids of the accounts of tokens, by the ids of the tokens.
func AccountsOf(ctx context.Context, q store.Querier, ids []string) (map[string]string, error) {
	return store.Pairs(ctx, q, selectAccountsOf, ids)
}

// Proofs returns how the audit trail digests the records of this module: accounts and tokens. The digests do not cover name, status
// and roles of an account, which the records of its user prove, the last use of a token, and when administrators were warned.
func Proofs() []records.Proof { return []records.Proof{accountProof, tokenProof} }

var accountProof = records.Proof{
	Type: accountTable.Type.Name, From: "service_accounts", Key: "id", Read: readAccount,
	Outside: map[string]string{"name": `""`, "status": `""`, "roles": "[]"},
	Changes: &store.ChangeRule{Omit: []string{"modified_at", "modified_by", "name", "status", "roles"}},
}

// stored holds what the API does not show of a row.
type stored struct {
	Version int64  `json:"version"`
	Hash    string `json:"token_hash,omitempty"`
}

func readAccount(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	a, err := scanAccount(q.QueryRow(ctx, `SELECT `+accountColumns+` FROM service_accounts WHERE id = $1`, id))
	a.Name, a.Status = "", ""
	return store.Record{Answer: a, Stored: stored{Version: a.version}}, err
}

var tokenProof = records.Proof{
	Type: "service_tokens", From: "service_tokens", Key: "id", Read: readToken, Outside: map[string]string{"last_used_at": "null"},
}

const selectHash = `SELECT token_hash FROM service_tokens WHERE id = $1`

func readToken(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	t, err := scanToken(q.QueryRow(ctx, `SELECT `+tokenColumns+` FROM service_tokens WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	t.LastUsedAt = nil
	s := stored{Version: t.version}
	err = q.QueryRow(ctx, selectHash, id).Scan(&s.Hash)
	return store.Record{Answer: t, Stored: s}, err
}

// PersonalData lists the tables of the module.
func (s *Service) PersonalData() []personal.Table {
	return []personal.Table{
		{Name: "service_accounts", Why: "An account belongs to a program; its description is a note of administrators."},
		{Name: "service_tokens", Why: "Tokens belong to programs; names and networks are notes of administrators."},
	}
}
