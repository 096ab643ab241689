package factors

import (
	"context"
	"errors"
	"time"

	"kontor/modules/kit/list"
	"kontor/modules/kit/records"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// list lists the factors of a user. The caller is the user, or may read the factors. It returns apierr.UserNotFound and
// apierr.NoAccess, and apierr.FactorRequired as requireOwn does.
func (s *Service) list(ctx context.Context, in list.OfInput) (list.Page[Factor], error) {
	if err := requireOwn(ctx, in.ID); err != nil {
		return list.Page[Factor]{}, err
	}
	if _, err := userStatus(ctx, s.db, in.ID); err != nil {
		return list.Page[Factor]{}, err
	}
	// Whole minutes, so that the totals can be cached for a minute.
	const minute = store.Time(time.Minute / time.Millisecond)
	current := list.Where{SQL: "user_id = $1 AND (status = 'active' OR created_at > $2)",
		Args: []any{in.ID, s.db.Now().Add(-enrolmentLife) / minute * minute}}
	return table.PageOf(ctx, s.db, factorList, in, current)
}

// requireOwn returns apierr.FactorRequired if the factors are those of another user and the caller has not enrolled a required
// factor in time. The endpoints are open to such callers, and an administrator without a factor could remove those of all others.
func requireOwn(ctx context.Context, userID string) error {
	if caller := access.From(ctx); caller.UserID != userID && caller.SignedIn.MustEnrol(endpoint.Of(ctx).Now) {
		return apierr.FactorRequired
	}
	return nil
}

// one returns a factor of a user with which the caller may do what is wanted. It returns apierr.UserNotFound,
// apierr.FactorNotFound and apierr.NoAccess, and apierr.FactorRequired as requireOwn does.
func (s *Service) one(ctx context.Context, q store.Querier, userID, factorID string, wanted access.Permission) (Factor, error) {
	if err := requireOwn(ctx, userID); err != nil {
		return Factor{}, err
	}
	f, err := table.Get(ctx, q, factorID, wanted)
	if err == nil && f.UserID == userID {
		return f, nil
	}
	if err != nil && !errors.Is(err, apierr.FactorNotFound) && !errors.Is(err, apierr.NoAccess) {
		return Factor{}, err
	}
	if _, err := userStatus(ctx, q, userID); err != nil {
		return Factor{}, err
	}
	if caller := access.From(ctx); caller.UserID != userID && !caller.May(access.Factors, wanted) {
		return Factor{}, apierr.NoAccess
	}
	return Factor{}, apierr.FactorNotFound
}

// own returns a factor of the caller. It returns apierr.NoAccess for that of another user, whatever the caller's rights.
func (s *Service) own(ctx context.Context, q store.Querier, userID, factorID string) (Factor, error) {
	f, err := s.one(ctx, q, userID, factorID, access.Update)
	if err == nil && f.UserID != access.From(ctx).UserID {
		err = apierr.NoAccess
	}
	return f, err
}

func (s *Service) findOwn(ctx context.Context, ids []string, _ any) error {
	_, err := s.own(ctx, s.db, ids[0], ids[1])
	return err
}

func (s *Service) findRemovable(ctx context.Context, ids []string, _ any) error {
	_, err := s.one(ctx, s.db, ids[0], ids[1], access.Delete)
	return err
}

// rename renames a factor of the caller. It returns apierr.UserNotFound, apierr.FactorNotFound, apierr.NoAccess,
// apierr.FactorNameExists and apierr.PreconditionFailed.
func (s *Service) rename(ctx context.Context, in renameInput) (Factor, error) {
	var renamed Factor
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		f, err := s.own(ctx, tx, in.UserID, in.FactorID)
		if err != nil {
			return err
		}
		if err := endpoint.CheckMatch(ctx, f.ETag()); err != nil {
			return err
		}
		if renamed = f; f.Name == in.Name {
			return nil
		}
		f.Name = in.Name
		taken, err := nameTaken(ctx, tx, f)
		if err != nil {
			return err
		}
		if taken {
			return apierr.FactorNameExists
		}
		if err := proof.ChangeRow(ctx, tx, "factors.rename", f.ID, updateName, f.ID, f.Name, types.Fold(f.Name)); err != nil {
			return err
		}
		renamed, err = table.GetUnchecked(ctx, tx, f.ID)
		return err
	})
	return renamed, err
}

