package auth

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/store"
)

// Proofs returns how the audit trail digests the records of this module: passwords, sessions and API keys. The digests do not
// cover refresh tokens and devices, which belong to a session, counts of failed attempts, the reason why a session ended, and
// the last use of keys and sessions. Old sessions are deleted without an entry.
func Proofs() []records.Proof {
	return []records.Proof{passwordProof, sessionProof(), keyProof}
}

var passwordProof = records.Proof{Type: "passwords", From: "passwords", Key: "user_id", Read: readPassword}

// storedPassword is the hash of a password, which the API does not show.
type storedPassword struct {
	UserID    string     `json:"user_id"`
	Hash      string     `json:"hash"`
	ChangedAt store.Time `json:"changed_at"`
}

const selectPasswordRow = `SELECT user_id, hash, changed_at FROM passwords WHERE user_id = $1`

func readPassword(ctx context.Context, q store.Querier, userID string) (store.Record, error) {
	var s storedPassword
	err := q.QueryRow(ctx, selectPasswordRow, userID).Scan(&s.UserID, &s.Hash, &s.ChangedAt)
	return store.Record{Stored: s}, err
}

func sessionProof() records.Proof {
	p := sessionTable.Proof()
	p.Outside, p.Expires = map[string]string{"current": "false", "last_used_at": `"` + store.Time(0).String() + `"`}, true
	return p
}

// auditedSession returns a session as the audit trail digests it.
func auditedSession(s Session) store.Record {
	s.Current, s.LastUsedAt = false, 0
	return store.Record{Answer: s, Stored: map[string]*store.Time{"ended_at": s.ended, "factor_at": s.factorAt}}
}

var keyProof = records.Proof{
	Type: keyTable.Type.Name, From: "api_keys", Key: "id", Read: readKeyRow, Outside: map[string]string{"last_used_at": "null"},
	Changes: &store.ChangeRule{Omit: []string{"last_used_at"}},
}

const selectKeyHash = `SELECT key_hash FROM api_keys WHERE id = $1`

// storedKey holds the columns of an API key that the API does not show.
type storedKey struct {
	Hash    string `json:"key_hash"`
	Version int64  `json:"version"`
}

func readKeyRow(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	k, err := scanKey(q.QueryRow(ctx, `SELECT `+keyColumns+` FROM api_keys WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	k.LastUsedAt = nil
	s := storedKey{Version: k.version}
	err = q.QueryRow(ctx, selectKeyHash, id).Scan(&s.Hash)
	return store.Record{Answer: k, Stored: s}, err
}
