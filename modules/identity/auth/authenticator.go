package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	jwtware "github.com/gofiber/contrib/jwt"
	"github.com/gofiber/fiber/v2"
	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"kontor/modules/kit/revocable"
	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// session is the cache entry of an active session. Ended sessions are never cached.
type session struct {
	caller  *access.Caller
	expires store.Time
	read    revocable.Generation
	lastUse atomic.Int64 // Unix milliseconds
}

// Known returns the caller of a token from memory alone: the token was verified before and its session is active. The call
// counts as a use of the session. from is the client's address.
func (s *Service) Known(token string, from netip.Addr) (*access.Caller, bool) {
	if s.isServiceToken(token) {
		return s.Peers.ServiceTokens.Known(token, from)
	}
	v, ok := s.tokens.Get(token)
	if !ok || s.signingStale.Load() {
		return nil, false
	}
	now := s.db.Now()
	if !v.good(now, s.db.Latest()) {
		return nil, false
	}
	known, ok := s.cachedSession(v.userID, v.sessionID, now)
	if !ok {
		return nil, false
	}
	s.touch(known, now)
	return known.caller, true
}

// Bearer verifies the token in the Authorization header and its session, and counts as a use of the session. It returns
// apierr.Unauthorized. It returns
// apierr.AuthUnavailable when the session is not in memory and cannot be read.
func (s *Service) Bearer(c *fiber.Ctx) (*access.Caller, error) {
	if token := endpoint.BearerToken(c); s.isServiceToken(token) {
		ctx := c.UserContext()
		return s.Peers.ServiceTokens.Verify(ctx, token, endpoint.Of(ctx).Address)
	}
	v, err := s.verified(c)
	if err != nil {
		return nil, err
	}
	found, err := s.active(c.UserContext(), v.userID, v.sessionID, v.good)
	if err != nil {
		return nil, err
	}
	s.touch(found, s.db.Now())
	return found.caller, nil
}

// Session returns the caller with their present roles, for streams that outlive their request. Use
// [access.Caller.WithPolicy] to check the rights of the result. Session returns apierr.Unauthorized when the session has ended
// and apierr.AuthUnavailable when it cannot be read. A stream does not use its session: an open one alone does not keep it from
// becoming idle.
func (s *Service) Session(ctx context.Context, caller *access.Caller) (*access.Caller, error) {
	if caller.SignedIn.Machine && s.Peers.ServiceTokens != nil {
		return s.Peers.ServiceTokens.Active(ctx, caller)
	}
	found, err := s.active(ctx, caller.UserID, caller.SessionID, func(store.Time, store.Time) bool { return true })
	if err != nil {
		return nil, err
	}
	return found.caller, nil
}

// Expiry returns the time at which the verified bearer token of a request expires.
func (s *Service) Expiry(c *fiber.Ctx) (store.Time, bool) {
	if token := endpoint.BearerToken(c); s.isServiceToken(token) {
		return s.Peers.ServiceTokens.Expiry(c.UserContext(), token)
	}
	v, err := s.verified(c)
	if err != nil {
		return 0, false
	}
	return v.expires, true
}

// verified returns the access token of a request with a valid signature. The signature of a cached token is not verified again. The
// Filter of the middleware cannot do this: it calls the next handler of a chain, and there is none. It returns apierr.Unauthorized
// and apierr.AuthUnavailable.
func (s *Service) verified(c *fiber.Ctx) (*verified, error) {
	if err := s.requireSigningKeys(c.UserContext()); err != nil {
		return nil, apierr.AuthUnavailable.Wrap(err)
	}
	if v, ok := s.tokens.Get(endpoint.BearerToken(c)); ok {
		return v, nil
	}
	err := s.verifyToken(c)
	if errors.Is(err, errUnknownKey) && s.db.Shared() {
		// Another node may have signed it with a new key that this one does not have yet.
		if err := s.renewSigningKeys(c.UserContext()); err != nil {
			return nil, apierr.AuthUnavailable.Wrap(err)
		}
		err = s.verifyToken(c)
	}
	if err != nil {
		return nil, err
	}
	return c.Locals(verifiedLocal).(*verified), nil
}

