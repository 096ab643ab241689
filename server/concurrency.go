package server

import (
	"net"
	"sync"

	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
	"kontor/server/ratelimit"
)

// concurrency bounds how many requests of one caller run at once. A request counts until its answer has left for the
// client, so that a caller who does not read cannot make the server keep more answers than that. An event stream counts
// until it is open; streams have a limit of their own.
type concurrency struct {
	most int // of one caller; zero: no bound

	mutex   sync.Mutex
	running map[string]int      // by caller
	callers map[net.Conn]string // whose request a connection carries
}

func newConcurrency(most int) *concurrency {
	return &concurrency{most: most, running: map[string]int{}, callers: map[net.Conn]string{}}
}

// enter counts a request of a caller on a connection, and reports false when too many are running.
func (c *concurrency) enter(conn net.Conn, caller string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.leaveLocked(conn) // the one before it in a pipeline
	if c.running[caller] >= c.most {
		return false
	}
	c.running[caller]++
	c.callers[conn] = caller
	return true
}

// leave ends what a connection carries.
func (c *concurrency) leave(conn net.Conn) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.leaveLocked(conn)
}

func (c *concurrency) leaveLocked(conn net.Conn) {
	caller, carries := c.callers[conn]
	if !carries {
		return
	}
	delete(c.callers, conn)
	if c.running[caller]--; c.running[caller] <= 0 {
		delete(c.running, caller)
	}
}

// connState is told by the engine when an answer has been written, or the connection has gone.
func (c *concurrency) connState(conn net.Conn, state fasthttp.ConnState) {
	if state == fasthttp.StateIdle || state == fasthttp.StateClosed || state == fasthttp.StateHijacked {
		c.leave(conn)
	}
}

// occupy counts a request for its caller: a user, an API key, or the network of a client without either.
func (s *Server) occupy(r *call, caller string) error {
	if s.concurrency.most == 0 || r.row.Limit == ratelimit.None {
		return nil
	}
	if !s.concurrency.enter(r.fiber.Context().Conn(), caller) {
		return apierr.TooManyAtOnce
	}
	return nil
}
