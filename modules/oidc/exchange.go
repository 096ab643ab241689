package oidc

import (
	"context"
	"errors"
	"net/http"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// methodFederated is the method of a session that the provider vouches for, beside those that it names.
const methodFederated = "fed"

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
	methods := append([]string{methodFederated}, st.Methods...)
	step, err := s.sessions.NextStep(ctx, userID, methods)
	if err != nil {
		return endpoint.Result{}, err
	}
	forget := s.setCookie("", 0)
	if step != nil {
		return endpoint.Result{Status: http.StatusAccepted, Body: step, SetCookie: forget}, nil
	}
	var tokens any
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := s.mayLink(ctx, tx, userID); err != nil { // they may have been disabled since
			return err
		}
		tokens, err = s.sessions.OpenFederatedSession(ctx, tx, userID, methods, st.At)
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
	var refused error
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		refused = nil
		var refusal error
		var err error
		if userID, st, refusal, err = s.useCode(ctx, tx, forSignIn, code); err != nil {
			return err
		}
		if refusal != nil {
			refused = reject(apierr.OIDCInvalidCode, "one_time_code", nil)
			return nil
		}
		if linked, err := identityTable.GetUnchecked(ctx, tx, st.Identity); errors.Is(err, apierr.IdentityNotFound) || err == nil && linked.UserID != userID {
			refused = &rejection{kind: apierr.OIDCNoAccount, note: "unlinked", user: userID}
			return nil
		} else if err != nil {
			return err
		}
		var rejected *rejection
		if err := s.mayLink(ctx, tx, userID); errors.As(err, &rejected) {
			refused = rejected
			return nil
		} else if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, updateIdentityUse, st.Identity, tx.Now())
		return err
	})
	if err == nil {
		err = refused
	}
	return userID, st, err
}
