package directory

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/store"
)

// Proofs returns how the audit trail digests the records of this module: users, credentials and held roles. The digests do not
// cover the last sign-in, which is in the entry of its session, keys that are derived from names, one-time codes, and the
// counts of sent codes.
func Proofs() []records.Proof {
	return []records.Proof{accountProof, credentialProof, userRolesProof}
}

var accountProof = records.Proof{
	Type: userTable.Type.Name, From: "users", Key: "id", Read: readAccount, Outside: map[string]string{"roles": "[]", "last_login_at": "null"},
	Changes: &store.ChangeRule{Omit: []string{"modified_at", "roles", "last_login_at"}},
}

const selectAuthors = `SELECT created_by, modified_by FROM users WHERE id = $1`

// storedUser holds the columns of a user that the API does not show.
type storedUser struct {
	Version    int64  `json:"version"`
	CreatedBy  string `json:"created_by"`
	ModifiedBy string `json:"modified_by"`
}

// readAccount reads a user for a digest, without roles and last sign-in.
func readAccount(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	u, err := scanUser(q.QueryRow(ctx, `SELECT `+userColumns+` FROM users WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	u.LastLoginAt = nil
	s := storedUser{Version: u.version}
	err = q.QueryRow(ctx, selectAuthors, id).Scan(&s.CreatedBy, &s.ModifiedBy)
	return store.Record{Answer: u, Stored: s}, err
}

var credentialProof = records.Proof{
	Type: credentialTable.Type.Name, From: "credentials", Key: "id", Read: readCredential, Changes: &store.ChangeRule{Forget: true},
}

const selectCredentialAuthor = `SELECT created_by FROM credentials WHERE id = $1`

// storedCredential holds the columns of a credential that the API does not show.
type storedCredential struct {
	Key         string     `json:"value_key"`
	Version     int64      `json:"version"`
	CreatedBy   string     `json:"created_by"`
	TrustedFrom store.Time `json:"trusted_from"`
}

func readCredential(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	c, err := scanCredential(q.QueryRow(ctx, `SELECT `+credentialColumns+` FROM credentials WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	s := storedCredential{Key: c.key, Version: c.version, TrustedFrom: c.trustedFrom}
	err = q.QueryRow(ctx, selectCredentialAuthor, id).Scan(&s.CreatedBy)
	return store.Record{Answer: c, Stored: s}, err
}