// active returns an active session, from memory or from the database.
func (s *Service) active(ctx context.Context, userID, sessionID string, good func(now, latest store.Time) bool) (*session, error) {
	now := s.db.Now()
	if !good(now, s.db.Latest()) {
		return nil, apierr.Unauthorized
	}
	if known, ok := s.cachedSession(userID, sessionID, now); ok {
		return known, nil
	}
	read := s.generations.Now(userID)
	row, err := selectActive(ctx, s.db, userID, sessionID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, apierr.Unauthorized.Wrap(err)
	case err != nil:
		return nil, apierr.AuthUnavailable.Wrap(err)
	case now >= row.expires:
		return nil, apierr.Unauthorized
	}
	if err := s.completeCaller(ctx, row); err != nil {
		return nil, apierr.AuthUnavailable.Wrap(err)
	}
	found := &session{caller: row.caller, expires: row.expires, read: read}
	found.lastUse.Store(int64(s.lastUse(sessionID, row.lastUsed)))
	if s.isIdle(store.Time(found.lastUse.Load()), now) {
		return nil, apierr.Unauthorized
	}
	s.sessions.Put(sessionID, found)
	return found, nil
}

// cachedSession returns an active session from memory.
func (s *Service) cachedSession(userID, sessionID string, now store.Time) (*session, bool) {
	known, ok := s.sessions.Get(sessionID)
	if !ok || !known.read.Valid() || now >= known.expires || known.caller.UserID != userID || s.isIdle(store.Time(known.lastUse.Load()), now) {
		return nil, false
	}
	return known, true
}

const (
	issuer = "kontor"
	// tokenType distinguishes access tokens from other signed tokens (RFC 9068, section 2.1; RFC 8725, section 3.11).
	tokenType = "at+jwt"
	// maxTokenLength is more than twice the length of our tokens.
	maxTokenLength = 1024
	// maxAccessToken is the longest life of a token that is accepted, the maximum of auth.access_token_minutes.
	maxAccessToken = 24 * time.Hour
	// clockLeeway is the tolerance for a clock that was set back.
	clockLeeway = 5000 // milliseconds

	verifiedLocal = "kontor.verified" // where the verifier stores its result
)

// claims are the claims of an access token.
type claims struct {
	Issuer    string           `json:"iss"`
	Audience  jwt.ClaimStrings `json:"aud"`
	UserID    string           `json:"sub"`
	SessionID string           `json:"sid"`
	ID        string           `json:"jti"`
	IssuedAt  *numericDate     `json:"iat"`
	NotBefore *numericDate     `json:"nbf"`
	ExpiresAt *numericDate     `json:"exp"`

	// How the session was authenticated when the token was issued, for other readers. Kontor itself asks the session.
	ACR      string       `json:"acr,omitempty"`
	AMR      []string     `json:"amr,omitempty"`
	AuthTime *numericDate `json:"auth_time,omitempty"`
}

// numericDate is a time as a JSON number (RFC 7519, section 2). The library would also accept a number in a string.
type numericDate struct{ jwt.NumericDate }

// UnmarshalJSON rejects everything but a number.
func (d *numericDate) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '-' && (data[0] < '0' || data[0] > '9') {
		return errTokenClaims
	}
	return d.NumericDate.UnmarshalJSON(data)
}

// The library would compare the times with the system clock, and accept a missing exp and a future iat. These methods hide the
// times from it. [Service.checkClaims] compares them with the clock of the store.

func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) { return nil, nil }
func (c *claims) GetIssuedAt() (*jwt.NumericDate, error)       { return nil, nil }
func (c *claims) GetNotBefore() (*jwt.NumericDate, error)      { return nil, nil }
func (c *claims) GetIssuer() (string, error)                   { return c.Issuer, nil }
func (c *claims) GetSubject() (string, error)                  { return c.UserID, nil }
func (c *claims) GetAudience() (jwt.ClaimStrings, error)       { return c.Audience, nil }

// verified is the cache entry of a token with a valid signature and valid claims.
type verified struct {
	userID    string
	sessionID string
	notBefore store.Time
	expires   store.Time
	key       *signingKey // that has signed it
}

// good reports whether the token is valid at the time now. latest is the latest time that the clock has shown. A token that
// was issued before the clock was set back stays valid. A token from a later time is rejected.
func (v *verified) good(now, latest store.Time) bool {
	return now < v.expires && max(now, latest)+clockLeeway >= v.notBefore && (v.key == nil || !v.key.rejected.Load())
}

