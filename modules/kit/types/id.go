package types

// idLength is the length of a UUID as text: 32 digits and four hyphens.
const idLength = 36

// ParseID parses a UUID in its canonical form, in letters of either case, and returns it in lower
// case, as it is stored. It returns RuleID for braces, URN prefixes and missing hyphens, so that
// an id has one spelling.
func ParseID(s string) (string, error) {
	lower := true
	if len(s) != idLength {
		return "", RuleID
	}
	for i := range idLength {
		c := s[i]
		switch {
		case i == 8 || i == 13 || i == 18 || i == 23:
			if c != '-' {
				return "", RuleID
			}
		case '0' <= c && c <= '9', 'a' <= c && c <= 'f':
		case 'A' <= c && c <= 'F':
			lower = false
		default:
			return "", RuleID
		}
	}
	if lower {
		return s, nil
	}
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'F' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b), nil
}

// IsID reports whether [ParseID] accepts s.
func IsID(s string) bool {
	_, err := ParseID(s)
	return err == nil
}

// FoldID returns the stored form of a UUID, and other texts unchanged. It is for lists whose ids are not all of Kontor.
func FoldID(text string) string {
	if id, err := ParseID(text); err == nil {
		return id
	}
	return text
}