// remove removes a factor of the caller, or of another user if the caller may delete it. With the last factor, the recovery
// codes end. It ends the sessions of the user except the caller's: a factor is often removed because a device is lost. It
// returns apierr.UserNotFound, apierr.FactorNotFound, apierr.NoAccess, apierr.OlderMethodKept, apierr.PreconditionFailed, and for an
// own factor that is confirmed what signin.Rule.Prove returns.
func (s *Service) remove(ctx context.Context, in removeInput) (endpoint.Message, error) {
	f, err := s.removable(ctx, s.db, in)
	if err != nil {
		return endpoint.Message{}, err
	}
	if f.Status != pending && access.From(ctx).UserID == f.UserID {
		if err := s.auth.Prove(ctx, in.Proof); err != nil {
			return endpoint.Message{}, err
		}
	}
	notification := s.changed(ctx, f.UserID, f.Type+"_removed")
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		f, err := s.removable(ctx, tx, in)
		if err != nil {
			return err
		}
		if err := s.delete(ctx, tx, f.ID, records.Actor(ctx), "factors.remove"); err != nil || f.Status == pending {
			return err
		}
		if err := s.deleteUselessCodes(ctx, tx, f.UserID); err != nil {
			return err
		}
		keep := ""
		if caller := access.From(ctx); caller.UserID == f.UserID {
			keep = caller.SessionID
		}
		if err := s.auth.EndSessions(ctx, tx, f.UserID, keep); err != nil {
			return err
		}
		s.auth.Changed(tx, f.UserID)
		return s.notify.Notify(ctx, tx, notification)
	})
	return endpoint.Confirm(ctx, s.texts, "factors.removed"), err
}

// removable returns a factor that the caller may remove now.
func (s *Service) removable(ctx context.Context, q store.Querier, in removeInput) (Factor, error) {
	f, err := s.one(ctx, q, in.UserID, in.FactorID, access.Delete)
	if err != nil {
		return Factor{}, err
	}
	if err := endpoint.CheckMatch(ctx, f.ETag()); err != nil {
		return Factor{}, err
	}
	return f, s.checkRemoval(ctx, q, f)
}

// delete deletes a factor with its recovery codes.
func (s *Service) delete(ctx context.Context, tx *store.Tx, id, actor, action string) error {
	return proof.ChangeBy(ctx, tx, actor, action, id, func() error { return tx.RunEach(ctx, id, deleteCodes, deleteFactor) })
}

// deleteUselessCodes deletes the recovery codes of a user without another factor.
func (s *Service) deleteUselessCodes(ctx context.Context, tx *store.Tx, userID string) error {
	all, err := ofUser(ctx, tx, userID)
	if err != nil {
		return err
	}
	for _, f := range all {
		if isSecond(f) {
			return nil
		}
	}
	for _, f := range all {
		if f.Type == RecoveryCodes {
			if err := s.delete(ctx, tx, f.ID, records.Actor(ctx), "factors.remove"); err != nil {
				return err
			}
		}
	}
	return nil
}

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
			if err := s.delete(ctx, tx, f.ID, records.Actor(ctx), "factors.reset"); err != nil {
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
	return s.db.InBatches(ctx, purgeBatch, func(tx *store.Tx) (int64, error) {
		expired, err := store.All(ctx, tx, scanFactor, selectExpired, tx.Now().Add(-enrolmentLife), purgeBatch)
		if err != nil {
			return 0, err
		}
		for _, f := range expired {
			if err := s.delete(ctx, tx, f.ID, store.NilID, "factors.expire"); err != nil {
				return 0, err
			}
		}
		return int64(len(expired)), nil
	})
}
