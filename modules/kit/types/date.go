package types

import (
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Date is a calendar day without time and zone, such as a date of birth or of expiry. The zero Date
// means no date; its JSON is null. Dates can be compared with == and used as map keys. Years run
// from 1 to 9999.
type Date struct {
	year  int16
	month int8
	day   int8
}

// dateLayout is the ISO 8601 calendar date.
const dateLayout = time.DateOnly

// ParseDate parses YYYY-MM-DD. It returns RuleDate for any other form and for days that do not exist,
// such as 2025-02-29 or any in the year 0000.
func ParseDate(s string) (Date, error) {
	if len(s) != len(dateLayout) {
		return Date{}, RuleDate
	}
	t, err := time.Parse(dateLayout, s)
	if err != nil || t.Year() < 1 {
		return Date{}, RuleDate
	}
	return DateOf(t), nil
}

// DateOf returns the day of t in the zone of t; pass t.UTC() for the day in UTC. A year outside 1
// to 9999 returns the zero Date.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	if y < 1 || y > 9999 {
		return Date{}
	}
	return Date{year: int16(y), month: int8(m), day: int8(d)} //nolint:gosec // months and days are small
}

// IsZero reports whether d is the zero Date.
func (d Date) IsZero() bool { return d == Date{} }

// String returns YYYY-MM-DD, and the empty text for the zero Date.
func (d Date) String() string {
	if d.IsZero() {
		return ""
	}
	return fmt.Sprintf("%04d-%02d-%02d", d.year, d.month, d.day)
}

// Start returns the first instant of the day in UTC.
func (d Date) Start() time.Time {
	return time.Date(int(d.year), time.Month(d.month), int(d.day), 0, 0, 0, 0, time.UTC)
}

// Compare returns -1, 0 or +1 as d is before, the same as or after other.
func (d Date) Compare(other Date) int { return d.Start().Compare(other.Start()) }

// Before reports whether d is earlier than other.
func (d Date) Before(other Date) bool { return d.Compare(other) < 0 }

// After reports whether d is later than other.
func (d Date) After(other Date) bool { return d.Compare(other) > 0 }

// AddDays returns the day n days later; n may be negative.
func (d Date) AddDays(n int) Date { return DateOf(d.Start().AddDate(0, 0, n)) }

// MarshalJSONTo writes the date as a string, the zero Date as null.
func (d Date) MarshalJSONTo(enc *jsontext.Encoder) error {
	if d.IsZero() {
		return enc.WriteToken(jsontext.Null)
	}
	return enc.WriteToken(jsontext.String(d.String()))
}

// MarshalJSON is MarshalJSONTo for the encoder of the standard library.
func (d Date) MarshalJSON() ([]byte, error) {
	if d.IsZero() {
		return []byte("null"), nil
	}
	return []byte(`"` + d.String() + `"`), nil
}

// JSONString returns the JSON schema format of a date for the API document: a string, or null.
func (d Date) JSONString() (format string, orNull bool) { return "date", true }

// UnmarshalJSON reads what MarshalJSON writes. It rejects the empty string.
func (d *Date) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*d = Date{}
		return nil
	}
	if len(b) < 2 || b[0] != '"' || b[len(b)-1] != '"' {
		return RuleDate
	}
	parsed, err := ParseDate(string(b[1 : len(b)-1]))
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

// Value stores the date as text; the zero Date is stored as NULL.
func (d Date) Value() (driver.Value, error) {
	if d.IsZero() {
		return nil, nil
	}
	return d.String(), nil
}

// Scan reads a date from text or from NULL.
func (d *Date) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*d = Date{}
		return nil
	case string:
		return d.scanText(v)
	case []byte:
		return d.scanText(string(v))
	}
	return fmt.Errorf("read a date from %T", src)
}

func (d *Date) scanText(s string) error {
	if s == "" {
		*d = Date{}
		return nil
	}
	parsed, err := ParseDate(s)
	if err != nil {
		return fmt.Errorf("read a date from %q: %w", s, err)
	}
	*d = parsed
	return nil
}
