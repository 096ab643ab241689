package qrbill

import "time"

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
