package types

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Identity is who somebody is for others: names, and a day of birth as YYYY-MM-DD, empty where it is unknown.
type Identity struct{ FirstName, LastName, DateOfBirth string }

// PersonKey returns the key under which two names may belong to the same person. It is stricter than any search: it
// ignores case, accents, white space, punctuation, the order of the names, compatibility forms such as full-width
// letters, German transliteration (Müller, Mueller), and Cyrillic and Greek letters that look like Latin ones. Different
// people can share a key; one person with two spellings seldom has two.
func PersonKey(names ...string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(Fold(strings.Join(names, " "))) {
		switch {
		case unicode.Is(unicode.Mn, r), unicode.Is(unicode.Cf, r): // accents, joiners
		case r == '\'', r == '’': // O'Neill, O’Neill and ONeill
		case unicode.IsLetter(r), unicode.IsDigit(r):
			if latin, ok := latinOf[r]; ok {
				b.WriteString(latin)
			} else if letter, ok := likeASCII()[r]; ok {
				b.WriteRune(letter)
			} else {
				b.WriteRune(r)
			}
		default:
			b.WriteByte(' ')
		}
	}
	words := strings.Fields(transliterated.Replace(b.String()))
	slices.Sort(words)
	return strings.Join(words, " ")
}

// transliterated makes the German spelling without umlauts the same as the letters without their dots.
var transliterated = strings.NewReplacer("ae", "a", "oe", "o", "ue", "u")

// latinOf are folded letters that do not decompose, and letters of names that stand for a Latin one. [likeASCII] has the
// others that look like one.
var latinOf = map[rune]string{
	'æ': "a", 'œ': "o", 'ø': "o", 'đ': "d", 'ð': "d", 'ł': "l", 'ħ': "h", 'ı': "i", 'ŧ': "t", 'þ': "th", 'ƒ': "f", 'ŋ': "n",
	// Cyrillic
	'а': "a", 'в': "b", 'с': "c", 'ԁ': "d", 'е': "e", 'һ': "h", 'н': "h", 'і': "i", 'ј': "j", 'к': "k", 'ӏ': "l", 'м': "m", 'о': "o",
	'р': "p", 'ԛ': "q", 'ѕ': "s", 'т': "t", 'ѵ': "v", 'ԝ': "w", 'х': "x", 'у': "y",
	// Greek
	'α': "a", 'β': "b", 'ε': "e", 'η': "n", 'ι': "i", 'κ': "k", 'μ': "m", 'ν': "v", 'ο': "o", 'ρ': "p", 'τ': "t", 'υ': "u", 'χ': "x", 'ζ': "z",
}
