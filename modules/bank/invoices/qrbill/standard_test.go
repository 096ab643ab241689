package qrbill

import (
	"testing"
	"time"
)

func TestParse_ChoosesTheVersionOfTheStandardByTheDate(t *testing.T) {
	day := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, tc := range []struct {
		at, bill string
		want     Rule // of the only finding
		strict   bool // whether strict mode accepts the bill
	}{
		{"2020-06-30T00:00:00Z", with(20, "EUR"), "", true},
		{"2026-11-13T23:59:59Z", with(20, "EUR"), "", true},
		{"2026-11-14T00:00:00Z", with(20, "EUR"), NoteQRCurrency, true},
		{"2027-11-30T23:59:59Z", with(20, "EUR"), NoteQRCurrency, true},
		{"2027-12-01T00:00:00Z", with(20, "EUR"), RuleQRCurrency, false},
		{"2040-01-01T00:00:00Z", with(20, "EUR"), RuleQRCurrency, false},
		{"2040-01-01T00:00:00Z", clean, "", true},
		{"2040-01-01T00:00:00Z", with(4, plainIBAN, 20, "EUR", 28, "SCOR", 29, "RF18539007547034"), "", true},
	} {
		bill, findings, err := Parse(tc.bill, day(tc.at))
		if err != nil {
			t.Fatal(err)
		}
		var got Rule
		if len(findings) > 0 {
			got = findings[0].Rule
		}
		if got != tc.want || len(findings) > 1 || (len(Violations(findings)) == 0) != tc.strict {
			t.Errorf("%s, %s: findings %v, want %q", tc.at, bill.Currency, findings, tc.want)
		}
	}
}
