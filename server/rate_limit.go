package server

import (
	"context"
	"math"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"

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
func (r *call) principal() string { return principal(&r.Info) }

func principal(i *endpoint.Info) string {
	switch {
	case i.Caller.UserID != "":
		return i.Caller.UserID
	case i.Caller.KeyID != "":
		return i.Caller.KeyID
	}
	return endpoint.Network(i.Address)
}

// limitRate counts a request for a principal and writes the RateLimit headers. The database, too, does the request's work for
// that principal from here on.
func (s *Server) limitRate(r *call, principal string) error {
	r.context.caller = principal
	if !s.RateLimits || r.row.Limit == ratelimit.None {
		return nil
	}
	verdict := s.count(r, principal)
	header := &r.fiber.Response().Header
	header.Set("RateLimit-Limit", strconv.Itoa(verdict.Limit))
	header.Set("RateLimit-Remaining", strconv.Itoa(verdict.Remaining))
	header.Set("RateLimit-Reset", strconv.Itoa(wholeSeconds(verdict.Reset)))
	if verdict.Allowed {
		return nil
	}
	return apierr.RateLimited.RetryAfter(verdict.RetryAfter)
}

// Counts counts requests against stored rules over all nodes.
type Counts interface {
	// Count counts a request of a key against a limit in requests a minute, and decides whether it may proceed.
	Count(ctx context.Context, key []byte, perMinute int) (ratelimit.Verdict, error)
	// Refund takes one allowed request of a key out of the count.
	Refund(ctx context.Context, key []byte, perMinute int) error
}

// count counts a request for a principal. Stored rules are exact over all nodes; while their counts cannot be written, and for the
// general limits, each node allows its share.
func (s *Server) count(r *call, principal string) ratelimit.Verdict {
	perMinute, stored := s.perMinute(r)
	var space [128]byte
	if stored && s.Counts != nil {
		if verdict, err := s.Counts.Count(&r.context, appendRuleKey(space[:0], r, perMinute, principal), perMinute); err == nil {
			return verdict
		}
	}
	return s.limiter.Allow(appendCounterKey(space[:0], r, perMinute, principal), s.share(perMinute))
}

// refund takes a request out of the count of a principal.
func (s *Server) refund(r *call, principal string) {
	if !s.RateLimits || r.row.Limit == ratelimit.None {
		return
	}
	perMinute, stored := s.perMinute(r)
	var space [128]byte
	if stored && s.Counts != nil && s.Counts.Refund(&r.context, appendRuleKey(space[:0], r, perMinute, principal), perMinute) == nil {
		return
	}
	s.limiter.Refund(appendCounterKey(space[:0], r, perMinute, principal), s.share(perMinute))
}

// perMinute returns the limit of the row, and whether it is a stored rule.
func (s *Server) perMinute(r *call) (limit int, stored bool) {
	if rule, ok := r.policy.Limit(r.row.key); ok {
		return rule, true
	}
	if r.row.Limit == ratelimit.Public {
		return s.PublicPerMinute, false
	}
	return s.PrivatePerMinute, false
}

// share returns this node's share of a limit, at least 1.
func (s *Server) share(perMinute int) int {
	if s.LiveNodes == nil || perMinute <= 0 {
		return perMinute
	}
	return max(1, perMinute/max(1, s.LiveNodes()))
}

// appendCounterKey appends the key under which requests of a principal to a row are counted. It contains the limit, so that a
// changed limit starts with a fresh count. A changed share does not.
func appendCounterKey(b []byte, r *call, perMinute int, principal string) []byte {
	b = append(strconv.AppendInt(b, int64(r.row.index), 36), ' ')
	b = append(strconv.AppendInt(b, int64(perMinute), 36), ' ')
	return append(b, principal...)
}

// appendRuleKey appends the same for all nodes, whatever rows their versions have.
func appendRuleKey(b []byte, r *call, perMinute int, principal string) []byte {
	b = append(append(b, r.row.key...), ' ')
	b = append(strconv.AppendInt(b, int64(perMinute), 36), ' ')
	return append(b, principal...)
}

// wholeSeconds rounds up to whole seconds, the unit of headers.
func wholeSeconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// limitConcurrency rejects a request when too many of the same caller are running.
func (s *Server) limitConcurrency(r *call) error {
	if s.concurrency.limit == 0 || r.row.Limit == ratelimit.None {
		return nil
	}
	if !s.concurrency.acquire(r.fiber.Context().Conn(), r.principal()) {
		return apierr.TooManyAtOnce
	}
	return nil
}

// concurrency bounds the requests of one caller that run at the same time. A request counts until its answer is written to
// the client, so that callers who do not read cannot make the server keep more answers. An event stream counts until it is
// open; streams have a limit of their own.
type concurrency struct {
	limit int // for each caller; zero: none

	mutex   sync.Mutex
	running map[string]int // by caller

	held atomic.Int64 // bytes of long answers that were not sent yet
}

func newConcurrency(limit int) *concurrency {
	return &concurrency{limit: limit, running: map[string]int{}}
}

// carrier is a connection that remembers whose request it carries. Each connection of the server is one.
type carrier interface {
	// carry sets the caller, empty for none, and returns the former one. Only the goroutine that serves the connection may call it.
	carry(caller string) (former string)
	// hold sets the bytes of a long answer, and returns the former number. Only the same goroutine may call it.
	hold(bytes int) (former int)
}

// carried implements [carrier].
type carried struct {
	caller string
	bytes  int
}

func (c *carried) carry(caller string) (former string) {
	former, c.caller = c.caller, caller
	return former
}

func (c *carried) hold(bytes int) (former int) {
	former, c.bytes = c.bytes, bytes
	return former
}

// acquire counts a request of a caller until its connection is released. It reports false when too many are running.
func (c *concurrency) acquire(conn net.Conn, caller string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.running[caller] >= c.limit {
		return false
	}
	c.running[caller]++
	conn.(carrier).carry(caller)
	return true
}

// release ends the count of the request that a connection carries, if any.
func (c *concurrency) release(conn net.Conn) {
	if held := conn.(carrier).hold(0); held > 0 {
		c.held.Add(-int64(held))
	}
	caller := conn.(carrier).carry("")
	if caller == "" {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.running[caller]--; c.running[caller] <= 0 {
		delete(c.running, caller)
	}
}

// connState releases a connection when the engine has written an answer, also before the next request of a pipelining client,
// and when the connection ends.
func (c *concurrency) connState(conn net.Conn, state fasthttp.ConnState) {
	if state == fasthttp.StateIdle || state == fasthttp.StateClosed || state == fasthttp.StateHijacked {
		c.release(conn)
	}
}
