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

// carrier is a connection that remembers whose request it carries. Each connection of the server is one.
type carrier interface {
	// carry sets the caller, empty for none, and returns the former one. Only the goroutine that serves the connection may call it.
	carry(caller string) (former string)
}

// carried implements [carrier].
type carried struct{ caller string }

func (c *carried) carry(caller string) (former string) {
	former, c.caller = c.caller, caller
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
