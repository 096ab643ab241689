package names

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"kontor/modules/kit/names/latin"
)

// token is a word as it was written, and in Latin letters.
type token struct {
	latin.Word

	text string // the first reading
}

// apostrophes are left out of words: they stand for sounds that other spellings omit.
const apostrophes = "'’‘`´ʼʻʿʾʹ′＇"

// tokens splits a name into words. Letters with dots or slashes between them are one word: "S.A.R.L.", "A/S". mandarin reads all Han
// characters as Chinese.
func tokens(text string, mandarin bool) []token {
	var written, plain []string
	for _, field := range strings.FieldsFunc(truncate(norm.NFKC.String(strings.ToValidUTF8(text, " "))), separates) {
		for _, one := range undot(field) {
			written, plain = append(written, one), append(plain, strings.Map(withoutMarks, one))
		}
	}
	mandarin = mandarin || latin.Chinese(plain)
	var all []token
	for i, one := range plain {
		words := latin.Words(one, mandarin)
		if len(words) == 1 {
			words[0].Written = written[i]
		}
		for _, w := range words {
			all = append(all, token{w, w.Readings[0]})
		}
	}
	return all
}

// truncate returns the first maxText letters.
func truncate(text string) string {
	n := 0
	for i := range text {
		if n == maxText {
			return text[:i]
		}
		n++
	}
	return text
}

// separates reports whether a letter separates words in any case.
func separates(r rune) bool {
	if strings.ContainsRune(apostrophes, r) || r == '.' || r == '/' || r == '%' {
		return false
	}
	return !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.Cf)
}

// undot splits a field at its dots and slashes, unless single letters stand between them.
func undot(field string) []string {
	pieces := strings.FieldsFunc(field, func(r rune) bool { return r == '.' || r == '/' })
	var all []string
	letters := ""
	flush := func() {
		if letters != "" {
			all, letters = append(all, letters), ""
		}
	}
	for _, piece := range pieces {
		if len([]rune(piece)) == 1 {
			letters += piece
			continue
		}
		flush()
		all = append(all, piece)
	}
	flush()
	return all
}

// withoutMarks leaves out invisible letters, apostrophes, and the vowels that some Arabic and Hebrew texts mark.
func withoutMarks(r rune) rune {
	if unicode.Is(unicode.Cf, r) || strings.ContainsRune(apostrophes, r) ||
		unicode.Is(unicode.Mn, r) && (unicode.Is(unicode.Arabic, r) || unicode.Is(unicode.Hebrew, r) || unicode.Is(unicode.Inherited, r)) {
		return -1
	}
	return r
}

// digraphs writes the sounds of transliterations in one way. The order matters: longer texts first.
var digraphs = strings.NewReplacer(
	"tsch", "c", "shch", "s", "sch", "s", "tch", "c", "dzh", "j", "ts", "s", "tz", "s", "cz", "c", "ch", "c", "sh", "s", "zh", "j",
	"dj", "j", "kh", "k", "gh", "g", "ph", "f", "th", "t", "dh", "d", "ck", "k", "hs", "s", "x", "ks", "q", "k", "w", "v", "z", "s",
	"ou", "u", "oo", "u", "ee", "i", "ea", "i", "ei", "i", "ai", "i", "ay", "i", "ey", "i", "yu", "u", "iu", "u", "ya", "a", "ia", "a",
)

// sounds returns the key of a word: the same for most transliterations of one name.
func sounds(text string) string {
	text = digraphs.Replace(text)
	key := make([]byte, 0, len(text))
	for i := range len(text) {
		c := text[i]
		switch c {
		case 'o':
			c = 'u'
		case 'e', 'y', 'j':
			c = 'i'
		case 'h':
			if i > 0 {
				continue
			}
		}
		if len(key) == 0 || key[len(key)-1] != c {
			key = append(key, c)
		}
	}
	return string(key)
}

// consonants returns the letters of a word that a script without vowels would write.
func consonants(text string) string {
	text = digraphs.Replace(text)
	bones := make([]byte, 0, len(text))
	for i := range len(text) {
		c := text[i]
		switch c {
		case 'a', 'e', 'i', 'o', 'u', 'y', 'v':
			continue
		case 'h':
			if i > 0 && i == len(text)-1 {
				continue
			}
		case 'c':
			c = 'k'
		case 'p':
			c = 'b'
		case 'g':
			c = 'j'
		}
		if len(bones) == 0 || bones[len(bones)-1] != c {
			bones = append(bones, c)
		}
	}
	return string(bones)
}

// distance returns the Damerau distance of two short texts, in its restricted form: letters inserted, deleted, replaced, or exchanged
// with the next one. It returns limit+1 as soon as the distance is more than limit.
func distance(a, b string, limit int) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(a)-len(b) > limit {
		return limit + 1
	}
	if len(b) == 0 {
		return len(a)
	}
	const longest = 128
	if len(a) > longest {
		return limit + 1
	}
	var rows [3][longest + 2]uint8 // bytes: to clear them takes longer than to compare most words
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = uint8(j)
	}
	beyond := uint8(limit + 1) //nolint:gosec // G115: limits are small
	for i := 1; i <= len(a); i++ {
		from, to := max(1, i-limit), min(len(b), i+limit) // all others are beyond the limit
		row[from-1], row[to+1] = beyond, beyond
		if from == 1 {
			row[0] = uint8(i)
		}
		least := row[from-1]
		for j := from; j <= to; j++ {
			d := last[j-1]
			if a[i-1] != b[j-1] {
				d = min(d, last[j], row[j-1]) + 1
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if least > beyond-1 {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return min(int(last[len(b)]), limit+1)
}
