package types

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

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
