// Package latin writes words of other scripts in Latin letters, so that names of different scripts can be compared.
//
// Most scripts have several standards, and one name has a spelling in each. [Words] therefore returns several readings of a word: the first
// is that of Unidecode's tables where those are usable, and the others follow the standard of a language. The standards are:
//
//   - Cyrillic: BGN/PCGN for Russian with ё, the Latin alphabets of Serbian and Macedonian (ISO 9 without marks), the Ukrainian Resolution 55
//     of 2010, and the Bulgarian Transliteration Act of 2009
//   - Greek: ELOT 743
//   - Arabic: also with the sounds of Persian (BGN/PCGN), and without a joined article
//   - Hangul: the Revised Romanization of 2000, McCune–Reischauer without marks, and the usual spellings of family names
//   - Thai: RTGS. Ethiopic: BGN/PCGN. Burmese: BGN/PCGN of 1970
//   - Han: Mandarin, for names that can be Chinese. Others have no reading: they match the same characters
//
// Scripts without a table here are read by Unidecode.
package latin

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mozillazg/go-unidecode"
	"golang.org/x/text/unicode/norm"

	"kontor/modules/kit/types"
)

// Word is a word, or a part of one that stands for itself, such as the family name in a Korean name.
type Word struct {
	Written  string
	Readings []string // lower-case letters and digits of ASCII; at least one
	Abjad    bool     // the script omits vowels, or writes them in a way that spellings do not follow
	Vowels   bool     // an abjad that writes the vowels at the beginning and the end of a word
	Syllable bool     // a syllable or a few, of which no letter differs
	Exact    bool     // the reading is a code for the characters: only the same ones match
}

// Words returns the words in a text without spaces and punctuation. A text without letters and digits has none. chinese says whether Han
// characters can be a Chinese name ([Chinese]).
func Words(text string, chinese bool) []Word {
	if plain, ascii := plainASCII(text); ascii {
		return wordsOf(text, plain)
	}
	switch scripts := scriptsOf(text); {
	case len(scripts) > 1:
		return mixed(text, scripts)
	case len(scripts) == 0:
		return wordsOf(text, decode(text))
	default:
		return ofScript(text, scripts[0], chinese)
	}
}

func ofScript(text string, script *unicode.RangeTable, chinese bool) []Word {
	switch script {
	case unicode.Latin:
		return wordsOf(text, latinReadings(text)...)
	case unicode.Cyrillic:
		return wordsOf(text, append(cyrillicReadings(text), lookAlike(text))...)
	case unicode.Greek:
		return wordsOf(text, decode(text), greek(text), lookAlike(text))
	case unicode.Arabic:
		return arabicWords(text)
	case unicode.Hebrew:
		return semitic(text, "אע", decode(text))
	case unicode.Hangul:
		return hangulWords(text)
	case unicode.Thai:
		return abjads(text, thaiReadings(text)...)
	case unicode.Ethiopic:
		return wordsOf(text, ethiopicReadings(text)...)
	case unicode.Myanmar:
		return burmeseWords(text)
	case unicode.Han:
		return hanWords(text, chinese)
	default:
		return wordsOf(text, decode(text), lookAlike(text))
	}
}

// wordsOf returns the word with its distinct readings.
func wordsOf(written string, readings ...string) []Word {
	w := Word{Written: written}
	for _, r := range readings {
		if r != "" && !slices.Contains(w.Readings, r) {
			w.Readings = append(w.Readings, r)
		}
	}
	if len(w.Readings) == 0 {
		return nil
	}
	return []Word{w}
}

func abjads(written string, readings ...string) []Word {
	words := wordsOf(written, readings...)
	for i := range words {
		words[i].Abjad = true
	}
	return words
}

// semitic returns a word of an abjad in which words begin with a vowel if they begin with one of some letters.
func semitic(written, vowels string, readings ...string) []Word {
	first, _ := utf8.DecodeRuneInString(written)
	for i, r := range readings {
		if strings.ContainsRune(vowels, first) && r != "" && !strings.ContainsRune("aeiou", rune(r[0])) {
			readings[i] = "a" + r
		}
	}
	words := abjads(written, readings...)
	for i := range words {
		words[i].Vowels = true
	}
	return words
}

// plainASCII returns the letters and digits of a text in lower case, and whether it is ASCII.
func plainASCII(text string) (string, bool) {
	plain := make([]byte, 0, len(text))
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 0x80:
			return "", false
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			plain = append(plain, c)
		case 'A' <= c && c <= 'Z':
			plain = append(plain, c+'a'-'A')
		}
	}
	return string(plain), true
}

// decode reads a text by Unidecode's tables.
func decode(text string) string {
	plain, _ := plainASCII(unidecode.Unidecode(text))
	return plain
}

// by reads a text by a table, and by Unidecode's for letters that it lacks.
func by(text string, table map[rune]string) string {
	var b strings.Builder
	for _, r := range text {
		if latin, known := table[unicode.ToLower(r)]; known {
			b.WriteString(latin)
		} else {
			b.WriteString(decode(string(r)))
		}
	}
	return b.String()
}

// pairs reads a table from a text of letters, each followed by its reading. "-" stands for none.
func pairs(text string) map[rune]string {
	table := map[rune]string{}
	fields := strings.Fields(text)
	for i := 0; i+1 < len(fields); i += 2 {
		table[[]rune(fields[i])[0]] = strings.TrimPrefix(fields[i+1], "-")
	}
	return table
}

