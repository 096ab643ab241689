package oidc

import (
	"context"
	"errors"

	"kontor/modules/kit/signin"
	"kontor/server/apierr"
	"kontor/store"
)

// OnTrial returns the identities of a user that are on trial.
func (s *Service) OnTrial(ctx context.Context, q store.Querier, userID string) ([]signin.Method, error) {
	found, err := store.All(ctx, q, scanIdentity, selectOnTrial, userID, q.Now())
	if err != nil {
		return nil, err
	}
	methods := make([]signin.Method, len(found))
	for i, row := range found {
		methods[i] = signin.Method{Kind: signin.Identity, ID: row.ID, UserID: userID, TrustedFrom: *row.TrustedFrom}
	}
	return methods, nil
}

// Drop deletes an identity.
func (s *Service) Drop(ctx context.Context, tx *store.Tx, m signin.Method, announce bool) error {
	row, err := identityTable.GetUnchecked(ctx, tx, m.ID)
	if errors.Is(err, apierr.IdentityNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.delete(ctx, tx, row); err != nil || !announce {
		return err
	}
	return s.outbox.CredentialRemoved(ctx, tx, row.UserID, s.Name())
}

// CanProve reports whether a user has an account at the provider that is not on trial.
func (s *Service) CanProve(ctx context.Context, q store.Querier, userID string) (bool, error) {
	if s.provider == nil {
		return false, nil
	}
	var n int
	err := q.QueryRow(ctx, countTrusted, userID, s.options.Issuer, q.Now()).Scan(&n)
	return n > 0, err
}

// ProveAgain uses the one-time code of another sign-in of a user at the provider. It returns apierr.OIDCInvalidCode, and
// apierr.MethodOnTrial for an identity on trial.
func (s *Service) ProveAgain(ctx context.Context, userID, code string) error {
	var refused error
	err := s.db.InTx(ctx, func(tx *store.Tx) error {
		refused = apierr.OIDCInvalidCode
		owner, st, valid, err := s.useCode(ctx, tx, forProof, code)
		if err != nil || !valid || owner != userID {
			return err // committed without an error: the code is void
		}
		linked, err := identityTable.GetUnchecked(ctx, tx, st.Identity)
		switch {
		case errors.Is(err, apierr.IdentityNotFound):
			return nil
		case err != nil:
			return err
		case linked.UserID != userID:
			return nil
		}
		if refused = nil; linked.onTrial(tx.Now()) {
			refused = apierr.MethodOnTrial.With(apierr.Args{"Time": linked.TrustedFrom.String()}).Detail("until", *linked.TrustedFrom)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return refused
}
