package factors

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/server/access"
	"kontor/store"
)

// Proofs returns how the audit trail digests factors with their recovery codes. The digests do not cover the last use, the
// counter and the backup state of a passkey, the time step of an authenticator app, and the enrolment of a pending factor. The
// secret of an authenticator app is sealed for its row, which protects it as well.
func Proofs() []records.Proof { return []records.Proof{proof} }

var proof = records.Proof{
	Type: access.Factors.Name, From: "factors", Key: "id", Read: readFactor, Outside: map[string]string{"last_used_at": "null"},
}

const (
	selectStored = `
		SELECT created_by, COALESCE(credential_id, ''), public_key, transports, aaguid, backup_eligible FROM factors WHERE id = $1`

	selectCodes = `SELECT code_hash, used_at FROM recovery_codes WHERE factor_id = $1 ORDER BY code_hash`
)

// storedFactor holds what the API does not show.
type storedFactor struct {
	Version        int64        `json:"version"`
	CreatedBy      string       `json:"created_by"`
	CredentialID   string       `json:"credential_id"`
	PublicKey      string       `json:"public_key"`
	Transports     string       `json:"transports"`
	AAGUID         string       `json:"aaguid"`
	BackupEligible bool         `json:"backup_eligible"`
	Codes          []storedCode `json:"codes"`
}

type storedCode struct {
	Hash   string      `json:"code_hash"`
	UsedAt *store.Time `json:"used_at"`
}

func readFactor(ctx context.Context, q store.Querier, id string) (store.Record, error) {
	f, err := scanFactor(q.QueryRow(ctx, `SELECT `+columns+` FROM factors WHERE id = $1`, id))
	if err != nil {
		return store.Record{}, err
	}
	f.LastUsedAt = nil
	s := storedFactor{Version: f.version}
	err = q.QueryRow(ctx, selectStored, id).Scan(&s.CreatedBy, &s.CredentialID, &s.PublicKey, &s.Transports, &s.AAGUID, &s.BackupEligible)
	if err == nil && f.Type == RecoveryCodes {
		s.Codes, err = store.All(ctx, q, func(row records.Row) (c storedCode, err error) {
			err = row.Scan(&c.Hash, &c.UsedAt)
			return c, err
		}, selectCodes, id)
	}
	return store.Record{Answer: f, Stored: s}, err
}

// audit writes an entry about a factor as it is now. before is its state before the change; nil: there was none.
func audit(ctx context.Context, tx *store.Tx, action, actor, id string, before any) error {
	return proof.AuditEntry(ctx, tx, store.AuditEntry{Actor: actor, Action: action, RecType: proof.Type, RecID: id, Before: before})
}
