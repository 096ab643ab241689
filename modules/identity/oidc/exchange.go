package oidc

import (
	"context"
	"errors"
	"net/http"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// exchange exchanges a one-time code for tokens, or for the next step of the sign-in. The code is void afterwards in any case.
func (s *Service) exchange(ctx context.Context, in exchangeInput) (endpoint.Result, error) {
	if s.provider == nil {
		return endpoint.Result{}, apierr.NotFound
	}
	userID, st, err := s.redeem(ctx, in.Code)
	if rejected, ok := errors.AsType[*rejection](err); ok {
		s.report(ctx, rejected)
		return endpoint.Result{}, rejected.kind
	}
	if err != nil {
		return endpoint.Result{}, err
	}
	step, err := s.sessions.NextStep(ctx, userID, st.Methods, st.At)
	if err != nil {
		return endpoint.Result{}, err
	}
	forget := s.setCookie("", 0)
	if step != nil {
		return endpoint.Result{Status: http.StatusAccepted, Body: step, SetCookie: forget}, nil
	}
	var tokens any
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.requireStaff(ctx, tx, userID); err != nil { // they may have been disabled since
			return err
		}
		tokens, err = s.sessions.OpenFederatedSession(ctx, tx, userID, st.Methods, st.At)
		return err
	})
	if rejected, ok := errors.AsType[*rejection](err); ok {
		s.report(ctx, rejected)
		return endpoint.Result{}, rejected.kind
	}
	return endpoint.Result{Status: http.StatusOK, Body: tokens, SetCookie: forget}, err
}

// redeem uses a code and returns its user, who is active staff and still linked. It returns a *rejection.
func (s *Service) redeem(ctx context.Context, code string) (userID string, st statement, err error) {
	var rejected *rejection
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		rejected = nil
		var err error
		if userID, st, err = s.redeemIn(ctx, tx, code); errors.As(err, &rejected) {
			return nil // committed: the code is void
		}
		return err
	})
	if err == nil && rejected != nil {
		err = rejected
	}
	return userID, st, err
}

func (s *Service) redeemIn(ctx context.Context, tx *store.Tx, code string) (userID string, st statement, err error) {
	userID, st, valid, err := s.useCode(ctx, tx, forSignIn, code)
	if err != nil {
		return "", st, err
	}
	if !valid {
		return "", st, reject(apierr.OIDCInvalidCode, "one_time_code", nil)
	}
	linked, err := identityTable.GetUnchecked(ctx, tx, st.Identity)
	if errors.Is(err, apierr.IdentityNotFound) || err == nil && linked.UserID != userID {
		return "", st, &rejection{kind: apierr.OIDCNoAccount, note: "unlinked", user: userID}
	}
	if err != nil {
		return "", st, err
	}
	if err := s.requireStaff(ctx, tx, userID); err != nil {
		return "", st, err
	}
	if linked.onTrial(tx.Now()) {
		st.At = 0 // the sign-in does not make the session fresh
	}
	_, err = tx.Exec(ctx, updateIdentityUse, st.Identity, tx.Now())
	return userID, st, err
}
