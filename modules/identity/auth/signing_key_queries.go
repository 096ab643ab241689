package auth

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"

	"kontor/store"
)

const (
	selectSigningKeys = `SELECT kid, number, private_sealed, created_at, retired_at FROM signing_keys ORDER BY number DESC`

	insertSigningKey = `
		INSERT INTO signing_keys (kid, number, private_sealed, created_at, activated_at) VALUES ($1, $2, $3, $4, $4)`

	selectNewestSigningKey = `SELECT number, created_at FROM signing_keys ORDER BY number DESC LIMIT 1`

	selectFormerSigningKeys = `SELECT kid FROM signing_keys WHERE number < $1 ORDER BY number`

	retireSigningKeys = `UPDATE signing_keys SET retired_at = $2 WHERE number < $1 AND retired_at IS NULL`

	selectExpiredSigningKeys = `SELECT kid FROM signing_keys WHERE retired_at <= $1 ORDER BY number`

	deleteSigningKey        = `DELETE FROM signing_keys WHERE kid = $1`
	deleteFormerSigningKeys = `DELETE FROM signing_keys WHERE number < $1`

	// A key that is not sealed with the newest master key, and its replacement.
	selectOldSigningKeys = `
		SELECT kid, kid, private_sealed FROM signing_keys
		WHERE private_sealed NOT LIKE $1 AND kid > $2
		ORDER BY kid LIMIT $3`

	updateSigningKey = `UPDATE signing_keys SET private_sealed = $3 WHERE kid = $1 AND private_sealed = $2`
)

// The place of sealed private keys.
const (
	signingTable  = "signing_keys"
	signingColumn = "private_sealed"
)

var sealedSigningKeys = store.SealedColumn{
	Table: signingTable, Column: signingColumn, Select: selectOldSigningKeys, Update: updateSigningKey,
}

// loadSigningKeys reads the keys from the table.
func (s *Service) loadSigningKeys(ctx context.Context) error {
	rows, err := s.db.Query(ctx, selectSigningKeys)
	if err != nil {
		return fmt.Errorf("read the signing keys: %w", err)
	}
	defer rows.Close()
	var keys []*signingKey
	for rows.Next() {
		var kid, sealed string
		var number int64
		var created store.Time
		var retired *store.Time
		if err := rows.Scan(&kid, &number, &sealed, &created, &retired); err != nil {
			return fmt.Errorf("read a signing key: %w", err)
		}
		seed, err := s.db.Unseal(signingTable, signingColumn, kid, sealed)
		if err != nil || len(seed) != ed25519.SeedSize {
			return fmt.Errorf("open the signing key %s: %w", kid, errors.Join(err, errSigningKey))
		}
		k := newSigningKey(seed)
		k.number, k.created, k.retired = number, created, retired
		if k.kid != kid {
			return fmt.Errorf("open the signing key %s: %w", kid, errSigningKey)
		}
		keys = append(keys, k)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the signing keys: %w", err)
	}
	return s.useSigningKeys(keys)
}

var errSigningKey = errors.New("the signing key is not valid")
