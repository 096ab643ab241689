package auth

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/factor"
	"kontor/modules/kit/types"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
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

const (
	// maxFactorBody is the maximum size of a request with an answer of a second factor, in bytes.
	maxFactorBody = 32 << 10
	maxPasskey    = 16 << 10
	maxCode       = 64
	maxToken      = 128
)

// factorEndpoints returns the rows of the second step of a sign-in. Their callers have no access token yet.
func (s *Service) factorEndpoints() []endpoint.Endpoint {
	return []endpoint.Endpoint{
		{Name: "auth.sign_in_factor", Method: http.MethodPost, Path: "/authenticate/factor", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Complete a sign-in with a second factor or a passkey.", MaxBody: maxFactorBody,
			Faults: []apierr.Kind{apierr.InvalidFactor, apierr.ChallengeExpired, apierr.InvalidCredentials, apierr.LockedOut},
			Doc:    endpoint.Doc{Headers: []string{endpoint.DeviceHeader, endpoint.TokenHeader}},
			Handle: endpoint.JSON(http.StatusOK, s.signInFactor)},
		{Name: "auth.sign_in_passkey", Method: http.MethodPost, Path: "/authenticate/passkey", Access: access.Public, Limit: ratelimit.Public,
			Summary: "Begin a sign-in with a passkey, without a password.",
			Faults:  []apierr.Kind{apierr.NotFound},
			Doc:     endpoint.Doc{Headers: []string{endpoint.DeviceHeader}},
			Handle:  endpoint.JSON(http.StatusOK, s.beginPasskey)},
		{Name: "auth.methods", Method: http.MethodGet, Path: "/authenticate/methods", Access: access.Public, Limit: ratelimit.Public,
			Summary: "List the ways to sign in.",
			Handle:  endpoint.JSON(http.StatusOK, s.methods)},
	}
}

type signInFactorInput struct {
	Token        string         `json:"token" maxLength:"128" doc:"Of the first step."`
	Code         string         `json:"code" required:"false" maxLength:"64" example:"123456" doc:"Of an authenticator app; one of code, recovery_code and passkey."`
	RecoveryCode string         `json:"recovery_code" maxLength:"64" example:"-"`
	Passkey      jsontext.Value `json:"passkey" type:"object" example:"-" doc:"What navigator.credentials.get returned (WebAuthn)."`
}

func (in *signInFactorInput) answer() factor.Answer {
	return factor.Answer{Code: in.Code, RecoveryCode: in.RecoveryCode, Passkey: in.Passkey}
}

// Validate requires a token and exactly one answer.
func (in *signInFactorInput) Validate(v *apierr.Fields) {
	if in.Token == "" {
		v.Add("token", "invalid.required")
	}
	if utf8.RuneCountInString(in.Token) > maxToken {
		v.Add("token", "invalid.max_length", apierr.Args{"Max": maxToken})
	}
	in.Passkey = checkAnswer(v, in.Code, in.RecoveryCode, in.Passkey)
	switch in.answer().Given() {
	case 0:
		v.Add("code", "invalid.required")
	case 1:
	default:
		v.Add("code", "invalid.one_factor")
	}
}

// checkAnswer checks the form of an answer. It returns the passkey, or nothing for the JSON null.
func checkAnswer(v *apierr.Fields, code, recovery string, passkey jsontext.Value) jsontext.Value {
	for name, text := range map[string]string{"code": code, "recovery_code": recovery} {
		if utf8.RuneCountInString(text) > maxCode {
			v.Add(name, "invalid.max_length", apierr.Args{"Max": maxCode})
		}
	}
	switch passkey.Kind() {
	case 'n', 0:
		return nil
	case '{':
		if len(passkey) > maxPasskey {
			v.Add("passkey", "invalid.max_length", apierr.Args{"Max": maxPasskey})
		}
	default:
		v.Add("passkey", "invalid.type")
	}
	return passkey
}

// passkeyStep is the response to the begin of a sign-in with a passkey.
type passkeyStep struct {
	Token     string         `json:"token" doc:"For the next request, from the same device."`
	ExpiresIn int64          `json:"expires_in" doc:"Seconds until the token ends."`
	Options   jsontext.Value `json:"options" type:"object" example:"{\"challenge\":\"aBd3snOj5W6ItZJIJAXOTg\",\"timeout\":300000,\"rpId\":\"kontor.example\",\"userVerification\":\"required\"}" doc:"For navigator.credentials.get (WebAuthn)."`
}

// beginPasskey begins a sign-in without a password. It returns apierr.NotFound where passkeys do not work.
func (s *Service) beginPasskey(ctx context.Context, _ endpoint.None) (passkeyStep, error) {
	if !s.passkeys() {
		return passkeyStep{}, apierr.NotFound
	}
	options, session, err := s.Peers.Factors.PasskeyOptions(ctx, "")
	if err != nil {
		return passkeyStep{}, err
	}
	c, token, err := s.newChallenge(ctx, forSignIn, "", challengeData{Session: session})
	if err != nil {
		return passkeyStep{}, err
	}
	return passkeyStep{token, int64(challengeFor / time.Second), options}, s.beginChallenge(ctx, c)
}

