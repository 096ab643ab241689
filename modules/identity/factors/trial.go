package factors

import (
	"context"

	"kontor/modules/kit/event"
	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// added is the event of a new factor, with the path of the link that removes it.
func (s *Service) added(ctx context.Context, userID, change, undo string) event.Event {
	return s.notify.Prerender(ctx, event.Event{Kind: event.FactorChanged, Type: access.Users, RecordID: userID,
		Recipients: []string{userID}, Args: map[string]any{"Change": change}, Undo: undo})
}

// checkRemoval returns apierr.OlderMethodKept for a factor that must stay while a newer method of its user is on trial.
func (s *Service) checkRemoval(ctx context.Context, q store.Querier, f Factor) error {
	if f.Status == pending {
		return nil
	}
	var trusted store.Time
	if f.TrustedFrom != nil {
		trusted = *f.TrustedFrom
	}
	return s.auth.CheckRemoval(ctx, q, f.UserID, trusted)
}

// OnTrial returns the factors of a user that are on trial or not confirmed.
func (s *Service) OnTrial(ctx context.Context, q store.Querier, userID string) ([]signin.Method, error) {
	all, err := ofUser(ctx, q, userID)
	if err != nil {
		return nil, err
	}
	var methods []signin.Method
	for _, f := range all {
		switch {
		case f.Status == pending:
			methods = append(methods, signin.Method{Kind: signin.Factor, ID: f.ID, UserID: userID})
		case f.onTrial(q.Now()):
			methods = append(methods, signin.Method{Kind: signin.Factor, ID: f.ID, UserID: userID, TrustedFrom: *f.TrustedFrom})
		}
	}
	return methods, nil
}

// Drop removes a factor, and with the last one the recovery codes.
func (s *Service) Drop(ctx context.Context, tx *store.Tx, m signin.Method, announce bool) error {
	f, err := table.GetUnchecked(ctx, tx, m.ID)
	if err != nil {
		return ignoreMissing(err)
	}
	if err := s.delete(ctx, tx, f, records.Actor(ctx), "factors.remove"); err != nil {
		return err
	}
	if err := s.deleteUselessCodes(ctx, tx, f.UserID); err != nil || !announce {
		return err
	}
	return s.notify.Notify(ctx, tx, event.Event{Kind: event.FactorChanged, Type: access.Users, RecordID: f.UserID,
		Recipients: []string{f.UserID}, Args: map[string]any{"Change": f.Type + "_removed"}})
}

// ignoreMissing returns nil for a factor that does not exist any more: it was removed with another one.
func ignoreMissing(err error) error {
	if apierr.Of(err).Kind == apierr.FactorNotFound {
		return nil
	}
	return err
}
