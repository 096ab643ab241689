package types

import (
	"strings"

	"github.com/nyaruka/phonenumbers"
)

// Phone is a telephone number in E.164 form, for example +41446681800.
type Phone string

// defaultRegion is the country of numbers without a country code.
const defaultRegion = "CH"

// maxPhoneInput is longer than any number with its punctuation.
const maxPhoneInput = 64

// ParsePhone parses a number as people write it ("044 668 18 00", "0041 44 668 18 00",
// "+49 (0)30 123456") and returns it in E.164 form. A number without a country code is Swiss. It
// returns RulePhone for numbers outside the numbering plan of the country, for letters, and for
// extensions, which E.164 cannot represent.
func ParsePhone(s string) (Phone, error) {
	if len(s) > maxPhoneInput || strings.ContainsFunc(s, notInPhone) {
		return "", RulePhone
	}
	number, err := phonenumbers.Parse(s, defaultRegion)
	if err != nil || !phonenumbers.IsValidNumber(number) {
		return "", RulePhone
	}
	return Phone(phonenumbers.Format(number, phonenumbers.E164)), nil
}

// notInPhone reports whether a character does not occur in written numbers. Letters do not: a vanity
// number is a way to dial, not a number to store.
func notInPhone(r rune) bool { return !strings.ContainsRune("0123456789+ ()-./\u00a0\u2011", r) }

// String returns the number in E.164 form.
func (p Phone) String() string { return string(p) }
