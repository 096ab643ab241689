package factors

import (
	"context"

	"kontor/modules/kit/records"
	"kontor/store"
)

// OfUser returns the factors of a user for the operator, pending ones included.
func (s *Service) OfUser(ctx context.Context, userID string) ([]Factor, error) {
	return ofUser(ctx, s.db, userID)
}

// Reset removes all factors of a user for the operator, ends all sessions of the user, and tells them. It returns the number
// of active factors that were removed. Without any it changes nothing.
func (s *Service) Reset(ctx context.Context, userID string) (removed int, err error) {
	notification := s.changed(ctx, userID, "factors_reset")
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		removed = 0
		all, err := ofUser(ctx, tx, userID)
		if err != nil {
			return err
		}
		for _, f := range all {
			if err := s.delete(ctx, tx, f, records.Actor(ctx), "factors.reset"); err != nil {
				return err
			}
			if f.Status == active {
				removed++
			}
		}
		if removed == 0 {
			return nil
		}
		if err := s.auth.EndSessions(ctx, tx, userID, ""); err != nil {
			return err
		}
		s.auth.Changed(tx, userID)
		return s.notify.Notify(ctx, tx, notification)
	})
	return removed, err
}

// purgeBatch is the number of enrolments that one transaction deletes.
const purgeBatch = 200

// Purge deletes expired enrolments.
func (s *Service) Purge(ctx context.Context) error {
	for more := true; more; {
		err := s.db.InTx(ctx, func(tx *store.Tx) error {
			expired, err := store.All(ctx, tx, scanFactor, selectExpired, tx.Now().Add(-enrolmentLife), purgeBatch)
			if err != nil {
				return err
			}
			for _, f := range expired {
				if err := s.delete(ctx, tx, f, store.NilID, "factors.expire"); err != nil {
					return err
				}
			}
			more = len(expired) == purgeBatch
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
