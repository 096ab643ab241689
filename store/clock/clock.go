// Package clock holds the moments that the database keeps, and the clock that decides by time.
package clock

import (
	"bytes"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Clock returns the present time. All decisions about time use the store's clock, so that tests can move it.
type Clock interface{ Now() time.Time }

// System is the clock of the machine.
type System struct{}

// Now returns the present time.
func (System) Now() time.Time { return time.Now().Add(shift()) }

// linkedShift is a duration, such as "15s", by which the clock is wrong. It is empty: only the linker sets it, for programs of tests.
var linkedShift string

var shift = sync.OnceValue(func() time.Duration {
	d, err := time.ParseDuration(linkedShift)
	if linkedShift != "" && err != nil {
		panic(err)
	}
	return d
})

// Time is a moment in Unix milliseconds, UTC, as the database stores it. In JSON it is RFC 3339 with milliseconds.
type Time int64

// timeLength is the length of a time as text.
const timeLength = len("2006-01-02T15:04:05.000Z")

// Of returns t, cut to milliseconds.
func Of(t time.Time) Time { return Time(t.UnixMilli()) }

// Std returns the moment as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// Add returns the moment d later. It cuts d to milliseconds.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Milliseconds()) }

// String returns the same text as JSON, without quotes.
func (t Time) String() string { return string(t.append(make([]byte, 0, timeLength))) }

// MarshalJSONTo writes RFC 3339 with milliseconds: "2026-01-31T08:15:30.123Z".
func (t Time) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(t.quoted(enc.AvailableBuffer()))
}

// MarshalJSON is MarshalJSONTo for the encoder of the standard library.
func (t Time) MarshalJSON() ([]byte, error) {
	return t.quoted(make([]byte, 0, timeLength+len(`""`))), nil
}

func (t Time) quoted(b []byte) []byte { return append(t.append(append(b, '"')), '"') }

// append formats the seconds with RFC3339, which the standard library formats fast, and appends the milliseconds.
func (t Time) append(b []byte) []byte {
	at := t.Std()
	b = at.AppendFormat(b, time.RFC3339)
	thousandths := at.Nanosecond() / int(time.Millisecond)
	return append(b[:len(b)-len("Z")], '.', byte('0'+thousandths/100), byte('0'+thousandths/10%10), byte('0'+thousandths%10), 'Z')
}

// JSONString describes a time to the API document: a string of this format, and never null.
func (t Time) JSONString() (format string, orNull bool) { return "date-time", false }

// UnmarshalJSON reads RFC 3339 with any offset and fraction; null leaves t as it is.
func (t *Time) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return fmt.Errorf("time: not a string")
	}
	parsed, err := Parse(string(data[1 : len(data)-1]))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}

// Parse reads RFC 3339 with any offset and fraction.
func Parse(s string) (Time, error) {
	parsed, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, fmt.Errorf("time: %q is not RFC 3339", s)
	}
	return Of(parsed), nil
}

// Shifted is a clock that shows another time than the one below it: for the sandbox, whose clock developers move, and for demo
// data, which is created as if in the past. It may be used and moved by several goroutines.
type Shifted struct {
	Below  Clock // nil: the clock of the machine
	offset atomic.Int64
	held   atomic.Pointer[time.Time] // nil: the clock runs
}

// Now returns the time of the clock below, plus the offset; while the clock is held, the time at which it stands.
func (c *Shifted) Now() time.Time {
	if at := c.held.Load(); at != nil {
		return *at
	}
	return c.below().Add(c.Offset())
}

// Base returns the time of the clock below, which no command moves.
func (c *Shifted) Base() time.Time { return c.below() }

// Hold stops the clock at a time, until [Shifted.Release].
func (c *Shifted) Hold(at time.Time) { c.held.Store(&at) }

// Release lets the clock run again, from the time at which it stands.
func (c *Shifted) Release() {
	if at := c.held.Load(); at != nil {
		c.SetOffset(at.Sub(c.below()))
		c.held.Store(nil)
	}
}

// Offset returns by how much the clock is ahead of the one below; negative: behind.
func (c *Shifted) Offset() time.Duration { return time.Duration(c.offset.Load()) }

// SetOffset moves the clock: from now on it is ahead by d.
func (c *Shifted) SetOffset(d time.Duration) { c.offset.Store(int64(d)) }

func (c *Shifted) below() time.Time {
	if c.Below == nil {
		return System{}.Now()
	}
	return c.Below.Now()
}
