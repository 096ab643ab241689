// Package qrbill reads Swiss QR-bills from the text of a code, from images and from PDF documents. It depends on no other
// part of Kontor but package sandbox, and can be used as a library:
//
//	reader := qrbill.NewReader(qrbill.Config{})
//	defer reader.Close(ctx)
//	result, err := reader.Read(ctx, file, qrbill.Options{})
//
// Parse parses the text of a code and returns the bill and its violations of the standard. It does not guess, repair or
// round: an ambiguous value is absent, and a Finding reports it.
//
// Limitations: HEIC photos are rejected, because no proven decoder in pure Go has a permissive licence. Structured append (one
// payload in several symbols) is not supported; the standard does not use it.
package qrbill

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Bill is the content of one Swiss QR code.
type Bill struct {
	Version       string // as in the code: "0200"
	IBAN          string // without blanks, in upper case
	Creditor      Party
	Amount        *Amount // nil when the payer enters it, or when it is unreadable, which a Finding reports
	Currency      string
	Debtor        *Party // nil when the bill has none
	ReferenceType string // QRR, SCOR, NON, or another value in the code
	Reference     string // without blanks; empty for NON
	Message       string // the unstructured message, unchanged
	// Billing is nil when the bill has no billing information.
	Billing *Billing
	// AlternativeProcedures are the lines for procedures such as eBill.
	AlternativeProcedures []string
}

// Party is a creditor or a debtor.
type Party struct {
	Name         string   `json:"name" example:"Robert Schneider AG"`
	Address      string   `json:"address"` // street and number; the first line of a combined address
	Zip          string   `json:"zip" example:"2501"`
	City         string   `json:"city" example:"Biel"`
	Country      string   `json:"country" example:"CH"` // ISO 3166-1 alpha-2, upper case
	AddressLines []string `json:"address_lines" example:"" doc:"The raw lines of a combined address; empty for a structured one."`
}

// Amount is an amount in hundredths of the currency.
type Amount int64

// String formats the amount with a point and two decimals: "1949.70".
func (a Amount) String() string {
	sign := ""
	if a < 0 {
		sign, a = "-", -a
	}
	return fmt.Sprintf("%s%d.%02d", sign, int64(a/100), int64(a%100))
}

// MarshalJSON encodes the amount as a JSON number without rounding.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// Finding is a violation of the standard, or a remark about a bill.
type Finding struct {
	Element string // element of the bill: "iban", "creditor.name", …
	Rule    Rule
	Value   string // value of the element
}

// Rule names a rule of the Swiss standard.
type Rule string

// The rules that a bill can violate. Strict mode rejects every violation.
const (
	RuleRequired      Rule = "required"       // the element is missing
	RuleLength        Rule = "length"         // longer than the standard allows
	RuleCharacters    Rule = "characters"     // characters outside the permitted set
	RuleFormat        Rule = "format"         // not in the required format
	RuleChecksum      Rule = "checksum"       // wrong check digits
	RuleCountry       Rule = "country"        // not a country code, or one that is not permitted
	RuleValue         Rule = "value"          // not one of the permitted values
	RuleRange         Rule = "range"          // amount below or above the limits
	RuleMustBeEmpty   Rule = "must_be_empty"  // not empty, although the standard reserves the element
	RuleAccountType   Rule = "account_type"   // the reference type does not match the type of the IBAN
	RuleTotalLength   Rule = "total_length"   // message and billing information together too long
	RuleTooMany       Rule = "too_many"       // more lines than the standard defines
	RuleQRCurrency    Rule = "qr_currency"    // a QR-IBAN or QR reference with another currency than CHF
	RuleLineSeparator Rule = "line_separator" // lines do not all end with LF, or all with CR LF
)

// The remarks. Strict mode accepts them.
const (
	NoteCombinedAddress Rule = "combined_address"     // type K, which banks may reject since 30 September 2026
	NoteQRCurrency      Rule = "qr_currency_ending"   // RuleQRCurrency while version 2.3 of the standard is valid beside 2.4
	NoteBillingLine     Rule = "billing_line_missing" // an alternative procedure in the line of the billing information
	NoteNoPayment       Rule = "not_for_payment"      // the amount is zero: a notification
	NoteDecimals        Rule = "amount_decimals"      // the amount does not have two decimals
	NoteEncoding        Rule = "encoding"             // the text is not UTF-8 and was decoded as Windows-1252
	NoteBillingSyntax   Rule = "billing_syntax"       // part of the billing information violates its syntax
)

// Tolerated reports whether the finding is a remark, which strict mode accepts.
func (f Finding) Tolerated() bool {
	switch f.Rule {
	case NoteCombinedAddress, NoteQRCurrency, NoteBillingLine, NoteNoPayment, NoteDecimals, NoteEncoding, NoteBillingSyntax:
		return true
	}
	return false
}

// Violations returns the findings that strict mode rejects.
func Violations(all []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(all), Finding.Tolerated)
}

// SamePayment reports whether two bills result in the same payment.
func (b *Bill) SamePayment(o *Bill) bool {
	return b.IBAN == o.IBAN && b.Currency == o.Currency && b.Reference == o.Reference &&
		(b.Amount == nil) == (o.Amount == nil) && (b.Amount == nil || *b.Amount == *o.Amount)
}

