package auth

import (
	"context"
	"errors"
	"net/netip"

	"github.com/gofiber/fiber/v2"

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
	use     *sessionUse
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
	found := &session{caller: row.caller, expires: row.expires, read: read, use: s.useOf(sessionID, row.lastUsed)}
	if s.isIdle(found.use.time(), now) {
		return nil, apierr.Unauthorized
	}
	s.sessions.Put(sessionID, found)
	return found, nil
}

// cachedSession returns an active session from memory.
func (s *Service) cachedSession(userID, sessionID string, now store.Time) (*session, bool) {
	known, ok := s.sessions.Get(sessionID)
	if !ok || !known.read.Valid() || now >= known.expires || known.caller.UserID != userID || s.isIdle(known.use.time(), now) {
		return nil, false
	}
	return known, true
}
