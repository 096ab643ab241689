package auth

import (
	"context"
	"time"

	"kontor/store"
)

// How long rows are kept that are no longer used.
const (
	keepSessions = 30 * 24 * time.Hour  // after their end, for investigations
	keepDevices  = 400 * 24 * time.Hour // after their last use
)

// purgeBatch is the number of rows that one transaction deletes, so that other writes do not wait long.
const purgeBatch = 500

const (
	purgeRefreshTokens = `
		DELETE FROM refresh_tokens WHERE token_hash IN (
			SELECT t.token_hash FROM refresh_tokens t JOIN sessions s ON s.id = t.session_id
			WHERE s.expires_at <= $1 LIMIT $2)`
	purgeSessions = `
		DELETE FROM sessions WHERE id IN (
			SELECT id FROM sessions s
			WHERE expires_at <= $1 AND NOT EXISTS (SELECT 1 FROM refresh_tokens WHERE session_id = s.id)
			ORDER BY expires_at, id LIMIT $2)`
	purgeDevices = `
		DELETE FROM devices WHERE (user_id, device_id) IN (
			SELECT user_id, device_id FROM devices WHERE last_use_at <= $1 LIMIT $2)`
	purgeFailures = `
		DELETE FROM sign_in_failures WHERE subject IN (
			SELECT subject FROM sign_in_failures WHERE last_at <= $1 LIMIT $2)`
	purgeKnownNetworks = `
		DELETE FROM known_networks WHERE subject IN (
			SELECT subject FROM known_networks WHERE last_success_at <= $1 LIMIT $2)`
	purgeDeviceTokens = `
		DELETE FROM device_tokens WHERE id IN (
			SELECT id FROM device_tokens WHERE expires_at <= $1 LIMIT $2)`
	purgeChallenges = `
		DELETE FROM auth_challenges WHERE id IN (
			SELECT id FROM auth_challenges WHERE expires_at <= $1 LIMIT $2)`
	purgeUndos = `
		DELETE FROM sign_in_undos WHERE id IN (
			SELECT id FROM sign_in_undos WHERE expires_at <= $1 LIMIT $2)`
	purgeValues = `
		DELETE FROM sign_in_values WHERE (network, subject) IN (
			SELECT network, subject FROM sign_in_values WHERE at <= $1 LIMIT $2)`
)

// Purge deletes rows that are no longer used: sessions that ended long ago with their tokens, unused devices, and expired
// failures. Call it about once an hour.
func (s *Service) Purge(ctx context.Context) error {
	for _, step := range []struct {
		statement string
		keep      time.Duration
	}{
		{purgeRefreshTokens, keepSessions},
		{purgeSessions, keepSessions},
		{purgeDevices, keepDevices},
		{purgeFailures, forgetAfter},
		{purgeValues, valuesWindow},
		{purgeKnownNetworks, networkKnownFor},
		{purgeDeviceTokens, 0},
		{purgeChallenges, 0},
		{purgeUndos, 0},
	} {
		for deleted := int64(purgeBatch); deleted == purgeBatch; {
			err := s.db.InTx(ctx, func(tx *store.Tx) (err error) {
				deleted, err = tx.Exec(ctx, step.statement, tx.Now().Add(-step.keep), purgeBatch)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
