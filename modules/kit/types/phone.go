package types

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Phone is a telephone number in E.164 form, for example +41446681800.
type Phone string

// defaultRegion reads a number without a country code as a Swiss one.
const defaultRegion = "CH"

// maxPhoneInput is longer than any number with its punctuation.
const maxPhoneInput = 64

// ParsePhone parses a number as people write it ("044 668 18 00", "0041 44 668 18 00",
// "+49 (0)30 123456") and brings it to E.164. A number without a country code is Swiss. It refuses
// with RulePhone what the numbering plan of the country cannot hold, letters, and extensions, which
// E.164 has no place for.
//
// The metadata of the numbering plans costs about 5 ms and 2 MB when the program starts.
func ParsePhone(s string) (Phone, error) {
	if len(s) > maxPhoneInput || strings.ContainsFunc(s, notInPhone) {
		return "", RulePhone
	}
	n, err := phonenumbers.Parse(s, defaultRegion)
	if err != nil || n.GetExtension() != "" || !phonenumbers.IsValidNumber(n) {
		return "", RulePhone
	}
	return Phone(phonenumbers.Format(n, phonenumbers.E164)), nil
}

// notInPhone tells the characters that no written number holds. Letters are among them: a vanity
// number is a way to dial, not a number to store.
func notInPhone(r rune) bool { return !strings.ContainsRune("0123456789+ ()-./\u00a0\u2011", r) }

// String returns the number in E.164 form.
func (p Phone) String() string { return string(p) }
