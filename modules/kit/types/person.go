package types

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// Identity identifies a person by names and date of birth (YYYY-MM-DD, empty if unknown).
type Identity struct{ FirstName, LastName, DateOfBirth string }

// PersonKey returns the key under which two names may belong to the same person. It is stricter than any search: it
// ignores case, accents, white space, punctuation, the order of the names, compatibility forms such as full-width
// letters, German transliteration (Müller, Mueller), and Cyrillic and Greek letters that look like Latin ones. Different
// people can share a key; one person with two spellings seldom has two.
func PersonKey(names ...string) string {
	words := strings.Fields(transliterated.Replace(plainLetters(strings.Join(names, " "))))
	slices.Sort(words)
	return strings.Join(words, " ")
}

// plainLetters returns a text with its letters and digits folded, without accents, and with a Latin letter for each that
// looks like one. It drops joiners and apostrophes; everything else becomes a space.
func plainLetters(text string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(Fold(text)) {
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
	return b.String()
}

// transliterated makes the German spelling without umlauts the same as the letters without their dots.
var transliterated = strings.NewReplacer("ae", "a", "oe", "o", "ue", "u")

// latinOf maps folded letters that do not decompose, and letters of names, to the Latin letter that they stand for. likeASCII
// has the other letters that look like a Latin one.
var latinOf = map[rune]string{
	'æ': "a", 'œ': "o", 'ø': "o", 'đ': "d", 'ð': "d", 'ł': "l", 'ħ': "h", 'ı': "i", 'ŧ': "t", 'þ': "th", 'ƒ': "f", 'ŋ': "n",
	// Cyrillic
	'а': "a", 'в': "b", 'с': "c", 'ԁ': "d", 'е': "e", 'һ': "h", 'н': "h", 'і': "i", 'ј': "j", 'к': "k", 'ӏ': "l", 'м': "m", 'о': "o",
	'р': "p", 'ԛ': "q", 'ѕ': "s", 'т': "t", 'ѵ': "v", 'ԝ': "w", 'х': "x", 'у': "y",
	// Greek
	'α': "a", 'β': "b", 'ε': "e", 'η': "n", 'ι': "i", 'κ': "k", 'μ': "m", 'ν': "v", 'ο': "o", 'ρ': "p", 'τ': "t", 'υ': "u", 'χ': "x", 'ζ': "z",
}
