package auth

import (
	"cmp"
	"context"
	"errors"

	"kontor/modules/kit/factor"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Provider is what a proof needs from the sign-in with the operator's provider.
type Provider interface {
	// ProveAgain uses the one-time code of another sign-in of a user at the provider. It returns apierr.OIDCInvalidCode, and
	// apierr.MethodOnTrial for an account that was linked a short time ago.
	ProveAgain(ctx context.Context, userID, code string) error
	// CanProve reports whether a user has an account at the provider that is not on trial.
	CanProve(ctx context.Context, q store.Querier, userID string) (bool, error)
}

// Prove verifies that the request of the caller presents an older method of sign-in. It returns apierr.ProofRequired without one,
// apierr.InvalidInput for a wrong one, apierr.MethodOnTrial for a new one, apierr.LockedOut and apierr.Unavailable.
func (s *Service) Prove(ctx context.Context, p signin.Proof) error {
	userID := access.From(ctx).UserID
	switch {
	case p.Given() == 0:
		return s.proofRequired(ctx, userID)
	case p.Password != "":
		return s.checkPassword(ctx, userID, p.Password)
	case p.OIDCCode != "":
		return s.proveAgain(ctx, userID, p.OIDCCode)
	}
	answer := p.Answer()
	var refused error
	err := s.tryStepUp(ctx, userID, p.Token, answer, func(_ context.Context, _ *store.Tx, accepted factor.Accepted) error {
		if refused = nil; accepted.OnTrial {
			refused = until(apierr.MethodOnTrial, accepted.TrustedFrom)
		}
		return nil // committed: the answer is used
	})
	return cmp.Or(err, refused)
}

// checkPassword verifies the password of a signed-in user. A wrong one is no 401: the token is valid, and clients take 401 for the
// end of the session.
func (s *Service) checkPassword(ctx context.Context, userID, password string) error {
	err := s.VerifyPassword(ctx, userID, password)
	if errors.Is(err, apierr.InvalidCredentials) {
		return apierr.Invalid("password", "invalid.wrong_password")
	}
	return err
}

func (s *Service) proveAgain(ctx context.Context, userID, code string) error {
	err := error(apierr.OIDCInvalidCode)
	if s.Peers.Provider != nil {
		err = s.Peers.Provider.ProveAgain(ctx, userID, code)
	}
	if errors.Is(err, apierr.OIDCInvalidCode) {
		return apierr.Invalid("oidc_proof", "invalid.challenge")
	}
	return err
}

// proofRequired returns the error for a missing proof, with the methods of the user that can give it.
func (s *Service) proofRequired(ctx context.Context, userID string) error {
	methods, err := s.proofMethods(ctx, s.db, userID)
	if err != nil {
		return err
	}
	return apierr.ProofRequired.Detail("methods", methods)
}

// proofMethods returns the methods with which a user can prove themself: the password, and factors and the provider unless they are
// on trial.
func (s *Service) proofMethods(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	methods := []string{}
	user, err := selectAccount(ctx, q, login{userID, userID})
	if err != nil {
		return nil, err
	}
	if user.hash != "" {
		methods = append(methods, "password")
	}
	trusted, err := s.trustedFactors(ctx, q, userID)
	if err != nil {
		return nil, err
	}
	methods = append(methods, trusted...)
	if s.Peers.Provider != nil {
		can, err := s.Peers.Provider.CanProve(ctx, q, userID)
		if err != nil {
			return nil, err
		}
		if can {
			methods = append(methods, "oidc")
		}
	}
	return methods, nil
}

// trustedFactors returns the methods of a user's second factors that are not on trial.
func (s *Service) trustedFactors(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	if s.Peers.Factors == nil {
		return nil, nil
	}
	return s.Peers.Factors.Trusted(ctx, q, userID)
}

// checkStepUp returns apierr.MethodOnTrial for a factor on trial that would be the only proof of a step-up. It may add to a recent
// proof of an older method, and not in place of an older factor.
func (s *Service) checkStepUp(ctx context.Context, q store.Querier, accepted factor.Accepted) error {
	if !accepted.OnTrial {
		return nil
	}
	trusted, err := s.trustedFactors(ctx, q, accepted.UserID)
	if err != nil {
		return err
	}
	if len(trusted) > 0 || !access.From(ctx).SignedIn.Fresh(endpoint.Of(ctx).Now, endpoint.FreshFor) {
		return until(apierr.MethodOnTrial, accepted.TrustedFrom)
	}
	return nil
}

// factorTime returns the time at which a session has shown a second factor, or nil for a factor on trial of a user who has an older
// one.
func (s *Service) factorTime(ctx context.Context, q store.Querier, accepted factor.Accepted) (*store.Time, error) {
	now := q.Now()
	if !accepted.OnTrial {
		return &now, nil
	}
	trusted, err := s.trustedFactors(ctx, q, accepted.UserID)
	if err != nil || len(trusted) > 0 {
		return nil, err
	}
	return &now, nil
}
