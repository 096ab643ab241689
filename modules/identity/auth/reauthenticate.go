package auth

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/factor"
	"kontor/modules/kit/records"
	"kontor/modules/kit/signin"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const actionReauthenticate = "auth.session_reauthenticated"

const updateAuthenticated = `UPDATE sessions SET amr = $2, authenticated_at = $3, factor_at = $4 WHERE id = $1 AND ended_at IS NULL`

// stepUp verifies the caller again and makes their session fresh. A factor on trial only adds to a session that is fresh.
// stepUp returns apierr.UserNotFound, apierr.NoAccess for another user, apierr.InvalidInput for a wrong password or answer,
// apierr.MethodOnTrial, apierr.LockedOut and apierr.Unavailable.
func (s *Service) stepUp(ctx context.Context, in reauthenticateInput) error {
	if err := s.requireSelf(ctx, in.UserID); err != nil {
		return err
	}
	if in.Password != "" {
		if err := s.checkPassword(ctx, in.UserID, in.Password); err != nil {
			return err
		}
		return s.db.InTx(ctx, func(tx *store.Tx) error { return s.raiseSession(ctx, tx, []string{factor.AMRPassword}, true) })
	}
	var refused error
	err := s.tryStepUp(ctx, in.UserID, in.Token, in.answer(), func(ctx context.Context, tx *store.Tx, accepted factor.Accepted) error {
		refused = nil
		err := s.checkStepUp(ctx, tx, accepted)
		if errors.Is(err, apierr.MethodOnTrial) {
			refused = err
			return nil // committed: the answer is used
		}
		if err != nil {
			return err
		}
		return s.raiseSession(ctx, tx, accepted.AMR, !accepted.OnTrial)
	})
	return cmp.Or(err, refused)
}

// tryStepUp evaluates an answer within a session, and runs accept in the transaction that uses it up. A passkey comes with the
// token of its request. It returns apierr.InvalidInput for a wrong answer.
func (s *Service) tryStepUp(ctx context.Context, userID, token string, answer factor.Answer,
	accept func(ctx context.Context, tx *store.Tx, accepted factor.Accepted) error,
) error {
	if len(answer.Passkey) == 0 {
		return asField(s.tryFactor(ctx, s.newFactorAttempt(ctx, userID), nil, answer, accept), answer)
	}
	err := s.answerChallenge(ctx, forStepUp, token, answer, func(ctx context.Context, tx *store.Tx, _ challenge, accepted factor.Accepted) error {
		return accept(ctx, tx, accepted)
	})
	return asField(err, answer)
}

// requireSelf returns apierr.UserNotFound for an unknown user and apierr.NoAccess for another one than the caller.
func (s *Service) requireSelf(ctx context.Context, userID string) error {
	if access.From(ctx).UserID == userID {
		return nil
	}
	if err := userExists(ctx, s.db, userID); err != nil {
		return err
	}
	return apierr.NoAccess
}

// raiseSession records that the caller was authenticated now. Without fresh, only the time of the second factor changes.
func (s *Service) raiseSession(ctx context.Context, tx *store.Tx, amr []string, fresh bool) error {
	caller := access.From(ctx)
	row, err := sessionTable.GetUnchecked(ctx, tx, caller.SessionID)
	switch {
	case errors.Is(err, apierr.SessionNotFound), err == nil && (row.ended != nil || row.UserID != caller.UserID):
		return apierr.Unauthorized // the session has ended since
	case err != nil:
		return err
	}
	before, now := auditedSession(row), tx.Now()
	row.AMR = row.AMR.with(amr...)
	row.ACR = row.AMR.acr()
	if fresh {
		row.AuthenticatedAt = now
	}
	if Methods(amr).provesFactor() {
		row.factorAt = &now
	}
	if _, err := tx.Exec(ctx, updateAuthenticated, row.ID, row.AMR, row.AuthenticatedAt, row.factorAt); err != nil {
		return err
	}
	s.drop(tx, row.UserID)
	tx.Audit(store.AuditEntry{Actor: records.Actor(ctx), Action: actionReauthenticate, RecType: access.Sessions.Name, RecID: row.ID, Before: before, After: auditedSession(row)})
	return nil
}

