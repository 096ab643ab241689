package factors

import (
	"context"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/event"
	"kontor/modules/kit/factor"
	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// Methods returns the methods that complete a sign-in of the user, the best first. It is empty for a user without a second
// factor: recovery codes alone do not count.
func (s *Service) Methods(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	all, err := ofUser(ctx, q, userID)
	if err != nil {
		return nil, err
	}
	return s.methodsOf(all), nil
}

// Trusted returns those of the methods that do not depend on a factor on trial.
func (s *Service) Trusted(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	all, err := ofUser(ctx, q, userID)
	if err != nil {
		return nil, err
	}
	now := q.Now()
	return s.methodsOf(slices.DeleteFunc(all, func(f Factor) bool { return f.onTrial(now) })), nil
}

func (s *Service) methodsOf(all []Factor) []string {
	has := map[string]bool{}
	for _, f := range all {
		switch {
		case isSecond(f):
			has[f.Type] = true
		case f.Type == RecoveryCodes && f.Remaining != nil && *f.Remaining > 0:
			has[factor.RecoveryCode] = true
		}
	}
	if !has[factor.Passkey] && !has[factor.TOTP] {
		return nil
	}
	if s.party == nil { // the address of the console has changed since
		has[factor.Passkey] = false
	}
	var methods []string
	for _, m := range []string{factor.Passkey, factor.TOTP, factor.RecoveryCode} {
		if has[m] {
			methods = append(methods, m)
		}
	}
	if len(methods) == 0 { // the password alone is not enough for a user whose passkeys cannot be used
		methods = []string{factor.RecoveryCode}
	}
	return methods
}

// InUse reports whether a user who holds one of the roles has an active second factor.
func (s *Service) InUse(ctx context.Context, q store.Querier, roleIDs []string) (bool, error) {
	if len(roleIDs) == 0 {
		return false, nil
	}
	return store.Exists(ctx, q, selectInUse+store.In(1, len(roleIDs))+") LIMIT 1", store.AppendIn(nil, roleIDs)...)
}

// Passkeys reports whether passkeys can be used at the address of the console.
func (s *Service) Passkeys() bool { return s.party != nil }

// PasskeyOptions begins a sign-in with a passkey: of a user, or of anybody without an id. It returns the options for
// navigator.credentials.get and the data that [Service.Verify] needs. It returns apierr.PasskeysUnavailable, and
// apierr.FactorNotFound for a user without a passkey.
func (s *Service) PasskeyOptions(ctx context.Context, userID string) (options jsontext.Value, session []byte, err error) {
	if s.party == nil {
		return nil, nil, apierr.PasskeysUnavailable
	}
	if userID == "" {
		return s.party.beginSignIn(nil)
	}
	a, err := s.account(ctx, s.db, userID)
	if err != nil {
		return nil, nil, err
	}
	if len(a.passkeys) == 0 {
		return nil, nil, apierr.FactorNotFound
	}
	return s.party.beginSignIn(&a)
}

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
	if err := s.delete(ctx, tx, f.ID, records.Actor(ctx), "factors.remove"); err != nil {
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
