package types

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Line parses one line of text of at most limit characters: a name, a title, a reason. White space
// at both ends is cut and the text is brought to Unicode normal form C, so that equal-looking texts
// are equal. Control characters, line breaks among them, invisible direction marks and invalid
// UTF-8 are refused with RuleText, longer texts with RuleTooLong. The empty text is allowed; see
// [Required].
func Line(s string, limit int) (string, error) { return text(s, limit, false) }

// Text is like [Line] for text of several lines: line breaks and tabs may stay, and the three
// kinds of line break become one, "\n".
func Text(s string, limit int) (string, error) { return text(s, limit, true) }

// Required is like [Line] but refuses the empty text with RuleRequired.
func Required(s string, limit int) (string, error) {
	line, err := Line(s, limit)
	if err == nil && line == "" {
		return "", RuleRequired
	}
	return line, err
}

// maxBytesPerCharacter bounds the work on a hostile text before it is normalised: a character is at
// most four bytes long, and normal form C can shorten a text, though in honest texts by no more
// than this.
const maxBytesPerCharacter = 4 * 4

func text(s string, limit int, lines bool) (string, error) {
	if !utf8.ValidString(s) {
		return "", RuleText
	}
	s = strings.TrimSpace(s)
	if len(s) > limit*maxBytesPerCharacter {
		return "", RuleTooLong
	}
	if lines && strings.Contains(s, "\r") {
		s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	}
	for _, r := range s {
		if forbidden(r) && !(lines && (r == '\n' || r == '\t')) {
			return "", RuleText
		}
	}
	s = norm.NFC.String(s)
	if utf8.RuneCountInString(s) > limit {
		return "", RuleTooLong
	}
	return s, nil
}

// forbidden tells control characters, separators of lines and paragraphs, and the marks that turn
// the direction of writing, with which a name can pretend to be another. Joiners stay: some
// scripts need them.
func forbidden(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true
	case r == '\ufeff', r >= '\ufff9' && r <= '\ufffb', unicode.Is(unicode.Noncharacter_Code_Point, r):
		return true
	}
	return false
}

// Fold returns the key under which a text is compared without regard to case: Unicode case folding
// and normal form C. "MÜLLER", "Müller" and "müller" have the same key, "Straße" the one of
// "STRASSE"; "Muller" has another. Folding a key again changes nothing. A column that is searched
// without regard to case holds this key.
func Fold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	// Folding can leave a text that is no longer in normal form, and composing can bring forth a
	// letter that folds further; the fixed point comes after very few rounds.
	for range maxFoldRounds {
		next := norm.NFC.String(cases.Fold().String(norm.NFC.String(s)))
		if next == s {
			break
		}
		s = next
	}
	return s
}

// maxFoldRounds is far beyond what any letter needs.
const maxFoldRounds = 8

// isASCII tells the most frequent kind of text, which folds without the tables.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
