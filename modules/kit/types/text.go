package types

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Line parses one line of text of at most limit characters, such as a name, a title or a reason. It
// trims white space and returns the text in Unicode normal form C, so that equal-looking texts are
// equal. It returns RuleText for control characters, line breaks, direction marks and invalid UTF-8,
// and RuleTooLong for longer texts. The empty text is allowed; see [Required].
func Line(s string, limit int) (string, error) { return text(s, limit, false) }

// Text is like [Line] for text of several lines. It allows tabs and line breaks, and converts all line
// breaks to "\n".
func Text(s string, limit int) (string, error) { return text(s, limit, true) }

// Required is like [Line] and returns RuleRequired for a [Blank] text.
func Required(s string, limit int) (string, error) {
	line, err := Line(s, limit)
	if err == nil && Blank(line) {
		return "", RuleRequired
	}
	return line, err
}

// Blank reports whether a text shows nothing: it consists of white space and of characters that are not displayed.
func Blank(s string) bool {
	for _, r := range s {
		if !unicode.IsSpace(r) && !isInvisible(r) && r != blankBraille {
			return false
		}
	}
	return true
}

// maxBytesPerCharacter limits the size of hostile texts before they are normalised. A character has at
// most four bytes. Normal form C shortens ordinary texts by a factor of four at most.
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

// forbidden reports whether a character is a control character, a separator of lines or paragraphs, or
// a direction mark, with which one name can imitate another. Joiners are allowed: some scripts need
// them.
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

// Fold returns the key under which texts are compared without regard to case: Unicode case folding in
// normal form C. "MÜLLER", "Müller" and "müller" share a key, and so do "Straße" and "STRASSE";
// "Muller" has another. Fold of a key is the key itself. Columns that are searched without regard to
// case hold this key.
func Fold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	// A folded text may not be in normal form, and a composed letter may fold further. The fixed point
	// is reached after very few rounds.
	for range maxFoldRounds {
		next := norm.NFC.String(cases.Fold().String(norm.NFC.String(s)))
		if next == s {
			break
		}
		s = next
	}
	return s
}

// maxFoldRounds is more than any letter needs.
const maxFoldRounds = 8

// isASCII reports whether a text is ASCII, which folds without tables.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// collationEnd separates the letters of a sort key from the text, below every letter.
const collationEnd = "\x01"

// SortKey returns the key by which names are sorted, byte by byte: letters without accents and case, as DIN 5007-1 sorts words
// (Ä beside A, ß as ss, é beside e). Punctuation counts as a blank. Names with the same letters are sorted by their text.
// The key of the empty text is empty. Columns with this key make sorting the same on every database.
func SortKey(s string) string {
	if s == "" {
		return ""
	}
	var b strings.Builder
	b.Grow(2*len(s) + 1)
	gap := false
	letters := s
	if !isASCII(s) {
		letters = norm.NFKD.String(strings.ToValidUTF8(s, " "))
	}
	for _, r := range letters {
		switch {
		case unicode.Is(unicode.Mn, r), isApostrophe(r):
			continue
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			gap = b.Len() > 0
			continue
		}
		if gap {
			b.WriteByte(' ')
			gap = false
		}
		r = unicode.ToLower(r)
		if replaced, known := spelled[r]; known {
			b.WriteString(replaced)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String() + collationEnd + s
}
