package postgres

import (
	"context"
	"sync"
	"time"
)

const (
	// cancelWait bounds the request to cancel a statement, and then the wait for the statement's end. A connection that
	// needs longer is closed.
	cancelWait = time.Second
)

// canceller is the state of a request to cancel the running statement.
type canceller struct {
	mu   sync.Mutex
	done chan struct{} // closed when the request was served; nil: there is none
}

// interrupt has the server end the running statement. It may be called from any goroutine and returns at once. The holder of the
// connection calls afterCancel before others use it.
func (c *conn) interrupt() {
	if !c.busy.Load() {
		return // the next statement asks ended before it waits
	}
	c.cancel.mu.Lock()
	defer c.cancel.mu.Unlock()
	if c.cancel.done != nil {
		return
	}
	done := make(chan struct{})
	c.cancel.done = done
	go func() {
		defer close(done)
		ctx, stop := context.WithTimeout(context.Background(), cancelWait)
		defer stop()
		until := time.Now()
		if c.pg.CancelRequest(ctx) == nil {
			until = until.Add(cancelWait)
		}
		_ = c.pg.Conn().SetReadDeadline(until) // fails for a closed connection, which needs none
	}()
}

// afterCancel waits until a request to cancel can affect no later statement.
func (c *conn) afterCancel() {
	c.cancel.mu.Lock()
	done := c.cancel.done
	c.cancel.done = nil
	c.cancel.mu.Unlock()
	if done == nil {
		return
	}
	<-done
	if c.broken == nil {
		c.unsynced = true // the server ignores a signal that comes between statements; after this answer none comes any more
		_ = c.exchange()
		c.failed = failure{}
	}
	_ = c.pg.Conn().SetDeadline(time.Time{})
}

// drainMessages is how many messages of a statement that was closed early are read before the server is asked to end it.
const drainMessages = 1000

// drain reads and discards what is on its way.
func (c *conn) drain() {
	if c.unsynced {
		_ = c.sync() // the error is in c.broken
	}
	for n := 0; c.head < c.synced && c.broken == nil; n++ {
		if n == drainMessages {
			c.interrupt()
		}
		msg, err := c.front.Receive()
		if err != nil {
			_ = c.lose(err) // it is in c.broken
			return
		}
		_, _ = c.handle(msg, nil)
	}
	c.busy.Store(false)
}