// with returns a copy of a table with other readings.
func with(table map[rune]string, text string) map[rune]string {
	all := pairs(text)
	for r, latin := range table {
		if _, other := all[r]; !other {
			all[r] = latin
		}
	}
	return all
}

// umlauts are the letters that two Latin spellings write in two ways.
var umlauts = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue", "ø", "oe", "å", "aa", "đ", "dj", "ě", "ie", "ñ", "ny", "ł", "w")

func latinReadings(text string) []string {
	return []string{decode(text), decode(umlauts.Replace(strings.ToLower(text))), lookAlike(text)}
}

var elot = pairs(`α a β v γ g δ d ε e ζ z η i θ th ι i κ k λ l μ m ν n ξ x ο o π p ρ r σ s ς s τ t υ y φ f χ ch ψ ps ω o`)

var elotGroups = strings.NewReplacer("ου", "ou", "αυ", "av", "ευ", "ev", "γγ", "ng", "γκ", "gk", "γξ", "nx", "γχ", "nch", "μπ", "b", "ντ", "nt")

// greek reads a word by ELOT 743.
func greek(text string) string {
	return by(elotGroups.Replace(unmarked(strings.ToLower(text))), elot)
}

// unmarked returns a text without accents.
func unmarked(text string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(text)))
}

// lookAlike reads the letters as the Latin ones that they look like (UTS #39). It is empty if a letter looks like none.
func lookAlike(text string) string {
	like := types.LookAlike(likeLatin(text))
	if plain, ascii := plainASCII(like); ascii {
		return plain
	}
	return ""
}

// capitals are letters whose capital form alone looks like a Latin letter (confusables.txt of UTS #39).
var capitals = strings.NewReplacer("В", "B", "Н", "H", "К", "K", "М", "M", "Т", "T", "Β", "B", "Κ", "K", "Μ", "M", "Τ", "T", "Ζ", "Z",
	"в", "b", "н", "h", "к", "k", "м", "m", "т", "t", "κ", "k", "τ", "t", "β", "b")

func likeLatin(text string) string { return unmarked(types.LatinCapitals(capitals.Replace(text))) }

// likeCyrillic has the Cyrillic letters for the Latin ones that look like them.
var likeCyrillic = strings.NewReplacer("A", "А", "B", "В", "C", "С", "E", "Е", "H", "Н", "I", "І", "J", "Ј", "K", "К", "M", "М", "O", "О", "P", "Р",
	"S", "Ѕ", "T", "Т", "X", "Х", "Y", "У", "a", "а", "c", "с", "e", "е", "i", "і", "j", "ј", "k", "к", "o", "о", "p", "р", "s", "ѕ", "x", "х", "y", "у")

// mixed reads a word of several scripts: letter by letter, as the Latin word that it looks like, and as the Cyrillic one.
func mixed(text string, scripts []*unicode.RangeTable) []Word {
	if slices.Contains(scripts, unicode.Han) {
		return exact(text) // such as kana and Han in a Japanese name
	}
	all := []string{decode(text), decode(types.LookAlike(likeLatin(text)))}
	if slices.Contains(scripts, unicode.Cyrillic) {
		all = append(all, cyrillicReadings(likeCyrillic.Replace(text))...)
	}
	return wordsOf(text, all...)
}

// known are the scripts with an alphabet that names are written in, those of kana as one.
var known = []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Arabic, unicode.Hebrew, unicode.Hangul, unicode.Thai,
	unicode.Ethiopic, unicode.Myanmar, unicode.Han, unicode.Hiragana, unicode.Armenian, unicode.Georgian, unicode.Devanagari}

// scriptsOf returns the scripts of the letters.
func scriptsOf(text string) (all []*unicode.RangeTable) {
	for _, r := range text {
		if script := scriptOf(r); script != nil && !slices.Contains(all, script) {
			all = append(all, script)
		}
	}
	return all
}

// scriptOf returns the script of a letter, and nil for digits, marks and signs that all scripts share.
func scriptOf(r rune) *unicode.RangeTable {
	if r < unicode.MaxASCII {
		if unicode.IsLetter(r) {
			return unicode.Latin
		}
		return nil
	}
	if unicode.Is(unicode.Katakana, r) {
		return unicode.Hiragana
	}
	for _, script := range known {
		if unicode.Is(script, r) {
			return script
		}
	}
	if !unicode.IsLetter(r) || unicode.In(r, unicode.Common, unicode.Inherited) {
		return nil
	}
	for _, script := range unicode.Scripts {
		if unicode.Is(script, r) {
			return script
		}
	}
	return nil
}

// Mixed reports whether a word has letters of scripts that no language writes in one word. Japanese has Han and kana, Korean Han and Hangul.
func Mixed(word string) bool {
	if _, ascii := plainASCII(word); ascii {
		return false
	}
	scripts := scriptsOf(word)
	if len(scripts) == 2 && slices.Contains(scripts, unicode.Han) {
		return !slices.Contains(scripts, unicode.Hiragana) && !slices.Contains(scripts, unicode.Hangul)
	}
	return len(scripts) > 1
}

// Alphabetic reports whether a word begins with a letter of an alphabet in which no syllable or word is a single letter.
func Alphabetic(word string) bool {
	for _, r := range word {
		return slices.Contains(known[:5], scriptOf(r))
	}
	return false
}
