package directory

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/store"
)

// Proofs declare how the audit trail knows what this module keeps: accounts, credentials and who holds which roles. Not
// covered: the last sign-in, which leaves an entry of its session, one-time codes and the counts of those sent.
func Proofs() []records.Proof {
	return []records.Proof{accountProof, credentialProof, records.UserRoles}
}

var accountProof = records.Proof{
	Type: accounts.Type.Name, From: "users", Key: "id", Read: readAccount, Outside: map[string]string{"roles": "[]", "last_login_at": "null"},
}

const selectAuthors = `SELECT created_by, modified_by FROM users WHERE id = $1`

// storedUser is what the database keeps of a user and the API does not show.
type storedUser struct {
	Version    int64  `json:"version"`
	CreatedBy  string `json:"created_by"`
	ModifiedBy string `json:"modified_by"`
}

// readAccount reads a user without roles, whose names others change, and without the last sign-in.
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
	Type: held.Type.Name, From: "credentials", Key: "id", Read: readCredential,
}

const selectCredentialAuthor = `SELECT created_by FROM credentials WHERE id = $1`

// storedCredential is what the database keeps of a credential and the API does not show.
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
