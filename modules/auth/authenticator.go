package auth

import (
	"context"
	"errors"
	"strings"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/store"
)

// session is what is remembered of an active session. Sessions that have ended are never remembered.
type session struct {
	caller  *access.Caller
	expires store.Time
	read    generation
}

// Known gives the caller of a token that was verified before and whose session is known to be active, from memory
// alone.
func (s *Service) Known(token string) (*access.Caller, bool) {
	v, ok := s.tokens.get(token)
	if !ok {
		return nil, false
	}
	now := s.db.Now()
	if !v.good(now, s.db.Latest()) {
		return nil, false
	}
	return s.remembered(v.userID, v.sessionID, now)
}

// Bearer verifies the token in the Authorization header and its session. It returns apierr.Unauthorized, or
// apierr.AuthUnavailable on whatever route when the session stands neither in memory nor can be read.
func (s *Service) Bearer(c *fiber.Ctx) (*access.Caller, error) {
	// A token that is known needs no second look at its signature, only its session has to be read. The middleware's
	// own Filter would call the next handler of a chain; here is none.
	v, ok := s.tokens.get(bearerToken(c))
	if !ok {
		if err := s.verifyToken(c); err != nil {
			return nil, err
		}
		v = c.Locals(verifiedLocal).(*verified)
	}
	return s.active(c.UserContext(), v.userID, v.sessionID, v.good)
}

// Session gives the caller as he stands now, for streams that outlive their request: roles may have changed. What he may
// do follows from the policy that he is put [access.Caller.WithPolicy]. It returns apierr.Unauthorized when the session has ended and apierr.AuthUnavailable when it cannot be read.
func (s *Service) Session(ctx context.Context, caller *access.Caller) (*access.Caller, error) {
	return s.active(ctx, caller.UserID, caller.SessionID, func(store.Time, store.Time) bool { return true })
}

// Expiry tells when a bearer token that was let in ends.
func (s *Service) Expiry(c *fiber.Ctx) (store.Time, bool) {
	v, ok := s.tokens.get(bearerToken(c))
	if !ok {
		if err := s.verifyToken(c); err != nil {
			return 0, false
		}
		v = c.Locals(verifiedLocal).(*verified)
	}
	return v.expires, true
}

func (s *Service) active(ctx context.Context, userID, sessionID string, good func(now, latest store.Time) bool) (*access.Caller, error) {
	now := s.db.Now()
	if !good(now, s.db.Latest()) {
		return nil, apierr.Unauthorized
	}
	if caller, ok := s.remembered(userID, sessionID, now); ok {
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

func (s *Service) remembered(userID, sessionID string, now store.Time) (*access.Caller, bool) {
	known, ok := s.sessions.get(sessionID)
	if !ok || !known.read.stands() || now >= known.expires || known.caller.UserID != userID {
		return nil, false
	}
	return known.caller, true
}

// bearerToken is the token of the Authorization header as the server reads it.
func bearerToken(c *fiber.Ctx) string {
	scheme, token, ok := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
