package seed

import (
	"regexp"
	"strings"
)

// secretName finds members of answers that hold secrets: tokens of sessions, keys, passwords, codes.
var secretName = regexp.MustCompile(`(?i)token|secret|password|otp|^key$|api_key|codes?$|_uri$`)

const (
	hidden     = "•••"
	minSecret  = 6    // shorter values would hide ordinary words
	maxSecrets = 4096 // of a file
)

// learn collects the secrets of an answer, so that no message shows them.
func (s *state) learn(value any, name string) {
	switch v := value.(type) {
	case map[string]any:
		for member, one := range v {
			if secretName.MatchString(name) {
				member = name
			}
			s.learn(one, member)
		}
	case []any:
		for _, one := range v {
			s.learn(one, name)
		}
	case string:
		if len(v) >= minSecret && len(s.secrets) < maxSecrets && secretName.MatchString(name) && name != "code" {
			s.secrets = append(s.secrets, v)
		}
	}
}

// mask removes the secrets of earlier answers from a text.
func (s *state) mask(text string) string {
	for _, secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, hidden)
	}
	return text
}
