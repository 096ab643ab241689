package oidc

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/store"
)

// Proofs returns how the audit trail digests identities. The digests do not cover the last use, which is in the entry of the
// session. One-time codes and states expire within minutes.
func Proofs() []records.Proof { return []records.Proof{identityProof} }

var identityProof = records.Proof{
	Type: identityTable.Type.Name, From: "identities", Key: "id", Read: readIdentity, Outside: map[string]string{"last_used_at": "null"},
	Changes: &store.ChangeRule{Omit: []string{"last_used_at"}, Forget: true},
}

// readIdentity reads an identity for a digest, without the last use.
func readIdentity(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	i, err := scanIdentity(q.QueryRow(ctx, `SELECT `+identityColumns+` FROM identities WHERE id = $1`, id))
	i.LastUsedAt = nil
	return store.Record{Answer: i}, err
}
