package server

import (
	"net"
	"sync"

	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
	"kontor/server/ratelimit"
)

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
}

func newConcurrency(limit int) *concurrency {
	return &concurrency{limit: limit, running: map[string]int{}}
}

// carrier is a connection that remembers whose request it carries. The server accepts no other.
type carrier interface {
	// carry notes the caller of the request, empty for none, and returns that of the one before. One goroutine uses a connection.
	carry(caller string) (before string)
}

// carried implements [carrier].
type carried struct{ caller string }

func (c *carried) carry(caller string) (before string) {
	before, c.caller = c.caller, caller
	return before
}

// acquire counts a request of a caller on a connection. It reports false when too many are running.
func (c *concurrency) acquire(conn net.Conn, caller string) bool {
	carrier := conn.(carrier)
	before := carrier.carry("") // the previous request of a pipelining client
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.releaseLocked(before)
	if c.running[caller] >= c.limit {
		return false
	}
	c.running[caller]++
	carrier.carry(caller)
	return true
}

func (c *concurrency) releaseLocked(caller string) {
	if caller == "" {
		return
	}
	if c.running[caller]--; c.running[caller] <= 0 {
		delete(c.running, caller)
	}
}

// connState is called by the engine when an answer is written or a connection is closed. It ends the count of the request that
// the connection carries.
func (c *concurrency) connState(conn net.Conn, state fasthttp.ConnState) {
	if state != fasthttp.StateIdle && state != fasthttp.StateClosed && state != fasthttp.StateHijacked {
		return
	}
	caller := conn.(carrier).carry("")
	if caller == "" {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.releaseLocked(caller)
}
