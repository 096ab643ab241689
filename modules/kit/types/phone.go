package types

import "strings"

// Phone is a telephone number in E.164 form, for example +41446681800.
type Phone string

// The country of numbers without a country code is Switzerland.
const (
	defaultCallingCode         = "41"
	defaultInternationalPrefix = "00"
)

// maxPhoneInput is longer than any number with its punctuation.
const maxPhoneInput = 64

// Lengths of a number without its country code, in digits.
const (
	minNationalNumber = 2
	maxNationalNumber = 17
)

// ParsePhone parses a number as people write it ("044 668 18 00", "0041 44 668 18 00",
// "+49 (0)30 123456") and returns it in E.164 form. A number without a country code is Swiss. It
// returns RulePhone for numbers outside the numbering plan of the country, for letters, and for
// extensions, which E.164 cannot represent.
//
// It decides as the library libphonenumber does, whose plans it uses. The first number of a country takes
// longer, because the patterns of its plans are compiled then.
func ParsePhone(s string) (Phone, error) {
	if len(s) > maxPhoneInput || strings.ContainsFunc(s, notInPhone) {
		return "", RulePhone
	}
	digits, plus := writtenDigits(s)
	code, national := splitPhone(digits, plus)
	if code == "" || len(national) < minNationalNumber {
		return "", RulePhone
	}
	plans := plansOf(code)
	main := plans[0] // it decides about national prefixes in all countries with the code
	if stripped := main.stripPrefix(national); main.isPossible(stripped) {
		national = stripped
	}
	if len(national) < minNationalNumber || len(national) > maxNationalNumber || !isAssigned(plans, national) {
		return "", RulePhone
	}
	return Phone("+" + code + national), nil
}

// notInPhone reports whether a character does not occur in written numbers. Letters do not: a vanity
// number is a way to dial, not a number to store.
func notInPhone(r rune) bool { return !strings.ContainsRune("0123456789+ ()-./\u00a0\u2011", r) }

func notDigit(r rune) bool { return r < '0' || r > '9' }

// writtenDigits returns the digits of a written number, and whether a plus precedes them. It returns no
// digits if a plus follows one of them.
func writtenDigits(s string) (digits string, plus bool) {
	s = strings.TrimLeftFunc(s, func(r rune) bool { return r != '+' && notDigit(r) })
	bare := strings.TrimLeft(s, "+")
	if strings.Contains(bare, "+") {
		return "", false
	}
	digits = strings.Map(func(r rune) rune {
		if notDigit(r) {
			return -1
		}
		return r
	}, bare)
	return digits, len(bare) < len(s)
}

// splitPhone returns the country code of a number and the rest, or "" for a number without a valid code.
func splitPhone(digits string, plus bool) (code, national string) {
	international := digits
	if !plus {
		rest, found := strings.CutPrefix(digits, defaultInternationalPrefix)
		if !found || strings.HasPrefix(rest, "0") { // country codes do not begin with 0
			return splitNational(digits)
		}
		international = rest
	}
	if len(international) <= minNationalNumber {
		return "", ""
	}
	if code, national = cutCallingCode(international); code != "" || !plus {
		return code, national
	}
	// People also write +0041.
	if rest, found := strings.CutPrefix(digits, defaultInternationalPrefix); found && len(rest) > minNationalNumber {
		return cutCallingCode(rest)
	}
	return "", ""
}

// splitNational splits a number without an international prefix. It is national, or begins with the country
// code alone.
func splitNational(digits string) (code, national string) {
	main := plansOf(defaultCallingCode)[0]
	if rest, found := strings.CutPrefix(digits, defaultCallingCode); found {
		rest = main.stripPrefix(rest)
		if !main.general.MatchString(digits) && main.general.MatchString(rest) || main.isTooLong(digits) {
			return defaultCallingCode, rest
		}
	}
	return defaultCallingCode, digits
}

// maxCallingCode is the length of the longest country codes, in digits.
const maxCallingCode = 3

// cutCallingCode cuts the country code. No code is the beginning of another one.
func cutCallingCode(digits string) (code, rest string) {
	for n := 1; n <= min(maxCallingCode, len(digits)); n++ {
		if plansOf(digits[:n]) != nil {
			return digits[:n], digits[n:]
		}
	}
	return "", ""
}

// String returns the number in E.164 form.
func (p Phone) String() string { return string(p) }
