package auth

import (
	"context"
	"errors"

	"kontor/store"
)

const (
	// A user id takes precedence over credentials. The former key of a value takes precedence over the key that it shares
	// with look-alikes: it belongs to a credential that collides with an older one.
	selectAccountByKey = `
		SELECT u.id, u.status, COALESCE(p.hash, '')
		FROM people u
		LEFT JOIN passwords p ON p.user_id = u.id
		WHERE u.id = COALESCE(
			(SELECT id FROM people WHERE id = $1),
			(SELECT user_id FROM user_credentials WHERE value_key = $2 AND validated = TRUE),
			(SELECT user_id FROM user_credentials WHERE value_key = $1 AND validated = TRUE))`

	upsertPassword = `
		INSERT INTO passwords (user_id, hash, changed_at) VALUES ($1, $2, $3)
		ON CONFLICT (user_id) DO UPDATE SET hash = excluded.hash, changed_at = excluded.changed_at, printed = FALSE`

	updatePasswordPrinted = `UPDATE passwords SET printed = TRUE WHERE user_id = $1`

	updatePasswordHash = `UPDATE passwords SET hash = $2 WHERE user_id = $1 AND hash = $3`

	selectPrinted = `SELECT printed FROM passwords WHERE user_id = $1`
)

// account is a user with the hash of their password. The zero account means an unknown user.
type account struct {
	id     string
	status string
	hash   string
}

// login holds the keys of a sign-in value.
type login struct{ key, former string }

// selectAccount returns the user of a value, or the zero account.
func selectAccount(ctx context.Context, q store.Querier, l login) (account, error) {
	var a account
	err := q.QueryRow(ctx, selectAccountByKey, l.key, l.former).Scan(&a.id, &a.status, &a.hash)
	if errors.Is(err, store.ErrNotFound) {
		return account{}, nil
	}
	return a, err
}