type reauthenticateInput struct {
	UserID       string         `path:"id"`
	Password     string         `json:"password" format:"password" required:"false" doc:"One of password, code, recovery_code and passkey."`
	Code         string         `json:"code" maxLength:"64" example:"-" doc:"Of an authenticator app."`
	RecoveryCode string         `json:"recovery_code" maxLength:"64" example:"-"`
	Passkey      jsontext.Value `json:"passkey" type:"object" example:"-" doc:"What navigator.credentials.get returned (WebAuthn)."`
	Token        string         `json:"token" maxLength:"128" example:"-" doc:"Only with a passkey: the token of its request."`
}

func (in *reauthenticateInput) answer() factor.Answer {
	return factor.Answer{Code: in.Code, RecoveryCode: in.RecoveryCode, Passkey: in.Passkey}
}

// Validate requires a password or an answer of a second factor, not both.
func (in *reauthenticateInput) Validate(v *apierr.Fields) {
	in.Passkey = checkAnswer(v, in.Code, in.RecoveryCode, in.Passkey)
	if len(in.Token) > maxToken {
		v.Add("token", "invalid.max_length", apierr.Args{"Max": maxToken})
	}
	given := in.answer().Given()
	switch {
	case given == 0 && in.Password == "":
		v.Add("password", "invalid.required")
	case given > 1 || given == 1 && in.Password != "":
		v.Add("password", "invalid.one_authentication")
	case len(in.Passkey) > 0 && in.Token == "":
		v.Add("token", "invalid.required")
	}
}

type reauthenticateOutput struct {
	Message    string     `json:"message"`
	FreshUntil store.Time `json:"fresh_until" doc:"Until then the session may do what needs a recent authentication."`
	ACR        string     `json:"acr" enum:"aal1,aal2" doc:"The assurance level of the session: aal1 after one factor, aal2 after two."`
}

func (s *Service) reauthenticate(ctx context.Context, in reauthenticateInput) (reauthenticateOutput, error) {
	if err := s.stepUp(ctx, in); err != nil {
		return reauthenticateOutput{}, err
	}
	row, err := sessionTable.GetUnchecked(ctx, s.db, access.From(ctx).SessionID)
	text := "auth.reauthenticated"
	if in.Password == "" {
		text = "auth.factor_confirmed"
	}
	return reauthenticateOutput{
		Message:    endpoint.Confirm(ctx, s.options.Texts, text).Message,
		FreshUntil: row.AuthenticatedAt.Add(endpoint.FreshFor), ACR: row.ACR,
	}, err
}

type ownInput struct {
	UserID string `path:"id"`
}

// reauthenticateWays are the ways in which a user can authenticate again.
type reauthenticateWays struct {
	Methods   []string       `json:"methods" example:"password,totp,recovery_code" doc:"password, totp, passkey and recovery_code, as far as the user has them."`
	Token     string         `json:"token,omitzero" example:"-" doc:"Only with a passkey: to be sent with it, once."`
	ExpiresIn int64          `json:"expires_in,omitzero" example:"-" doc:"Seconds until the token ends."`
	Options   jsontext.Value `json:"options,omitzero" type:"object" example:"-" doc:"Only with a passkey: for navigator.credentials.get (WebAuthn)."`
}

// reauthenticateOptions returns how the caller can authenticate again. It returns apierr.UserNotFound, and apierr.NoAccess for
// another user.
func (s *Service) reauthenticateOptions(ctx context.Context, in ownInput) (reauthenticateWays, error) {
	var out reauthenticateWays
	if err := s.requireSelf(ctx, in.UserID); err != nil {
		return out, err
	}
	user, err := selectAccount(ctx, s.db, login{in.UserID, in.UserID})
	if err != nil {
		return out, err
	}
	if user.hash != "" {
		out.Methods = append(out.Methods, "password")
	}
	methods, err := s.stepUpMethods(ctx, in.UserID)
	if err != nil {
		return out, err
	}
	if out.Methods = append(out.Methods, methods...); !slices.Contains(methods, factor.Passkey) {
		return out, nil
	}
	options, session, err := s.Peers.Factors.PasskeyOptions(ctx, in.UserID)
	if err != nil {
		return out, err
	}
	c, token, err := s.newChallenge(ctx, forStepUp, in.UserID, challengeData{Session: session})
	if err != nil {
		return out, err
	}
	out.Token, out.ExpiresIn, out.Options = token, int64(challengeFor/time.Second), options
	return out, s.beginChallenge(ctx, c)
}

