package server

import (
	"io"
	"net"
	"sync"
	"time"
)

// timedTCP is a TCP connection that rarely sets a deadline. The engine asks for three in each request; each would take as long
// as finding the row of the request.
//
// A deadline of reads is set when a read begins. One that is near to the present one is not set, see [near].
type timedTCP struct {
	*net.TCPConn

	mu              sync.Mutex
	asked           time.Time // the last deadline of reads that was asked for
	reading         int       // reads that are running
	readBy, writeBy time.Time // the deadlines that are set
}

// SetReadDeadline ends running and later reads at a time, or at most a sixteenth of the remaining time earlier. The zero time
// removes the deadline.
func (c *timedTCP) SetReadDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = at
	if c.reading == 0 {
		return nil // beginRead sets it
	}
	return setDeadline(&c.readBy, at, c.TCPConn.SetReadDeadline)
}

// SetWriteDeadline does the same for writes. It takes effect at once.
func (c *timedTCP) SetWriteDeadline(at time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return setDeadline(&c.writeBy, at, c.TCPConn.SetWriteDeadline)
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

// beginRead sets the deadline that was asked for. endRead must follow unless it fails.
func (c *timedTCP) beginRead() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := setDeadline(&c.readBy, c.asked, c.TCPConn.SetReadDeadline); err != nil {
		return err
	}
	c.reading++
	return nil
}

func (c *timedTCP) endRead() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading--
}

// setDeadline replaces the present deadline, unless it is near to the one asked for.
func setDeadline(present *time.Time, asked time.Time, set func(time.Time) error) error {
	if near(*present, asked) {
		return nil
	}
	if err := set(asked); err != nil {
		return err
	}
	*present = asked
	return nil
}

// near reports whether the present deadline may stand for another: it is not later, and earlier by at most 1/16 of the time that
// remains.
func near(present, asked time.Time) bool {
	if present.IsZero() || asked.IsZero() {
		return present.Equal(asked)
	}
	early := asked.Sub(present)
	return early >= 0 && early <= time.Until(asked)/16
}