func (s *Service) passkeys() bool { return s.Peers.Factors != nil && s.Peers.Factors.Passkeys() }

// signInMethods are the ways to sign in.
type signInMethods struct {
	Password bool      `json:"password"`
	Passkey  bool      `json:"passkey" doc:"Whether passkeys work at this address."`
	OIDC     *provider `json:"oidc" doc:"The operator's provider; null without one."`
}

// provider is an OpenID Connect provider.
type provider struct {
	Name string `json:"name"`
}

func (s *Service) methods(context.Context, endpoint.None) (signInMethods, error) {
	m := signInMethods{Password: true, Passkey: s.passkeys()}
	if s.Peers.ProviderName != "" {
		m.OIDC = &provider{s.Peers.ProviderName}
	}
	return m, nil
}

const (
	selectHeldRoles = `
		SELECT r.role_id, COALESCE(n.name_key, '')
		FROM held_roles r
		LEFT JOIN role_names n ON n.id = r.role_id
		WHERE r.user_id = $1`

	// Everyone is not assigned, so that it requires nothing.
	countRoles = `SELECT count(*) FROM role_names WHERE (id = $1 OR name_key = $2) AND id <> $3`

	insertDuty = `INSERT INTO factor_duties (user_id, since) VALUES ($1, $2) ON CONFLICT (user_id) DO NOTHING`

	deleteDuty = `DELETE FROM factor_duties WHERE user_id = $1`
)

// requires reports whether a role is one of auth.mfa.required_roles.
func (s *Service) requires(id, nameKey string) bool {
	return slices.ContainsFunc(s.options.RequiredRoles, func(wanted string) bool {
		return strings.EqualFold(wanted, id) || nameKey != "" && types.Fold(wanted) == nameKey
	})
}

// updateDuty records since when a user without a second factor has needed one, at each sign-in and refresh. A role requires it once
// any of its users has one.
func (s *Service) updateDuty(ctx context.Context, tx *store.Tx, userID string) error {
	if s.Peers.Factors == nil || len(s.options.RequiredRoles) == 0 {
		return nil
	}
	methods, err := s.Peers.Factors.Methods(ctx, tx, userID)
	if err != nil || len(methods) > 0 {
		return err
	}
	roles, err := s.requiredRoles(ctx, tx, userID)
	if err != nil {
		return err
	}
	due := false
	if len(roles) > 0 {
		if due, err = s.Peers.Factors.InUse(ctx, tx, roles); err != nil {
			return err
		}
	}
	var changed int64
	if due {
		changed, err = tx.Exec(ctx, insertDuty, userID, tx.Now())
	} else {
		changed, err = tx.Exec(ctx, deleteDuty, userID)
	}
	if changed > 0 {
		s.drop(tx, userID) // the other sessions have it in memory
	}
	return err
}

// WarnOfUnknownRoles logs every entry of auth.mfa.required_roles that names no role: a misspelt one would require nothing.
func (s *Service) WarnOfUnknownRoles(ctx context.Context) error {
	for _, wanted := range s.options.RequiredRoles {
		var n int
		if err := s.db.QueryRow(ctx, countRoles, strings.ToLower(wanted), types.Fold(wanted), access.Everyone).Scan(&n); err != nil {
			return err
		}
		if n == 0 {
			s.options.Log.Warn("auth.mfa.required_roles names a role that does not exist, or that cannot be assigned", "role", wanted)
		}
	}
	return nil
}

// requiredRoles returns the ids of a user's roles that require a second factor.
func (s *Service) requiredRoles(ctx context.Context, q store.Querier, userID string) ([]string, error) {
	var ids []string
	err := store.Each(ctx, q, func(row store.Scanner) error {
		var id, name string
		err := row.Scan(&id, &name)
		if s.requires(id, name) {
			ids = append(ids, id)
		}
		return err
	}, selectHeldRoles, userID)
	return ids, err
}

// completeCaller adds to a caller whether they have a second factor, or by when they must enrol one.
func (s *Service) completeCaller(ctx context.Context, row activeRow) error {
	methods, err := s.factorMethods(ctx, s.db, row.caller.UserID)
	if err != nil {
		return err
	}
	row.caller.SignedIn.HasFactor = len(methods) > 0
	if len(methods) > 0 || row.dutySince == nil || s.Peers.Factors == nil {
		return nil
	}
	for i, name := range row.roleNames { // those of the roles that the user was given
		if s.requires(row.caller.Roles[i], name) {
			row.caller.SignedIn.EnrolBy = row.dutySince.Add(s.options.FactorGrace).Std()
		}
	}
	return nil
}
