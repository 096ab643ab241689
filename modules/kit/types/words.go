package types

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxWord bounds a word in characters. Only ids and links are longer; their beginning finds them.
	maxWord = 40
	// maxWords bounds the words of one text.
	maxWords = 2000
)

// Words returns the words of a text as the full-text index holds them: letters and digits in lower case without accents, with
// one spelling for each umlaut. "Müller", "Mueller", "muller" and "MULLER" are the same word, and so are "Strasse" and "Straße".
// Each character of scripts without spaces is a word.
//
// The beginning of a text has the beginning of its words, so that a search may look for prefixes. "Mue" is an exception: an e at
// the end of a word, as in "Zoe", is a letter of its own.
func Words(s string) []string {
	var words []string
	var w wordBuilder
	for _, r := range norm.NFKD.String(strings.ToValidUTF8(s, " ")) {
		if len(words) == maxWords {
			return words
		}
		switch {
		case unicode.Is(unicode.Mn, r), isApostrophe(r): // "O'Brien" is one word
			continue
		case isIdeograph(r):
			words = w.end(words)
			words = append(words, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			w.add(r)
		default:
			words = w.end(words)
		}
	}
	return w.end(words)
}

// isApostrophe reports whether a character joins parts of a word.
func isApostrophe(r rune) bool { return r == '\'' || r == '’' || r == 'ʼ' || r == '`' }

// isIdeograph reports whether a character belongs to a script that separates no words.
func isIdeograph(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer)
}

// wordBuilder folds one word.
type wordBuilder struct {
	text        []byte
	characters  int
	last, older rune // the last two characters of the word
	held        bool // an e that belongs to an umlaut if another letter follows
}

func (w *wordBuilder) add(r rune) {
	r = unicode.ToLower(r)
	if replaced, known := spelled[r]; known {
		for _, one := range replaced {
			w.letter(one)
		}
		return
	}
	w.letter(r)
}

// letter appends a character, without the e of an umlaut that is written with two letters.
func (w *wordBuilder) letter(r rune) {
	if w.held = r == 'e' && !w.held && w.umlaut(); w.held || w.characters == maxWord {
		return
	}
	w.text = utf8.AppendRune(w.text, r)
	w.characters++
	w.older, w.last = w.last, r
}

// umlaut reports whether an e after the word would make an umlaut of its last letter. The u of "Bauer", "neu" and "Quelle" is
// none.
func (w *wordBuilder) umlaut() bool {
	switch w.last {
	case 'a', 'o':
		return true
	case 'u':
		return !strings.ContainsRune("aeouq", w.older)
	}
	return false
}

func (w *wordBuilder) end(words []string) []string {
	if w.held && w.characters < maxWord {
		w.text = append(w.text, 'e')
	}
	if w.characters > 0 {
		words = append(words, string(w.text))
	}
	*w = wordBuilder{text: w.text[:0]}
	return words
}

// spelled are letters that have no decomposition.
var spelled = map[rune]string{
	'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'đ': "d", 'ð': "d", 'þ': "th", 'ł': "l", 'ħ': "h", 'ı': "i", 'ŋ': "n", 'ŧ': "t", 'ĸ': "k", 'ſ': "s",
	'ς': "σ",
}

// maxSearchWords bounds the words of a search. Further words are ignored.
const maxSearchWords = 10

// SearchWords returns the words that a search looks for, in one or more readings of the text. Each reading suffices. The last word
// of each may be the beginning of a word. The second reading joins the parts of telephone numbers and ids, as in "079 123 45 67".
// There is no reading of a text without letters and digits.
func SearchWords(text string) (readings [][]string) {
	plain := bounded(Words(text))
	if len(plain) == 0 {
		return nil
	}
	readings = append(readings, plain)
	if joined := bounded(joinedWords(text)); len(joined) > 0 && !slices.Equal(joined, plain) {
		readings = append(readings, joined)
	}
	return readings
}

func bounded(words []string) []string { return words[:min(len(words), maxSearchWords)] }

// joinedWords returns the words of a text in which neighbouring groups of digits are one number.
func joinedWords(text string) (words []string) {
	var number strings.Builder
	flush := func() {
		if digits := phoneDigits(number.String()); digits != "" {
			words = append(words, digits)
		}
		number.Reset()
	}
	for _, field := range strings.Fields(text) {
		if strings.ContainsFunc(field, notInPhone) {
			flush()
			words = append(words, joinedID(field)...)
			continue
		}
		number.WriteString(field)
	}
	flush()
	return words
}

// joinedID returns the words of a text without blanks. An id, or the beginning of one, is one word. If it ends with "ae", the id may go on,
// and then has no e there.
func joinedID(field string) []string {
	if strings.Trim(field, "0123456789abcdefABCDEF-") == "" {
		field = strings.ReplaceAll(field, "-", "")
		if strings.ContainsAny(field, "0123456789") && strings.HasSuffix(strings.ToLower(field), "ae") {
			field = field[:len(field)-1]
		}
	}
	return Words(field)
}

// phoneDigits returns the digits of a telephone number, or of a part of one, without the zeros that stand for a country or an area.
func phoneDigits(text string) string {
	text = strings.ReplaceAll(text, "(0)", "")
	digits := strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
	return strings.TrimLeft(digits, "0")
}

// minPhoneEnd is the length of the shortest end of a telephone number that finds it.
const minPhoneEnd = 4

// PhoneWords returns the words that find a telephone number in E.164 form: all its ends, so that each part of it is the
// beginning of one of them.
func PhoneWords(number string) (words []string) {
	digits := phoneDigits(number)
	for i := 0; i+minPhoneEnd <= len(digits); i++ {
		if i == 0 || digits[i] != '0' { // searches have no leading zeros
			words = append(words, digits[i:])
		}
	}
	return words
}

// IDWords returns the word that finds an id, also by its beginning.
func IDWords(id string) []string { return Words(strings.ReplaceAll(id, "-", "")) }
