package serviceaccounts

import (
	"context"
	"errors"
	"time"

	"kontor/modules/kit/event"
	"kontor/server/access"
	"kontor/store"
)

const (
	// warnBefore is how long before its expiry administrators are notified of a token.
	warnBefore = 7 * 24 * time.Hour
	warnBatch  = 50
)

// expiring is a token that expires soon.
type expiring struct {
	id, accountID, name, account string
	expires                      store.Time
}

// WarnOfExpiry notifies administrators of the tokens that expire within seven days, once for each token. Call it about once an
// hour.
func (s *Service) WarnOfExpiry(ctx context.Context) error {
	for warned := warnBatch; warned == warnBatch; {
		err := s.db.InTx(ctx, func(tx *store.Tx) error {
			found, err := selectExpiringTokens(ctx, tx)
			if warned = len(found); err != nil || warned == 0 {
				return err
			}
			return s.warn(ctx, tx, found)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) warn(ctx context.Context, tx *store.Tx, tokens []expiring) error {
	administrators, err := s.users.Administrators(ctx, tx)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if err := s.notifier.Notify(ctx, tx, event.Event{
			Kind: event.ServiceTokenExpiring, Type: access.Services, RecordID: t.accountID, Recipients: administrators,
			Args: map[string]any{"Name": t.name, "Account": t.account, "Date": t.expires.Std().UTC().Format(time.DateOnly)},
		}); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, updateWarned, t.id, tx.Now()); err != nil {
			return err
		}
	}
	return nil
}

func selectExpiringTokens(ctx context.Context, tx *store.Tx) ([]expiring, error) {
	rows, err := tx.Query(ctx, selectExpiring, tx.Now(), tx.Now().Add(warnBefore), warnBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []expiring
	for rows.Next() {
		var t expiring
		if err := rows.Scan(&t.id, &t.accountID, &t.name, &t.expires, &t.account); err != nil {
			return nil, err
		}
		found = append(found, t)
	}
	return found, errors.Join(rows.Err())
}