func withoutBlanks(s string) string {
	return strings.Map(func(r rune) rune {
		if r == ' ' || r == '\u00a0' || r == '\t' {
			return -1
		}
		return r
	}, s)
}

// Maximum lengths of the elements of an address, in characters.
const (
	maxName    = 70
	maxStreet  = 70
	maxNumber  = 16
	maxZip     = 16
	maxCity    = 35
	maxCountry = 2
)

// party parses the seven lines of an address, beginning at line first. For a debtor with any line, the same elements are
// required as for a creditor.
func (p *parser) party(element string, first int) Party {
	raw := p.line
	kind := raw(first)
	value := func(i int) string { return strings.TrimSpace(raw(first + i)) }
	party := Party{Name: value(1), Country: strings.ToUpper(value(6))}
	p.field(element+".name", raw(first+1), maxName, true)

	switch kind {
	case "K":
		p.report(element+".address_type", NoteCombinedAddress, kind)
		p.combined(element, first, &party)
	default:
		switch kind {
		case "S":
		case "":
			p.report(element+".address_type", RuleRequired, "")
		default:
			p.report(element+".address_type", RuleValue, kind)
		}
		party.Address = strings.TrimSpace(value(2) + " " + value(3))
		party.Zip, party.City = value(4), value(5)
		p.field(element+".street", raw(first+2), maxStreet, false)
		p.field(element+".building_number", raw(first+3), maxNumber, false)
		p.field(element+".zip", raw(first+4), maxZip, true)
		p.field(element+".city", raw(first+5), maxCity, true)
	}

	country := raw(first + 6)
	switch {
	case country == "":
		p.report(element+".country", RuleRequired, "")
	case !strings.Contains(countries, " "+country+" ") || len(country) != maxCountry:
		p.report(element+".country", RuleCountry, country)
	}
	return party
}

// field checks that a text is present if required, not too long, and consists of permitted characters.
func (p *parser) field(element, value string, maxLength int, required bool) {
	switch {
	case required && strings.TrimSpace(value) == "":
		p.report(element, RuleRequired, value)
	case utf8.RuneCountInString(value) > maxLength:
		p.report(element, RuleLength, value)
	}
	if !onlyPermitted(value) {
		p.report(element, RuleCharacters, value)
	}
}

// combined parses an address of type K: a line for the street, and one for postcode and town.
func (p *parser) combined(element string, first int, party *Party) {
	line1, line2 := p.line(first+2), p.line(first+3)
	zip, city := p.line(first+4), p.line(first+5)
	p.field(element+".address_line_1", line1, maxStreet, false)
	p.field(element+".address_line_2", line2, maxStreet, true)
	party.AddressLines = []string{line1, line2}
	party.Address = strings.TrimSpace(line1)
	if zip != "" {
		p.report(element+".zip", RuleMustBeEmpty, zip)
	}
	if city != "" {
		p.report(element+".city", RuleMustBeEmpty, city)
	}
	if zip, city = strings.TrimSpace(zip), strings.TrimSpace(city); zip != "" || city != "" {
		party.Zip, party.City = zip, city
		return
	}
	if strings.TrimSpace(line2) == "" {
		if z, c := splitTown(line1, party.Country); z != "" {
			party.Address, party.Zip, party.City = "", z, c
		}
		return
	}
	party.Zip, party.City = splitTown(line2, party.Country)
}

var (
	townPrefix = regexp.MustCompile(`^(?:CH|D|FL|LI|F|A|I)-\s*(\d)`)
	townLine   = regexp.MustCompile(`^(\d{4,5}) (.+)$`)
)

// splitTown splits a line such as "9490 Vaduz" into postcode and town. A line that does not clearly begin with a postcode,
// such as "London SW1A 2AA", is returned as the town.
func splitTown(line, country string) (zip, city string) {
	line = strings.Join(strings.Fields(line), " ")
	match := townLine.FindStringSubmatch(townPrefix.ReplaceAllString(line, "$1"))
	if match == nil || (len(match[1]) != 4 && (country == "CH" || country == "LI")) {
		return "", line
	}
	return match[1], match[2]
}

// Version 2.4 of the standard allows QR-IBAN and QR reference only with CHF. It is in force since 14 November 2026, and
// version 2.3 stays valid beside it "until November 2027". The standard names no day, so the whole month counts.
//
// Source: SIX, Swiss Implementation Guidelines for the QR-bill, version 2.4 of 24 February 2026, chapters 2.10 and 4.3.2.
// docs/qr-bills.md states what of it could be read.
var (
	version24From  = time.Date(2026, time.November, 14, 0, 0, 0, 0, time.UTC)
	version23Until = time.Date(2027, time.December, 1, 0, 0, 0, 0, time.UTC)
)

// qrCurrencyRule returns the rule for a QR-IBAN or QR reference in another currency than CHF at a time, "" for none.
func qrCurrencyRule(at time.Time) Rule {
	switch {
	case at.Before(version24From):
		return ""
	case at.Before(version23Until):
		return NoteQRCurrency
	}
	return RuleQRCurrency
}
