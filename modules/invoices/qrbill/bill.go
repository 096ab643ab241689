package qrbill

import (
	"strconv"
	"strings"
)

// Bill is what one Swiss QR code says.
type Bill struct {
	Version       string // as printed, "0200"
	IBAN          string // without blanks, upper case
	Creditor      Party
	Amount        *Amount // nil: the payer fills it in, or the text was unreadable (then a Finding says so)
	Currency      string
	Debtor        *Party // nil when the bill names none
	ReferenceType string // QRR, SCOR, NON, or what the bill says instead
	Reference     string // without blanks; empty for NON
	Message       string // the unstructured message as it stands in the code
	// Billing is nil when the bill carries no billing information.
	Billing *BillingInformation
	// AlternativeProcedures are the texts of the lines for eBill and the like.
	AlternativeProcedures []string
}

// Party is a creditor or a debtor.
type Party struct {
	Name    string
	Address string // street and number; of a combined address its first line
	Zip     string
	City    string
	Country string // ISO 3166-1 alpha-2, upper case
	// Lines are the two raw lines of a combined address, nil for a structured one.
	Lines []string
}

// Amount is money in hundredths of the bill's currency.
type Amount int64

// String writes the amount with two decimals and a point: "1949.70".
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

// MarshalJSON writes the amount as a JSON number, without any rounding.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// Finding is one thing that is wrong or remarkable about a bill.
type Finding struct {
	Element string // which part of the bill: "iban", "creditor.name", …
	Rule    Rule   // what it breaks
	Value   string // what stands there
}

// Rule names a rule of the Swiss standard.
type Rule string

// The rules that a bill can break. Every one of them is refused in strict mode.
const (
	RuleRequired      Rule = "required"       // the element is missing
	RuleLength        Rule = "length"         // longer than the standard allows
	RuleCharacters    Rule = "characters"     // characters outside the permitted set
	RuleFormat        Rule = "format"         // not written as the standard demands
	RuleChecksum      Rule = "checksum"       // wrong check digits
	RuleCountry       Rule = "country"        // not a country, or one that is not allowed here
	RuleValue         Rule = "value"          // not one of the permitted values
	RuleRange         Rule = "range"          // amount below or above the limits
	RuleMustBeEmpty   Rule = "must_be_empty"  // filled though the standard reserves it
	RuleAccountType   Rule = "account_type"   // the reference type does not fit the account
	RuleTotalLength   Rule = "total_length"   // message and billing information together too long
	RuleTooMany       Rule = "too_many"       // more lines than the standard knows
	RuleLineSeparator Rule = "line_separator" // neither LF nor CR LF throughout
)

// The remarks: worth a warning, accepted even in strict mode.
const (
	NoteCombinedAddress Rule = "combined_address"     // type K, which banks may refuse since 30 September 2026
	NoteBillingLine     Rule = "billing_line_missing" // an alternative procedure stands in the line of the billing information
	NoteNoPayment       Rule = "not_for_payment"      // the amount is zero: a notice
	NoteDecimals        Rule = "amount_decimals"      // the amount is not written with two decimals
	NoteEncoding        Rule = "encoding"             // the text is not UTF-8, it was read as Windows-1252
	NoteBillingSyntax   Rule = "billing_syntax"       // part of the billing information does not follow its syntax
)

// Tolerated tells whether the finding is only a remark, which strict mode accepts.
func (f Finding) Tolerated() bool {
	switch f.Rule {
	case NoteCombinedAddress, NoteBillingLine, NoteNoPayment, NoteDecimals, NoteEncoding, NoteBillingSyntax:
		return true
	}
	return false
}

// Violations returns those findings that strict mode refuses.
func Violations(all []Finding) []Finding {
	var broken []Finding
	for _, f := range all {
		if !f.Tolerated() {
			broken = append(broken, f)
		}
	}
	return broken
}

// SamePayment tells whether two bills would lead to the same payment.
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
