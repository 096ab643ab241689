package server

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

const apiKeyHeader = "X-API-Key"

// admit decides who is calling and whether he may come in: rate limit, bearer token or API key, grant on the endpoint,
// and the right to create where the row asks for it.
func (s *Server) admit(r *call) error {
	rule := r.row.Access
	switch {
	case rule.IsPublic():
		network := endpoint.Network(r.Address)
		if err := s.allow(r, network); err != nil {
			return err
		}
		return s.occupy(r, network)
	case rule.TakesAPIKey():
		return s.admitKey(r)
	}
	header := &r.fiber.Request().Header
	token := bearerToken(r.fiber)
	caller, known := s.Auth.Known(token)
	if repeated(header, fiber.HeaderAuthorization) {
		known = false
	}
	if !known {
		// Whoever has not shown a good token yet is counted by his network, so that guessing is limited, too.
		if err := s.allow(r, endpoint.Network(r.Address)); err != nil {
			return err
		}
		if err := once(header, fiber.HeaderAuthorization); err != nil {
			return err
		}
		if len(header.Peek(apiKeyHeader)) > 0 && token != "" {
			return apierr.Invalid(apiKeyHeader, "invalid.key_and_bearer")
		}
		r.fiber.SetUserContext(&r.Context)
		var err error
		if caller, err = s.Auth.Bearer(r.fiber); err != nil {
			return err
		}
	} else if len(header.Peek(apiKeyHeader)) > 0 {
		return apierr.Invalid(apiKeyHeader, "invalid.key_and_bearer")
	}
	r.Caller = caller.WithPolicy(s.Policy.Load())
	if err := s.allow(r, caller.UserID); err != nil {
		return err
	}
	if err := s.occupy(r, caller.UserID); err != nil {
		return err
	}
	return s.permit(r)
}

// permit asks for the grant on the endpoint and, for a row that creates, for the right to create such records.
func (s *Server) permit(r *call) error {
	if !r.Caller.MayCall(r.row.key) {
		return apierr.NoAccess
	}
	if t, permission, ok := r.row.Access.Record(); ok && permission == access.Create && !r.Caller.May(t, access.Create) {
		return apierr.NoAccess
	}
	return nil
}

// admitKey counts before it looks at the key. An attempt takes a place of the client's network, which a good key gives
// back: what is left is the count of wrong keys. A network that has used up its places is refused whatever it sends, or
// the difference between the answers would go on telling whether a guess was right. A good key has a count of its own,
// which nobody without the key can use up.
func (s *Server) admitKey(r *call) error {
	header := &r.fiber.Request().Header
	key := string(header.Peek(apiKeyHeader))
	network := endpoint.Network(r.Address)
	if err := s.allow(r, network); err != nil {
		return err
	}
	if key == "" {
		return apierr.Unauthorized
	}
	if len(header.Peek(fiber.HeaderAuthorization)) > 0 {
		return apierr.Invalid(apiKeyHeader, "invalid.key_and_bearer")
	}
	if err := once(header, apiKeyHeader); err != nil {
		return err
	}
	caller, err := s.Auth.APIKey(&r.Context, key)
	if err != nil {
		return err
	}
	s.giveBack(r, network)
	r.Caller = caller
	if err := s.allow(r, caller.KeyID); err != nil {
		return err
	}
	if !caller.InScope(r.row.Name) {
		return apierr.NoAccess
	}
	return s.occupy(r, caller.KeyID)
}

// bearerToken is the token of the Authorization header, or nothing (RFC 6750, section 2.1).
func bearerToken(c *fiber.Ctx) string {
	header := string(c.Request().Header.Peek(fiber.HeaderAuthorization))
	scheme, token, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// allow counts the request for the principal and writes the RateLimit headers. From here on the database, too, does the
// request's work for that principal.
func (s *Server) allow(r *call, principal string) error {
	r.deadline.caller = principal
	if !s.RateLimits || r.row.Limit == ratelimit.None {
		return nil
	}
	perMinute := s.perMinute(r)
	var space [96]byte
	verdict := s.limiter.Allow(appendCounted(space[:0], r, perMinute, principal), perMinute)

	header := &r.fiber.Response().Header
	header.Set("RateLimit-Limit", strconv.Itoa(verdict.Limit))
	header.Set("RateLimit-Remaining", strconv.Itoa(verdict.Remaining))
	header.Set("RateLimit-Reset", strconv.Itoa(seconds(verdict.Reset)))
	if verdict.Allowed {
		return nil
	}
	return apierr.RateLimited.RetryAfter(verdict.RetryAfter)
}

// giveBack takes a request out of the count of a principal.
func (s *Server) giveBack(r *call, principal string) {
	if !s.RateLimits || r.row.Limit == ratelimit.None {
		return
	}
	perMinute := s.perMinute(r)
	var space [96]byte
	s.limiter.Refund(appendCounted(space[:0], r, perMinute, principal), perMinute)
}

// perMinute is the limit of the row.
func (s *Server) perMinute(r *call) int {
	if rule, ok := s.Policy.Load().Limit(r.row.key); ok {
		return rule
	}
	if r.row.Limit == ratelimit.Public {
		return s.PublicPerMinute
	}
	return s.PrivatePerMinute
}

// appendCounted appends the key under which the requests of a principal to a row are counted. The rule is part of it: a
// changed one begins afresh, instead of counting by its own measure what was used up by that of the old one.
func appendCounted(b []byte, r *call, perMinute int, principal string) []byte {
	b = append(strconv.AppendInt(b, int64(r.row.index), 36), ' ')
	b = append(strconv.AppendInt(b, int64(perMinute), 36), ' ')
	return append(b, principal...)
}

// seconds rounds up to whole seconds, as headers want them.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
