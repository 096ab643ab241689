package types

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/unicode/norm"
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
	if err == nil {
		*d = parsed
	}
	return err
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
	var err error
	if *d, err = ParseDate(s); err != nil && s != "" {
		return fmt.Errorf("read a date from %q: %w", s, err)
	}
	return nil
}

// Identity identifies a person by names and date of birth (YYYY-MM-DD, empty if unknown).
type Identity struct{ FirstName, LastName, DateOfBirth string }

// PersonKey returns the key under which two names may belong to the same person. It is stricter than any search: it
// ignores case, accents, white space, punctuation, the order of the names, compatibility forms such as full-width
// letters, German transliteration (Müller, Mueller), and Cyrillic and Greek letters that look like Latin ones. Different
// people can share a key; one person with two spellings seldom has two.
func PersonKey(names ...string) string {
	words := strings.Fields(transliterated.Replace(plainLetters(strings.Join(names, " "))))
	slices.Sort(words)
	return strings.Join(words, " ")
}

// plainLetters returns a text with its letters and digits folded, without accents, and with a Latin letter for each that
// looks like one. It drops joiners and apostrophes; everything else becomes a space.
func plainLetters(text string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(Fold(text)) {
		switch {
		case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Cf, r): // accents, joiners
		case r == '\'', r == '’': // O'Neill, O’Neill and ONeill
		case unicode.IsLetter(r), unicode.IsDigit(r):
			if latin, ok := latinOf[r]; ok {
				b.WriteString(latin)
			} else if letter, ok := likeASCII()[r]; ok {
				b.WriteRune(letter)
			} else {
				b.WriteRune(r)
			}
		default:
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// transliterated makes the German spelling without umlauts the same as the letters without their dots.
var transliterated = strings.NewReplacer("ae", "a", "oe", "o", "ue", "u")

// latinOf maps folded letters that do not decompose, and letters of names, to the Latin letter that they stand for. likeASCII
// has the other letters that look like a Latin one.
var latinOf = map[rune]string{
	'æ': "a", 'œ': "o", 'ø': "o", 'đ': "d", 'ð': "d", 'ł': "l", 'ħ': "h", 'ı': "i", 'ŧ': "t", 'þ': "th", 'ƒ': "f", 'ŋ': "n",
	// Cyrillic
	'а': "a", 'в': "b", 'с': "c", 'ԁ': "d", 'е': "e", 'һ': "h", 'н': "h", 'і': "i", 'ј': "j", 'к': "k", 'ӏ': "l", 'м': "m", 'о': "o",
	'р': "p", 'ԛ': "q", 'ѕ': "s", 'т': "t", 'ѵ': "v", 'ԝ': "w", 'х': "x", 'у': "y",
	// Greek
	'α': "a", 'β': "b", 'ε': "e", 'η': "n", 'ι': "i", 'κ': "k", 'μ': "m", 'ν': "v", 'ο': "o", 'ρ': "p", 'τ': "t", 'υ': "u", 'χ': "x", 'ζ': "z",
}