// issue signs an access token. Its times are whole seconds, as other readers of JWTs expect.
func (s *Service) issue(row Session, now store.Time, id string) (token string, expires store.Time, err error) {
	s.db.Heavy("token")
	issued := &numericDate{*jwt.NewNumericDate(now.Std())}
	until := &numericDate{*jwt.NewNumericDate(now.Std().Add(s.options.AccessToken))}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, &claims{
		Issuer: issuer, Audience: jwt.ClaimStrings{s.options.Audience},
		UserID: row.UserID, SessionID: row.ID, ID: id,
		IssuedAt: issued, NotBefore: issued, ExpiresAt: until,
		ACR: row.ACR, AMR: row.AMR, AuthTime: &numericDate{*jwt.NewNumericDate(row.AuthenticatedAt.Std())},
	})
	token, err = s.sign(t)
	return token, millis(until), err
}

func millis(d *numericDate) store.Time { return store.TimeOf(d.Time) }

var (
	errTokenForm   = errors.New("malformed access token")
	errTokenHeader = errors.New("header of the access token is not valid")
	errTokenClaims = errors.New("claims of the access token are not valid")
)

// newVerifier returns the middleware that verifies signatures. It is called as a function and not put into a chain. It
// verifies tokens that are not in memory yet, writes no response, and stores its result in the request.
func (s *Service) newVerifier() fiber.Handler {
	return jwtware.New(jwtware.Config{
		Claims:             &claims{},
		TokenProcessorFunc: checkForm,
		KeyFunc: func(t *jwt.Token) (any, error) {
			key, err := s.keyOf(t.Header)
			if err != nil {
				return nil, err
			}
			return key.public, nil
		},
		SuccessHandler: func(c *fiber.Ctx) error {
			token := c.Locals("user").(*jwt.Token)
			v, err := s.checkClaims(token.Claims.(*claims), s.db.Now(), s.db.Latest())
			if err != nil {
				return apierr.Unauthorized.Wrap(err)
			}
			if v.key, err = s.keyOf(token.Header); err != nil || !v.key.signedAt(v.notBefore) { // the key was dropped in the meantime
				return apierr.Unauthorized.Wrap(err)
			}
			s.tokens.Put(strings.Clone(token.Raw), v)
			c.Locals(verifiedLocal, v)
			return nil
		},
		ErrorHandler: func(_ *fiber.Ctx, err error) error { return apierr.Unauthorized.Wrap(err) },
	})
}

// checkForm rejects every spelling of a token but the canonical one. The decoder of the library ignores line breaks and the
// spare bits at the end of a part, so that one token would have many spellings.
func checkForm(token string) (string, error) {
	if len(token) > maxTokenLength || strings.ContainsAny(token, "\r\n") {
		return "", errTokenForm
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errTokenForm
	}
	for _, part := range parts {
		if decoded, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil || len(decoded) == 0 {
			return "", errTokenForm
		}
	}
	return token, nil
}

// checkClaims checks issuer, audience, ids and times.
func (s *Service) checkClaims(c *claims, now, latest store.Time) (*verified, error) {
	if c.Issuer != issuer || len(c.Audience) != 1 || c.Audience[0] != s.options.Audience {
		return nil, errTokenClaims
	}
	for _, id := range []string{c.UserID, c.SessionID, c.ID} {
		if !isID(id) {
			return nil, errTokenClaims
		}
	}
	if c.IssuedAt == nil || c.NotBefore == nil || c.ExpiresAt == nil {
		return nil, errTokenClaims
	}
	if millis(c.ExpiresAt) > millis(c.IssuedAt).Add(maxAccessToken) {
		return nil, errTokenClaims
	}
	v := &verified{
		userID: c.UserID, sessionID: c.SessionID,
		notBefore: max(millis(c.NotBefore), millis(c.IssuedAt)), expires: millis(c.ExpiresAt),
	}
	if !v.good(now, latest) {
		return nil, errTokenClaims
	}
	return v, nil
}

// isID reports whether a text is a UUID in canonical form: in lower case with hyphens.
func isID(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.String() == text
}
