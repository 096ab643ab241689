package directory

import (
	"context"

	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/store"
)

// keyRules is the version of the rules of [LoginKey], types.NameSkeleton and types.SearchKey. Raise it when they change:
// the next start derives the keys of all credentials and users again. 2 added the skeletons, 3 small
// capitals in them.
const keyRules = 3

const (
	selectKeyRules = `SELECT COALESCE(max(version), 0) FROM credential_key_rules`
	insertKeyRules = `INSERT INTO credential_key_rules (version, applied_at) VALUES ($1, $2)`

	selectCredentialsFrom = `
		SELECT ` + credentialColumns + ` FROM credentials WHERE id > $1 ORDER BY id LIMIT $2`

	updateCredentialKey = `UPDATE credentials SET value_key = $2 WHERE id = $1`

	updateValueSkeleton = `UPDATE credentials SET value_skeleton = $2 WHERE id = $1`

	countKey = `SELECT count(*) FROM credentials WHERE value_key = $1 AND id <> $2`

	selectNamesFrom = `
		SELECT id, display_name FROM users WHERE id > $1 AND display_name <> '' ORDER BY id LIMIT $2`

	updateNameKeys = `UPDATE users SET display_name_key = $2, display_name_skeleton = $3 WHERE id = $1`
)

// Start derives the keys of credentials and names again when the rules have changed. A credential whose new key another one
// has keeps its former key, with which its user still signs in; the log and the audit trail report it. An interrupted start
// begins again. Call Start once the records have their audit entries: a changed key leaves a further one.
func (s *Service) Start(ctx context.Context) error {
	var version int
	if err := s.db.QueryRow(ctx, selectKeyRules).Scan(&version); err != nil || version >= keyRules {
		return err
	}
	for _, part := range []func(ctx context.Context, tx *store.Tx, after string) (last string, more bool, err error){s.rekey, s.rekeyNames} {
		for after, more := "", true; more; {
			err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
				after, more, err = part(ctx, tx, after)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return s.db.InTx(ctx, func(tx *store.Tx) error {
		_, err := tx.Exec(ctx, insertKeyRules, keyRules, tx.Now())
		return err
	})
}

// rekey derives the keys of some credentials again, in the order of their ids: the older one of two that collide gets the
// key.
func (s *Service) rekey(ctx context.Context, tx *store.Tx, after string) (last string, more bool, err error) {
	part, err := selectPart(ctx, tx, after)
	if err != nil || len(part) == 0 {
		return after, false, err
	}
	for _, c := range part {
		if _, err := tx.Exec(ctx, updateValueSkeleton, c.ID, types.NameSkeleton(c.Value)); err != nil {
			return after, false, err
		}
		if err := s.rekeyOne(ctx, tx, c); err != nil {
			return after, false, err
		}
	}
	return part[len(part)-1].ID, true, nil
}

// rekeyOne derives the key of one credential again.
func (s *Service) rekeyOne(ctx context.Context, tx *store.Tx, c Credential) error {
	id, err := parseIdentifier(c.Type, c.Value)
	if valid := err == nil; !valid || id.key == c.target() {
		return nil // a value that is no longer valid keeps its key
	}
	key := id.key + c.key[len(c.target()):]
	var others int
	if err := tx.QueryRow(ctx, countKey, key, c.ID).Scan(&others); err != nil {
		return err
	}
	if others > 0 {
		s.Log.Warn("credential looks like an older one and keeps its former key", "credential_id", c.ID, "user_id", c.UserID)
		tx.Audit(store.AuditEntry{Actor: store.NilID, Action: "credentials.look_alike", RecType: access.Credentials.Name, RecID: c.ID})
		return nil
	}
	if _, err := tx.Exec(ctx, updateCredentialKey, c.ID, key); err != nil {
		return err
	}
	entry := store.AuditEntry{Actor: store.NilID, Action: "credentials.rekey", RecType: credentialProof.Type, RecID: c.ID}
	return credentialProof.AuditEntry(ctx, tx, entry)
}

// rekeyNames derives the keys of some display names again.
func (s *Service) rekeyNames(ctx context.Context, tx *store.Tx, after string) (last string, more bool, err error) {
	names := map[string]string{}
	rows, err := tx.Query(ctx, selectNamesFrom, after, purgeBatch)
	if err != nil {
		return after, false, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&last, &name); err != nil {
			return after, false, err
		}
		names[last] = name
	}
	if err := rows.Err(); err != nil {
		return after, false, err
	}
	for id, name := range names {
		if _, err := tx.Exec(ctx, updateNameKeys, id, types.SearchKey(name), types.NameSkeleton(name)); err != nil {
			return after, false, err
		}
	}
	return last, len(names) > 0, nil
}

func selectPart(ctx context.Context, q store.Querier, after string) ([]Credential, error) {
	rows, err := q.Query(ctx, selectCredentialsFrom, after, purgeBatch)
	if err != nil {
		return nil, err
	}
	return readCredentials(rows)
}
