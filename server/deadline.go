package server

import (
	"io"
	"net"
	"sync"
	"time"
)

// timedTCP is a TCP connection that sets its deadlines as rarely as it can. The engine sets three for each request, of which hardly any
// is ever reached, and each takes as long as finding the row of the request.
//
// A deadline for reading is set when something reads; one that is near to that which is set already is not set at all.
type timedTCP struct {
	*net.TCPConn
	reads, writes deadline
}

// deadline is what was asked for and what is set in one direction of a connection.
type deadline struct {
	mu          sync.Mutex
	asked, real time.Time
	waiting     int // calls that the deadline ends
}

// apply sets the deadline that was asked for, unless the one which is set is near to it.
func (d *deadline) apply(set func(time.Time) error) error {
	if near(d.real, d.asked) {
		return nil
	}
	err := set(d.asked)
	if err == nil {
		d.real = d.asked
	}
	return err
}

// near reports whether a deadline may stay in place of another: it is not later, and earlier by at most 1/16 of the time that remains.
func near(real, asked time.Time) bool {
	if real.IsZero() || asked.IsZero() {
		return real.Equal(asked)
	}
	early := asked.Sub(real)
	return early >= 0 && early <= time.Until(asked)/16
}

// SetReadDeadline ends running and later reads at a time, or a sixteenth of the remaining time earlier.
func (c *timedTCP) SetReadDeadline(at time.Time) error {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	c.reads.asked = at
	if c.reads.waiting == 0 {
		return nil // beginRead sets it
	}
	return c.reads.apply(c.TCPConn.SetReadDeadline)
}

// SetWriteDeadline ends running and later writes at a time, or a sixteenth of the remaining time earlier. It takes effect at once,
// since streams write to the socket itself.
func (c *timedTCP) SetWriteDeadline(at time.Time) error {
	c.writes.mu.Lock()
	defer c.writes.mu.Unlock()
	c.writes.asked = at
	return c.writes.apply(c.TCPConn.SetWriteDeadline)
}

// SetDeadline sets both deadlines.
func (c *timedTCP) SetDeadline(at time.Time) error {
	if err := c.SetReadDeadline(at); err != nil {
		return err
	}
	return c.SetWriteDeadline(at)
}

// Read reads what has arrived, or waits for it until the deadline.
func (c *timedTCP) Read(b []byte) (int, error) {
	if err := c.beginRead(); err != nil {
		return 0, err
	}
	defer c.endRead()
	return c.TCPConn.Read(b)
}

// WriteTo copies to w what arrives until the deadline.
func (c *timedTCP) WriteTo(w io.Writer) (int64, error) {
	if err := c.beginRead(); err != nil {
		return 0, err
	}
	defer c.endRead()
	return c.TCPConn.WriteTo(w)
}

func (c *timedTCP) beginRead() error {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	if err := c.reads.apply(c.TCPConn.SetReadDeadline); err != nil {
		return err
	}
	c.reads.waiting++
	return nil
}

func (c *timedTCP) endRead() {
	c.reads.mu.Lock()
	defer c.reads.mu.Unlock()
	c.reads.waiting--
}
