package server

import (
	"math"
	"strconv"
	"time"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/ratelimit"
)

// limitNetwork counts a request for the client's network, unless its caller is known from memory: requests without valid
// credentials count there, so that guessing is limited, too.
func (s *Server) limitNetwork(r *call) error {
	if r.recognized {
		return nil
	}
	return s.limitRate(r, endpoint.Network(r.Address))
}

// limitCaller counts a request for its user or API key.
func (s *Server) limitCaller(r *call) error {
	if r.row.Access.IsPublic() {
		return nil
	}
	return s.limitRate(r, r.principal())
}

// principal names who a request counts for: a user, an API key, or the network of a client without either.
func (r *call) principal() string {
	switch {
	case r.Caller.UserID != "":
		return r.Caller.UserID
	case r.Caller.KeyID != "":
		return r.Caller.KeyID
	}
	return endpoint.Network(r.Address)
}

// limitRate counts a request for a principal and writes the RateLimit headers. The database, too, does the request's work for
// that principal from here on.
func (s *Server) limitRate(r *call, principal string) error {
	r.context.caller = principal
	if !s.RateLimits || r.row.Limit == ratelimit.None {
		return nil
	}
	perMinute := s.perMinute(r)
	var space [96]byte
	verdict := s.limiter.Allow(appendCounterKey(space[:0], r, perMinute, principal), perMinute)

	header := &r.fiber.Response().Header
	header.Set("RateLimit-Limit", strconv.Itoa(verdict.Limit))
	header.Set("RateLimit-Remaining", strconv.Itoa(verdict.Remaining))
	header.Set("RateLimit-Reset", strconv.Itoa(wholeSeconds(verdict.Reset)))
	if verdict.Allowed {
		return nil
	}
	return apierr.RateLimited.RetryAfter(verdict.RetryAfter)
}

// refund takes a request out of the count of a principal.
func (s *Server) refund(r *call, principal string) {
	if !s.RateLimits || r.row.Limit == ratelimit.None {
		return
	}
	perMinute := s.perMinute(r)
	var space [96]byte
	s.limiter.Refund(appendCounterKey(space[:0], r, perMinute, principal), perMinute)
}

// perMinute returns the limit of the row.
func (s *Server) perMinute(r *call) int {
	if rule, ok := r.policy.Limit(r.row.key); ok {
		return rule
	}
	if r.row.Limit == ratelimit.Public {
		return s.PublicPerMinute
	}
	return s.PrivatePerMinute
}

// appendCounterKey appends the key under which requests of a principal to a row are counted. It contains the limit, so that a
// changed limit starts with a fresh count.
func appendCounterKey(b []byte, r *call, perMinute int, principal string) []byte {
	b = append(strconv.AppendInt(b, int64(r.row.index), 36), ' ')
	b = append(strconv.AppendInt(b, int64(perMinute), 36), ' ')
	return append(b, principal...)
}

// wholeSeconds rounds up to whole seconds, the unit of headers.
func wholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
