package directory

import (
	"context"

	"kontor/server/access"
	"kontor/store"
)

// keyRules is the version of the rules by which [LoginKey] makes keys. Raise it when they change: the next start makes the
// keys of all credentials anew.
const keyRules = 1

const (
	selectKeyRules = `SELECT COALESCE(max(version), 0) FROM credential_key_rules`
	insertKeyRules = `INSERT INTO credential_key_rules (version, applied_at) VALUES ($1, $2)`

	selectCredentialsFrom = `
		SELECT ` + credentialColumns + ` FROM credentials WHERE id > $1 ORDER BY id LIMIT $2`

	updateCredentialKey = `UPDATE credentials SET value_key = $2 WHERE id = $1`

	countKey = `SELECT count(*) FROM credentials WHERE value_key = $1 AND id <> $2`
)

// Start brings the keys of the credentials to the present rules. A credential whose new key another one has keeps its
// former key, by which its user still signs in; it is reported in the log and in the audit trail. A start that is cut off
// begins again.
func (s *Service) Start(ctx context.Context) error {
	var version int
	if err := s.db.QueryRow(ctx, selectKeyRules).Scan(&version); err != nil || version >= keyRules {
		return err
	}
	for after, more := "", true; more; {
		err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
			after, more, err = s.rekey(ctx, tx, after)
			return err
		})
		if err != nil {
			return err
		}
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, insertKeyRules, keyRules, tx.Now())
		return err
	})
}

// rekey makes the keys of some credentials anew, in the order of their ids: the older one of two that collide gets the key.
func (s *Service) rekey(ctx context.Context, tx *store.Tx, after string) (last string, more bool, err error) {
	part, err := selectPart(ctx, tx, after)
	if err != nil || len(part) == 0 {
		return after, false, err
	}
	for _, c := range part {
		id, err := parseIdentifier(c.Type, c.Value)
		if err != nil || id.key == c.target() {
			continue // what is no value any more stays as it is
		}
		key := id.key + c.key[len(c.target()):]
		var others int
		if err := tx.QueryRow(ctx, countKey, key, c.ID).Scan(&others); err != nil {
			return after, false, err
		}
		if others > 0 {
			s.Log.Warn("credential looks like an older one and keeps its former key", "credential_id", c.ID, "user_id", c.UserID)
			tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "credentials.look_alike", RecType: access.Credentials.Name, RecID: c.ID})
			continue
		}
		if _, err := tx.Exec(ctx, updateCredentialKey, c.ID, key); err != nil {
			return after, false, err
		}
	}
	return part[len(part)-1].ID, true, nil
}

func selectPart(ctx context.Context, q store.Querier, after string) ([]Credential, error) {
	rows, err := q.Query(ctx, selectCredentialsFrom, after, purgeBatch)
	if err != nil {
		return nil, err
	}
	return readCredentials(rows)
}
