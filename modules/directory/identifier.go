package directory

import (
	"strings"

	"golang.org/x/text/unicode/norm"

	"kontor/modules/kit/types"
)

// The types of a credential.
const (
	Email    = "email"
	Phone    = "phone"
	Username = "username"
)

// identifier is the value of a credential with the key under which it is compared.
type identifier struct {
	kind  string
	value string
	key   string
}

// ruleUsername is what a user name must be; its wording is with the texts of users.
const ruleUsername types.Rule = "username"

const (
	minUsername = 3
	maxUsername = 64
)

// parseIdentifier reads the value of a credential of a type. It returns a [value.Rule].
func parseIdentifier(kind, text string) (identifier, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return identifier{}, types.RuleRequired
	}
	switch kind {
	case Email:
		if len(text) > maxLogin { // before it is normalised
			return identifier{}, types.RuleEmail
		}
		email, err := types.ParseEmail(norm.NFKC.String(text))
		return identifier{kind, email.String(), email.LookAlikeKey()}, err
	case Phone:
		// Without its country code a number could be read as somebody else's.
		if !strings.HasPrefix(text, "+") {
			return identifier{}, types.RulePhone
		}
		phone, err := types.ParsePhone(text)
		return identifier{kind, phone.String(), phone.String()}, err
	default:
		if !isUsername(text) {
			return identifier{}, ruleUsername
		}
		return identifier{Username, text, types.Fold(text)}, nil
	}
}

// isUsername tells names of 3 to 64 letters, digits, dots, hyphens and underscores that begin with a letter. Letters of
// one alphabet only: names that merely look alike would be a trap. A UUID is no name: one can sign in with it, too.
func isUsername(s string) bool {
	if len(s) < minUsername || len(s) > maxUsername || types.IsID(s) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '.' || c == '-' || c == '_'):
		default:
			return false
		}
	}
	return true
}

// LoginKey gives the key of a credential value whose type is not known, as it is typed at sign-in. What is no valid
// value of any type gets a key that no credential has or ever will.
func LoginKey(text string) string {
	text = strings.TrimSpace(text)
	for _, kind := range []string{Email, Phone, Username} {
		if parsed, err := parseIdentifier(kind, text); err == nil {
			return parsed.key
		}
	}
	return types.Fold(text)
}

// FormerKey gives the key that a credential value had before look-alikes were made one. Credentials that collided then
// still have it.
func FormerKey(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= maxLogin {
		if email, err := types.ParseEmail(text); err == nil {
			return email.Key()
		}
	}
	return LoginKey(text)
}

// LoginKey is the function of that name, for those who know the service through an interface.
func (s *Service) LoginKey(text string) string { return LoginKey(text) }

// channel is the way a code goes to a credential of the type; empty: there is none.
func channel(kind string) string {
	switch kind {
	case Email:
		return "email"
	case Phone:
		return "sms"
	default:
		return ""
	}
}
