package types

import (
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/norm"
)

// Email is a well-formed e-mail address, as its owner wrote it.
type Email string

const (
	maxEmailBytes = 254 // RFC 5321, 4.5.3.1.3, less the angle brackets
	maxLocalBytes = 64  // RFC 5321, 4.5.3.1.1
)

// domainRules are those by which a name is looked up, for international names too, with the
// restrictions on letters, digits and hyphens and on lengths.
var domainRules = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.VerifyDNSLength(true), idna.StrictDomainName(true))

// ParseEmail parses an address of the form local@domain. White space at both ends is cut. It takes
// letters of all scripts (RFC 6531) on both sides. It refuses with RuleEmail display names,
// comments, quoted local parts, address literals, domains of a single label, control characters and
// whatever is too long: such addresses are legal, but nobody has one, and some mail servers read
// them in more than one way.
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
	// The two readers must agree: what net/mail understands otherwise is not taken.
	if a, err := mail.ParseAddress(s); err != nil || a.Address != s || a.Name != "" {
		return "", RuleEmail
	}
	return Email(s), nil
}

// String returns the address as its owner wrote it.
func (e Email) String() string { return string(e) }

// Key returns the form under which addresses are compared: the domain in its ASCII form in lower
// case and the local part folded. By the letter of RFC 5321 the case of a local part may matter;
// no provider lets it, and two accounts that differ in it only would be a trap.
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

// isDotAtom tells the unquoted local parts of RFC 5322, 3.2.3, with the letters of RFC 6531.
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

// isDomain tells a name of at least two labels in its ASCII form, the last of which is no number:
// 10.0.0.1 is an address of a machine.
func isDomain(ascii string) bool {
	dot := strings.LastIndexByte(ascii, '.')
	if dot < 1 || dot == len(ascii)-1 {
		return false
	}
	return strings.ContainsFunc(ascii[dot+1:], func(r rune) bool { return r < '0' || r > '9' })
}
