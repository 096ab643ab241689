package serviceaccounts

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/store"
)

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
	Type: "service_tokens", From: "service_tokens", Key: "id", Outside: map[string]string{"last_used_at": "null"},
	Read: func(ctx context.Context, q store.Querier, id string) (store.Record, error) {
		r, _, err := readToken(ctx, q, id)
		return r, err
	},
}

const selectHash = `SELECT token_hash FROM service_tokens WHERE id = $1`

// readToken reads a token, also in the form that digests cover.
func readToken(ctx context.Context, q store.Querier, id string) (store.Record, Token, error) {
	t, err := scanToken(q.QueryRow(ctx, `SELECT `+tokenColumns+` FROM service_tokens WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, t, err
	}
	s := stored{Version: t.version}
	err = q.QueryRow(ctx, selectHash, id).Scan(&s.Hash)
	digested := t
	digested.LastUsedAt = nil
	return store.Record{Answer: digested, Stored: s}, t, err
}
