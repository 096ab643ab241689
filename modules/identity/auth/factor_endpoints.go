package auth

import (
	"context"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/factor"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

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
	if len(in.Token) > maxToken {
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

func (s *Service) signInFactor(ctx context.Context, in signInFactorInput) (Tokens, error) {
	return s.CompleteSignIn(ctx, in.Token, in.answer())
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
