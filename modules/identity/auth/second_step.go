package auth

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/factor"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// NextStep is the response to a sign-in that needs a second factor. It carries no access.
type NextStep struct {
	Message   string          `json:"message"`
	Token     string          `json:"token" doc:"For the next request, from the same device, at most five times."`
	ExpiresIn int64           `json:"expires_in" doc:"Seconds until the token ends."`
	Methods   []string        `json:"methods" example:"totp,recovery_code" doc:"What can complete the sign-in: passkey, totp or recovery_code."`
	Passkey   *PasskeyRequest `json:"passkey,omitzero" example:"-" doc:"Only if the user has a passkey."`
}

// PasskeyRequest asks a browser for a passkey.
type PasskeyRequest struct {
	Options jsontext.Value `json:"options" type:"object" example:"{\"challenge\":\"aBd3snOj5W6ItZJIJAXOTg\",\"timeout\":300000,\"rpId\":\"kontor.example\",\"userVerification\":\"required\"}" doc:"For navigator.credentials.get (WebAuthn)."`
}

// nextStep returns the next step of a sign-in that has proved amr so far, and an older method at a time, with the challenge that the
// caller must insert. It returns nil if nothing is missing.
func (s *Service) nextStep(ctx context.Context, userID string, amr Methods, at store.Time) (*NextStep, challenge, error) {
	return s.stepAfter(ctx, userID, challengeData{AMR: amr, At: at})
}

// stepAfter is [Service.nextStep] with what the challenge keeps of the first step.
func (s *Service) stepAfter(ctx context.Context, userID string, data challengeData) (*NextStep, challenge, error) {
	if data.AMR.acr() == access.TwoFactors {
		return nil, challenge{}, nil
	}
	methods, err := s.factorMethods(ctx, s.db, userID)
	if err != nil || len(methods) == 0 {
		return nil, challenge{}, err
	}
	step := &NextStep{
		Message: endpoint.Confirm(ctx, s.options.Texts, "auth.next_step").Message, Methods: methods, ExpiresIn: int64(challengeFor / time.Second),
	}
	if slices.Contains(methods, factor.Passkey) {
		step.Passkey = &PasskeyRequest{}
		if step.Passkey.Options, data.Session, err = s.Peers.Factors.PasskeyOptions(ctx, userID); err != nil {
			return nil, challenge{}, err
		}
	}
	c, token, err := s.newChallenge(ctx, forSignIn, userID, data)
	step.Token = token
	return step, c, err
}

// NextStep begins the second step of a sign-in with a provider, which has authenticated the user by its own methods (amr, RFC 8176)
// at a time. The time 0 is for an unknown one, and for an account that is on trial. NextStep returns nil if nothing is missing.
// Callers must not be in a transaction.
func (s *Service) NextStep(ctx context.Context, userID string, amr []string, at store.Time) (*NextStep, error) {
	step, c, err := s.nextStep(ctx, userID, federated(amr), at)
	if err != nil || step == nil {
		return nil, err
	}
	return step, s.beginChallenge(ctx, c)
}

// OpenFederatedSession opens a session for a user whom a provider has authenticated at a time. With the time 0, which means unknown
// or an account on trial, the session is not fresh before the user authenticates again. It returns apierr.InvalidCredentials for an
// unknown or disabled user. It returns apierr.Unavailable if amr is not enough for a user with a second factor.
func (s *Service) OpenFederatedSession(ctx context.Context, tx *store.Tx, userID string, amr []string, at store.Time) (Tokens, error) {
	proved := federated(amr)
	if err := s.requireNoStep(ctx, tx, userID, proved); err != nil {
		return Tokens{}, err
	}
	at = min(at, tx.Now())
	p := proof{amr: proved, at: at}
	if proved.provesFactor() {
		p.factorAt = &at
	}
	return s.openAfter(ctx, tx, s.newAttempt(ctx, userID, ""), p)
}

// requireNoStep returns apierr.Unavailable if a sign-in needs a second factor that was enrolled since its [NextStep] was decided.
func (s *Service) requireNoStep(ctx context.Context, tx *store.Tx, userID string, amr Methods) error {
	if amr.acr() == access.TwoFactors {
		return nil
	}
	methods, err := s.factorMethods(ctx, tx, userID)
	if err == nil && len(methods) > 0 {
		err = apierr.Unavailable
	}
	return err
}

