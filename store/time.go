package store

import (
	"bytes"
	"fmt"
	"time"
)

// Clock tells the time. Everything that decides by time asks the store's clock, so that tests can
// move it.
type Clock interface{ Now() time.Time }

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

// Time is a moment in Unix milliseconds, UTC: what the database keeps and what JSON shows.
type Time int64

const timeLayout = "2006-01-02T15:04:05.000Z"

// TimeOf cuts t to milliseconds.
func TimeOf(t time.Time) Time { return Time(t.UnixMilli()) }

// Std gives the moment as a time.Time in UTC.
func (t Time) Std() time.Time { return time.UnixMilli(int64(t)).UTC() }

// Add moves the moment by d, cut to milliseconds.
func (t Time) Add(d time.Duration) Time { return t + Time(d.Milliseconds()) }

// String gives the form that JSON has, without quotes.
func (t Time) String() string { return string(t.append(make([]byte, 0, len(timeLayout)+4))) }

// MarshalJSON gives RFC 3339 with milliseconds: "2026-01-31T08:15:30.123Z".
func (t Time) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, len(timeLayout)+6), '"')
	return append(t.append(b), '"'), nil
}

func (t Time) append(b []byte) []byte { return t.Std().AppendFormat(b, timeLayout) }

// JSONString tells the API's documentation how a time is written: as a string of this format, and never as null.
func (t Time) JSONString() (format string, orNull bool) { return "date-time", false }

// UnmarshalJSON reads RFC 3339 with any offset and fraction; null leaves t as it is.
func (t *Time) UnmarshalJSON(data []byte) error {
	if bytes.Equal(data, []byte("null")) {
		return nil
	}
	if len(data) < 2 || data[0] != '"' || data[len(data)-1] != '"' {
		return fmt.Errorf("time: not a string")
	}
	parsed, err := ParseTime(string(data[1 : len(data)-1]))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}

// ParseTime reads RFC 3339 with any offset and fraction.
func ParseTime(s string) (Time, error) {
	parsed, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return 0, fmt.Errorf("time: %q is not RFC 3339", s)
	}
	return TimeOf(parsed), nil
}
