package auth

import (
	"context"
	"encoding/hex"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/factor"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	// factorAttempts is the number of wrong answers before the first lockout, if not even fewer wrong passwords are allowed.
	factorAttempts = 5

	actionFactorFailed = "auth.factor_failed"
)

// Factors is what sign-in needs from second factors. Without it no user has one.
type Factors interface {
	// Methods returns the methods with which a user can complete a sign-in. It is empty without an active second factor;
	// recovery codes alone are none.
	Methods(ctx context.Context, q store.Querier, userID string) ([]string, error)
	// Trusted returns those of the methods that do not depend on a factor on trial (see the package signin).
	Trusted(ctx context.Context, q store.Querier, userID string) ([]string, error)
	// InUse reports whether any user with one of the roles has an active second factor.
	InUse(ctx context.Context, q store.Querier, roleIDs []string) (bool, error)
	// Passkeys reports whether passkeys work at the address of this installation.
	Passkeys() bool
	// PasskeyOptions begins an assertion. userID is empty for a sign-in without a password. It returns the options for
	// navigator.credentials.get and the data that Verify needs.
	PasskeyOptions(ctx context.Context, userID string) (options jsontext.Value, session []byte, err error)
	// Verify checks an answer outside a transaction. userID is empty for a passkey that names its user. It returns
	// apierr.InvalidFactor for a wrong answer.
	Verify(ctx context.Context, userID string, session []byte, answer factor.Answer) (factor.Accepted, error)
}

// factorMethods returns the methods with which a user can complete a sign-in, or nothing.
func (s *Service) factorMethods(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	if s.Peers.Factors == nil {
		return nil, nil
	}
	return s.Peers.Factors.Methods(ctx, q, userID)
}

// newFactorAttempt returns an attempt with subjects of its own: neither does a right password delete failures of factors, nor do
// failures of factors lock out the password.
func (s *Service) newFactorAttempt(ctx context.Context, userID string) attempt {
	a := s.attemptAs(ctx, userID, "factor "+userID, min(s.options.FreeAttempts, factorAttempts))
	if a.device.id != "" {
		a.device.subject = hex.EncodeToString(s.db.Keyed("sign-in factor device", []byte(a.device.id)))
	}
	return a
}

// verifyFactor evaluates an answer whose attempt is reserved. It reports a wrong one.
func (s *Service) verifyFactor(ctx context.Context, tried attempt, session []byte, answer factor.Answer) (factor.Accepted, error) {
	if s.Peers.Factors == nil {
		return factor.Accepted{}, apierr.InvalidFactor
	}
	accepted, err := s.Peers.Factors.Verify(ctx, tried.user, session, answer)
	if err == nil && (accepted.UserID == "" || tried.user != "" && accepted.UserID != tried.user) {
		err = apierr.InvalidFactor
	}
	return accepted, s.factorRefused(ctx, tried, err)
}

// factorRefused reports a wrong answer to the audit trail and counts it for the networks of the attempt.
func (s *Service) factorRefused(ctx context.Context, tried attempt, err error) error {
	if !errors.Is(err, apierr.InvalidFactor) {
		return err
	}
	s.options.Log.Info("second factor rejected", "request_id", endpoint.Of(ctx).RequestID)
	reportFailure(ctx, endpoint.FailedSignIn, actionFactorFailed, tried, tried.user)
	if counted := s.countNetworkFailure(ctx, tried); counted != nil {
		return counted
	}
	return err
}

// factorMessages are the texts of wrong answers within a session, by the member of the request.
var factorMessages = map[string]string{
	"code": "invalid.wrong_code", "recovery_code": "invalid.wrong_recovery_code", "passkey": "invalid.wrong_passkey",
}

// asField turns a wrong answer into an invalid input. Within a session it is not a 401, which clients take for its end.
func asField(err error, answer factor.Answer) error {
	switch {
	case errors.Is(err, apierr.InvalidFactor):
		return apierr.Invalid(answer.Field(), factorMessages[answer.Field()])
	case errors.Is(err, apierr.ChallengeExpired):
		return apierr.Invalid("token", "invalid.challenge")
	}
	return err
}

// FactorVerified records in the caller's session that their first second factor was verified now, for its confirmation. The
// session does not become fresh.
func (s *Service) FactorVerified(ctx context.Context, tx *store.Tx, amr []string) error {
	return s.raiseSession(ctx, tx, amr, false)
}
