package client

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Opt is a member of a request that may be absent, null or a value. The zero Opt is absent: an update keeps the present value.
type Opt[T any] struct {
	value *T
	given bool
}

// Set returns a member with a value.
func Set[T any](value T) Opt[T] { return Opt[T]{&value, true} }

// Null returns a member that is null: an update removes the present value.
func Null[T any]() Opt[T] { return Opt[T]{nil, true} }

// IsZero reports whether the member is absent. Package json leaves it out then.
func (o Opt[T]) IsZero() bool { return !o.given }

// MarshalJSON returns the value, or null.
func (o Opt[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.value) }

// UnmarshalJSON reads a value, or null.
func (o *Opt[T]) UnmarshalJSON(data []byte) error {
	o.given = true
	return json.Unmarshal(data, &o.value)
}

// Date is a day without a time.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

// DateOf returns the day of a time in its location.
func DateOf(t time.Time) Date {
	year, month, day := t.Date()
	return Date{year, month, day}
}

// In returns the beginning of the day in a location.
func (d Date) In(l *time.Location) time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, l) }

// String returns the day as 2026-01-31.
func (d Date) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.Year, d.Month, d.Day) }

// MarshalText returns the day as 2026-01-31.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a day such as 2026-01-31.
func (d *Date) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.DateOnly, string(text))
	if err == nil {
		*d = DateOf(t)
	}
	return err
}

// File is a file that is sent or received.
type File struct {
	Name      string // of a file that is sent; "file" by default
	MediaType string
	Data      []byte
	// ETag identifies this version of a received file, for [IfNoneMatch].
	ETag string
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
