package qrbill

import (
	"strconv"
	"strings"
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
	Billing *BillingInformation
	// AlternativeProcedures are the lines for procedures such as eBill.
	AlternativeProcedures []string
}

// Party is a creditor or a debtor.
type Party struct {
	Name    string
	Address string // street and number; the first line of a combined address
	Zip     string
	City    string
	Country string // ISO 3166-1 alpha-2, upper case
	// Lines are the two raw lines of a combined address, nil for a structured one.
	Lines []string
}

// Amount is an amount in hundredths of the currency.
type Amount int64

// String formats the amount with a point and two decimals: "1949.70".
func (a Amount) String() string {
	sign := ""
	n := int64(a)
	if n < 0 {
		sign, n = "-", -n
	}
	cents := strconv.FormatInt(n%100, 10)
	if len(cents) < 2 {
		cents = "0" + cents
	}
	return sign + strconv.FormatInt(n/100, 10) + "." + cents
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
	var broken []Finding
	for _, f := range all {
		if !f.Tolerated() {
			broken = append(broken, f)
		}
	}
	return broken
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
