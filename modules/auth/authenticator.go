package auth

import (
	"context"
	"errors"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// session is the cache entry of an active session. Ended sessions are never cached.
type session struct {
	caller  *access.Caller
	expires store.Time
	read    generation
}

// Known returns the caller of a token from memory alone: the token was verified before and its session is active.
func (s *Service) Known(token string) (*access.Caller, bool) {
	v, ok := s.tokens.get(token)
	if !ok {
		return nil, false
	}
	now := s.db.Now()
	if !v.good(now, s.db.Latest()) {
		return nil, false
	}
	return s.cachedCaller(v.userID, v.sessionID, now)
}

// Bearer verifies the token in the Authorization header and its session. It returns apierr.Unauthorized. It returns
// apierr.AuthUnavailable when the session is not in memory and cannot be read.
func (s *Service) Bearer(c *fiber.Ctx) (*access.Caller, error) {
	// The signature of a cached token is not verified again. The Filter of the middleware cannot do this: it calls the next
	// handler of a chain, and there is none.
	v, ok := s.tokens.get(endpoint.BearerToken(c))
	if !ok {
		if err := s.verifyToken(c); err != nil {
			return nil, err
		}
		v = c.Locals(verifiedLocal).(*verified)
	}
	return s.active(c.UserContext(), v.userID, v.sessionID, v.good)
}

// Session returns the caller with their present roles, for streams that outlive their request. Use
// [access.Caller.WithPolicy] to check the rights of the result. Session returns apierr.Unauthorized when the session has ended
// and apierr.AuthUnavailable when it cannot be read.
func (s *Service) Session(ctx context.Context, caller *access.Caller) (*access.Caller, error) {
	return s.active(ctx, caller.UserID, caller.SessionID, func(store.Time, store.Time) bool { return true })
}

// Expiry returns the time at which the verified bearer token of a request expires.
func (s *Service) Expiry(c *fiber.Ctx) (store.Time, bool) {
	v, ok := s.tokens.get(endpoint.BearerToken(c))
	if !ok {
		if err := s.verifyToken(c); err != nil {
			return 0, false
		}
		v = c.Locals(verifiedLocal).(*verified)
	}
	return v.expires, true
}

// active returns the caller of an active session, from memory or from the database.
func (s *Service) active(ctx context.Context, userID, sessionID string, good func(now, latest store.Time) bool) (*access.Caller, error) {
	now := s.db.Now()
	if !good(now, s.db.Latest()) {
		return nil, apierr.Unauthorized
	}
	if caller, ok := s.cachedCaller(userID, sessionID, now); ok {
		return caller, nil
	}
	read := s.generations.now(userID)
	caller, expires, err := selectActive(ctx, s.db, userID, sessionID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, apierr.Unauthorized.Wrap(err)
	case err != nil:
		return nil, apierr.AuthUnavailable.Wrap(err)
	case now >= expires:
		return nil, apierr.Unauthorized
	}
	s.sessions.put(sessionID, &session{caller: caller, expires: expires, read: read})
	return caller, nil
}

// cachedCaller returns the caller of a session from memory.
func (s *Service) cachedCaller(userID, sessionID string, now store.Time) (*access.Caller, bool) {
	known, ok := s.sessions.get(sessionID)
	if !ok || !known.read.valid() || now >= known.expires || known.caller.UserID != userID {
		return nil, false
	}
	return known.caller, true
}