// stepUpMethods returns the methods of second factors that the caller's session accepts now.
func (s *Service) stepUpMethods(ctx context.Context, userID string) ([]string, error) {
	trusted, err := s.trustedFactors(ctx, s.db, userID)
	if err != nil || len(trusted) > 0 || !access.From(ctx).SignedIn.Fresh(endpoint.Of(ctx).Now, endpoint.FreshFor) {
		return trusted, err
	}
	return s.factorMethods(ctx, s.db, userID)
}

// amrOrder is the order in which methods are stored.
var amrOrder = []string{factor.AMRPassword, factor.AMRFederated, factor.AMROTP, factor.AMRHardware, factor.AMRSoftware, factor.AMRUser, factor.AMRMultiple}

// Methods are the authentication methods of a session.
type Methods []string

// with returns the methods together with more, each once. Two kinds of factors add mfa: something known and something held, or a
// passkey that has verified the person. The same factor shown twice adds nothing.
func (m Methods) with(more ...string) Methods {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(m, name) || slices.Contains(more, name) })
	}
	key := has(factor.AMRHardware, factor.AMRSoftware)
	multiple := has(factor.AMRMultiple) || has(factor.AMRPassword, factor.AMRFederated) && (key || has(factor.AMROTP)) || key && has(factor.AMRUser)
	var all Methods
	for _, name := range amrOrder {
		if has(name) || name == factor.AMRMultiple && multiple {
			all = append(all, name)
		}
	}
	return all
}

// The kinds of the methods of RFC 8176. The others, such as geo, rba and user, state something else than a factor.
var methodKinds = map[string]string{
	"pwd": "knowledge", "pin": "knowledge", "kba": "knowledge",
	"otp": "possession", "hwk": "possession", "swk": "possession", "sms": "possession", "tel": "possession", "sc": "possession",
	"face": "inherence", "fpt": "inherence", "iris": "inherence", "retina": "inherence", "vbm": "inherence",
}

// federated returns the methods of a sign-in with a provider, from those that the provider states. The sign-in is one factor,
// whatever it was, unless the provider states mfa, or methods of two kinds.
func federated(stated []string) Methods {
	kinds := map[string]bool{}
	for _, name := range stated {
		if kind := methodKinds[name]; kind != "" {
			kinds[kind] = true
		}
	}
	m := Methods{factor.AMRFederated}
	if slices.Contains(stated, factor.AMRPassword) {
		m = m.with(factor.AMRPassword)
	}
	if !slices.Contains(stated, factor.AMRMultiple) && len(kinds) < 2 {
		return m
	}
	return m.with(append(slices.Clone(stated), factor.AMRMultiple)...)
}

// acr returns the assurance level of the methods.
func (m Methods) acr() string {
	if slices.Contains(m, factor.AMRMultiple) {
		return access.TwoFactors
	}
	return access.OneFactor
}

// provesFactor reports whether the methods contain more than a password or a sign-in elsewhere.
func (m Methods) provesFactor() bool {
	return slices.ContainsFunc(m, func(name string) bool {
		return name == factor.AMROTP || name == factor.AMRHardware || name == factor.AMRSoftware || name == factor.AMRMultiple
	})
}

// Value returns the stored form.
func (m Methods) Value() (driver.Value, error) { return strings.Join(m, " "), nil }

// Scan reads the stored form.
func (m *Methods) Scan(src any) error {
	switch text := src.(type) {
	case string:
		*m = strings.Fields(text)
	case []byte:
		*m = strings.Fields(string(text))
	default:
		return fmt.Errorf("methods of a session: %T", src)
	}
	return nil
}

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
