package types

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/nyaruka/phonenumbers"
	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// Email is a well-formed e-mail address, as its owner wrote it.
type Email string

const (
	maxEmailBytes = 254 // RFC 5321, 4.5.3.1.3, less the angle brackets
	maxLocalBytes = 64  // RFC 5321, 4.5.3.1.1
)

// domainRules are the IDNA rules for looking up names, with the restrictions on letters, digits,
// hyphens and lengths.
var domainRules = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.VerifyDNSLength(true), idna.StrictDomainName(true))

// ParseEmail parses an address of the form local@domain. It trims white space and accepts letters of
// all scripts (RFC 6531) on both sides. It returns RuleEmail for display names, comments, quoted local
// parts, address literals, domains of a single label, control characters and addresses that are too
// long. Such addresses are legal but not in use, and mail servers interpret them differently.
func ParseEmail(s string) (Email, error) {
	s = norm.NFC.String(strings.TrimSpace(s))
	if len(s) > maxEmailBytes || !utf8.ValidString(s) {
		return "", RuleEmail
	}
	at := strings.LastIndexByte(s, '@')
	if at < 1 || at > maxLocalBytes {
		return "", RuleEmail
	}
	local, domain := s[:at], s[at+1:]
	if !isDotAtom(local) {
		return "", RuleEmail
	}
	ascii, err := domainRules.ToASCII(domain)
	if err != nil || !isDomain(ascii) || at+1+len(ascii) > maxEmailBytes {
		return "", RuleEmail
	}
	// Addresses that net/mail parses differently are rejected.
	if a, err := mail.ParseAddress(s); err != nil || a.Address != s || a.Name != "" {
		return "", RuleEmail
	}
	return Email(s), nil
}

// String returns the address as its owner wrote it.
func (e Email) String() string { return string(e) }

// Key returns the key under which addresses are compared: the domain in ASCII and lower case, and the
// folded local part. RFC 5321 allows case-sensitive local parts, but providers do not use them, and
// two accounts that differ in case only could be confused.
func (e Email) Key() string {
	local, domain, found := strings.Cut(string(e), "@")
	if !found {
		return Fold(string(e))
	}
	if ascii, err := domainRules.ToASCII(domain); err == nil {
		domain = ascii
	}
	return Fold(local) + "@" + Fold(domain)
}

// isDotAtom reports whether a text is an unquoted local part (RFC 5322, 3.2.3), with the letters of
// RFC 6531.
func isDotAtom(s string) bool {
	previous := '.'
	for _, r := range s {
		if r == '.' && previous == '.' {
			return false
		}
		if r != '.' && !isAtomText(r) {
			return false
		}
		previous = r
	}
	return previous != '.'
}

func isAtomText(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return true
	case r < utf8.RuneSelf:
		return strings.ContainsRune("!#$%&'*+-/=?^_`{|}~", r)
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// isDomain reports whether a text is a domain name in ASCII with at least two labels, the last of
// which is not a number: 10.0.0.1 is an IP address.
func isDomain(ascii string) bool {
	dot := strings.LastIndexByte(ascii, '.')
	if dot < 1 || dot == len(ascii)-1 {
		return false
	}
	return strings.ContainsFunc(ascii[dot+1:], func(r rune) bool { return r < '0' || r > '9' })
}

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
