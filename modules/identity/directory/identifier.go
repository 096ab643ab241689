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

// identifier is a parsed credential value with its key.
type identifier struct {
	kind  string
	value string
	key   string
}

// ruleUsername is broken by malformed user names. Its text is in users.json.
const ruleUsername types.Rule = "username"

const (
	minUsername = 3
	maxUsername = 64
)

// parseIdentifier parses a credential value of a type. It returns a [types.Rule].
func parseIdentifier(kind, text string) (identifier, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return identifier{}, types.RuleRequired
	}
	switch kind {
	case Email:
		if len(text) > maxLogin { // before normalisation
			return identifier{}, types.RuleEmail
		}
		email, err := types.ParseEmail(norm.NFKC.String(text))
		return identifier{kind, email.String(), email.LookAlikeKey()}, err
	case Phone:
		// Without a country code a number is ambiguous.
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

// isUsername reports whether a text is a user name: 3 to 64 letters, digits, dots, hyphens and underscores, beginning with a
// letter. Only ASCII letters are allowed, so that no two names look alike. UUIDs are rejected: users can sign in with their id.
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

// LoginKey returns the key of a credential value of unknown type, as people type it at sign-in. A text that is not valid for
// any type gets a key that no credential can have.
func LoginKey(text string) string {
	text = strings.TrimSpace(text)
	for _, kind := range []string{Email, Phone, Username} {
		if parsed, err := parseIdentifier(kind, text); err == nil {
			return parsed.key
		}
	}
	return types.Fold(text)
}

// FormerKey returns the key of a credential value from before look-alike characters were folded. Credentials whose new key was
// taken still have it.
func FormerKey(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= maxLogin {
		if email, err := types.ParseEmail(text); err == nil {
			return email.Key()
		}
	}
	return LoginKey(text)
}

// LoginKey is the function LoginKey, for callers that use the service through an interface.
func (s *Service) LoginKey(text string) string { return LoginKey(text) }

// channel returns the channel that sends codes to a type of credential, or an empty text for user names.
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