// openAfter opens a session after the last step of a sign-in, and stores network and device of the attempt as known.
func (s *Service) openAfter(ctx context.Context, tx *store.Tx, tried attempt, p proof) (Tokens, error) {
	user, err := selectAccount(ctx, tx, login{tried.user, tried.user})
	if err != nil {
		return Tokens{}, err
	}
	if user.id == "" || user.id != tried.user || user.status == "disabled" {
		return Tokens{}, apierr.InvalidCredentials
	}
	if err := s.Peers.Users.SetLastLogin(ctx, tx, user.id); err != nil {
		return Tokens{}, err
	}
	tokens, session, err := s.openSession(ctx, tx, user.id, renewable, p)
	if err != nil {
		return Tokens{}, err
	}
	if err := rememberNetwork(ctx, tx, tried); err != nil {
		return Tokens{}, err
	}
	tokens.DeviceToken, err = s.renewDevice(ctx, tx, tried, session)
	return tokens, err
}

// CompleteSignIn opens a session for the token of a [NextStep] or of a passkey request and a right answer. It returns
// apierr.ChallengeExpired, apierr.InvalidFactor and apierr.LockedOut.
func (s *Service) CompleteSignIn(ctx context.Context, token string, answer factor.Answer) (Tokens, error) {
	var tokens Tokens
	err := s.answerChallenge(ctx, forSignIn, token, answer, func(ctx context.Context, tx *store.Tx, c challenge, accepted factor.Accepted) error {
		tried := s.newAttempt(ctx, accepted.UserID, "")
		p, err := s.completed(ctx, tx, c, accepted)
		if err != nil {
			return err
		}
		tokens, err = s.openAfter(ctx, tx, tried, p)
		if errors.Is(err, apierr.InvalidCredentials) {
			reportFailure(ctx, endpoint.FailedSignIn, actionSignInFailed, tried, accepted.UserID)
		}
		return err
	})
	return tokens, err
}

// completed returns what a sign-in has proved with its last step. A factor on trial does not make the session fresh by itself.
func (s *Service) completed(ctx context.Context, tx *store.Tx, c challenge, accepted factor.Accepted) (p proof, err error) {
	p = proof{amr: c.data.AMR.with(accepted.AMR...), at: c.data.At, byLink: c.data.ByLink}
	if !accepted.OnTrial {
		p.at = tx.Now()
	}
	p.factorAt, err = s.factorTime(ctx, tx, accepted)
	return p, err
}

// answerChallenge counts an attempt for a challenge and its user, evaluates the answer, and runs accept in the transaction that
// uses up challenge and answer.
func (s *Service) answerChallenge(ctx context.Context, p purpose, token string, answer factor.Answer,
	accept func(ctx context.Context, tx *store.Tx, c challenge, accepted factor.Accepted) error,
) error {
	c, err := s.openChallenge(ctx, p, token)
	if err != nil {
		return err
	}
	if c.userID == "" && len(answer.Passkey) == 0 {
		return apierr.InvalidFactor // only a passkey names its user
	}
	tried := s.newFactorAttempt(ctx, c.userID)
	return s.tryFactor(ctx, tried, &c, answer, func(ctx context.Context, tx *store.Tx, accepted factor.Accepted) error {
		if err := c.change(ctx, tx, useChallenge); err != nil {
			return err
		}
		return accept(ctx, tx, c, accepted)
	})
}

// tryFactor reserves an attempt, evaluates the answer, and runs accept in the transaction that uses the answer up. c is nil for an
// answer without a challenge.
func (s *Service) tryFactor(ctx context.Context, tried attempt, c *challenge, answer factor.Answer,
	accept func(ctx context.Context, tx *store.Tx, accepted factor.Accepted) error,
) error {
	release, err := s.acquireTurn(tried)
	if err != nil {
		return err
	}
	defer release()
	used, err := s.reserveFactor(ctx, tried, c)
	if err != nil {
		reportLockout(ctx, err, tried)
		return err
	}
	var session []byte
	if c != nil {
		session = c.data.Session
	}
	accepted, err := s.verifyFactor(ctx, tried, session, answer)
	if err != nil {
		return err
	}
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if err := accepted.Use(ctx, tx); err != nil {
			return err
		}
		if err := forgetFailures(ctx, tx, tried, used); err != nil {
			return err
		}
		return accept(ctx, tx, accepted)
	})
	return s.factorRefused(ctx, tried, err)
}

// reserveFactor counts an attempt for the challenge and, if it names one, for its user.
func (s *Service) reserveFactor(ctx context.Context, tried attempt, c *challenge) (used budgetSet, err error) {
	var wait time.Duration
	err = s.db.InTx(ctx, func(tx *store.Tx) error {
		if c != nil {
			if err := c.change(ctx, tx, countChallenge); err != nil {
				return err
			}
		}
		if tried.user == "" {
			return nil
		}
		if used, wait, err = s.reserveIn(ctx, tx, tried); err == nil && wait > 0 {
			return apierr.LockedOut.RetryAfter(wait) // the challenge keeps its attempt
		}
		return err
	})
	return used, err
}
