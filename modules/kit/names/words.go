package names

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// wordList holds the words with a meaning of their own, a group a line: the class, the canonical word, and its variants.
//
//go:embed words.txt
var wordList string

// longForm is the length from which a misspelled organisation type is recognized.
const longForm = 10

// maxPhrase is the number of words of the longest variant.
const maxPhrase = 6

// meaning is what a word or phrase stands for.
type meaning struct {
	class class
	text  string
}

// vocabulary is the table of words, by folded text.
type vocabulary struct {
	phrases map[string]meaning
	nick    map[string][]string // a name and the names that it is short for, or that are short for it
	spelled map[string]meaning  // organisation types without spaces
	long    []string            // organisation types of one long word, which are often misspelled
}

var classes = map[string]class{"form": form, "title": title, "particle": particle, "common": common, "number": number, "same": word}

var words = sync.OnceValue(func() vocabulary {
	v := vocabulary{phrases: map[string]meaning{}, nick: map[string][]string{}, spelled: map[string]meaning{}}
	for line := range strings.Lines(wordList) {
		name, variants, found := strings.Cut(strings.TrimSpace(line), ":")
		if !found || strings.HasPrefix(name, "#") {
			continue
		}
		var folded []string
		for variant := range strings.SplitSeq(variants, ",") {
			folded = append(folded, foldPhrase(variant))
		}
		for _, text := range folded {
			if name == "nick" {
				v.nick[folded[0]] = append(v.nick[folded[0]], text)
				if text != folded[0] {
					v.nick[text] = append(v.nick[text], folded[0])
				}
				continue
			}
			if _, taken := v.phrases[text]; !taken {
				v.phrases[text] = meaning{classes[name], folded[0]}
				if joined := strings.ReplaceAll(text, " ", ""); classes[name] == form && len(joined) > 2 {
					v.spelled[joined] = v.phrases[text]
				}
				if classes[name] == form && len(text) >= longForm && !strings.Contains(text, " ") {
					v.long = append(v.long, text)
				}
			}
		}
	}
	return v
})

func foldPhrase(text string) string {
	var all []string
	for _, t := range tokens(text, true) {
		all = append(all, t.text)
	}
	return strings.Join(all, " ")
}

// readParts splits a name into its parts.
func readParts(text string, kind Kind) []part {
	rest := tokens(text, kind == Organisation)
	v := words()
	var parts []part
	for len(rest) > 0 && len(parts) < maxParts {
		p, used := v.read(rest, kind, parts)
		if last := len(parts) - 1; p.class == number && last >= 0 && joinsNumber(parts[last], p) {
			parts[last].text = sum(parts[last].text, p.text)
			parts[last].written += " " + p.written
		} else {
			parts = append(parts, p)
		}
		rest = rest[used:]
	}
	finish(parts)
	return parts
}

// read reads the longest phrase at the beginning of the words, and returns how many words it has. before are the parts before them.
func (v vocabulary) read(rest []token, kind Kind, before []part) (p part, used int) {
	most := min(maxPhrase, len(rest))
	if rest[0].Syllable && kind == Person {
		most = 0 // it is no particle or title that sounds the same
	}
	for n := most; n > 0; n-- {
		var b strings.Builder
		for i, t := range rest[:n] {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(t.text)
		}
		m, found := v.phrases[b.String()]
		if !found && n > 1 && kind != Person { // "Sp.z.o.o", "G m b H"
			m, found = v.spelled[strings.ReplaceAll(b.String(), " ", "")]
			found = found && longest(rest[:n]) < 4
		}
		lettersOfName := kind == Person && m.class == form && n > 1 && longest(rest[:n]) == 1
		if !found || lettersOfName || !applies(m.class, kind, n, len(rest)) || m.class == particle && isInitial(rest, before) {
			continue
		}
		p = part{written: rest[0].Written, plain: rest[0].text, text: m.text, class: m.class}
		for _, t := range rest[1:n] {
			p.written += " " + t.Written
			p.plain += t.text
		}
		return p, n
	}
	t := rest[0]
	p = part{written: t.Written, plain: t.text, text: t.text, abjad: t.Abjad, vowels: t.Vowels, strict: t.Syllable, exact: t.Exact}
	for _, r := range t.Readings[1:] {
		p.others = append(p.others, reading{text: r})
	}
	if n, isNumber := readNumber(t, kind, len(before) == 0); isNumber {
		p.class, p.text = number, n
	} else if m, isForm := v.misspelled(t.text, kind); isForm {
		p.class, p.text = form, m
	} else if kind != Organisation {
		p.plain = unleet(t.text)
		p.text = p.plain
	}
	return p, 1
}

// isInitial reports whether the first word is one letter that is an initial rather than "b." for bin: it begins the name, or stands beside
// another letter.
func isInitial(words []token, before []part) bool {
	if len(words[0].text) > 1 {
		return false
	}
	return len(before) == 0 || len(before[len(before)-1].plain) == 1 || len(words) > 1 && len(words[1].text) == 1
}

// longest returns the length of the longest word.
func longest(words []token) int {
	n := 0
	for _, w := range words {
		n = max(n, len(w.text))
	}
	return n
}

// misspelled returns the organisation type that a long word means.
func (v vocabulary) misspelled(text string, kind Kind) (string, bool) {
	if kind == Person || len(text) < longForm {
		return "", false
	}
	for _, long := range v.long {
		if distance(text, long, 2) <= 2 {
			return v.phrases[long].text, true
		}
	}
	return "", false
}

// applies reports whether a class makes sense for a kind of name. Forms of people are noise; common words are names of people.
func applies(c class, kind Kind, n, rest int) bool {
	switch c {
	case common, number:
		return kind != Person
	case title:
		return kind != Organisation
	case particle:
		return rest > 0
	default:
		return n > 0
	}
}

// readNumber reads digits, ordinals as "1st", and Roman numbers, which do not begin a name and are none of people.
func readNumber(t token, kind Kind, first bool) (string, bool) {
	digits := strings.TrimRight(t.text, "stndrh")
	if digits != "" && strings.Trim(digits, "0123456789") == "" && len(t.text)-len(digits) <= 2 {
		if trimmed := strings.TrimLeft(digits, "0"); trimmed != "" {
			return trimmed, true
		}
		return "0", true
	}
	if kind == Person || first || t.Written != strings.ToUpper(t.Written) {
		return "", false
	}
	if n, isRoman := romans[t.text]; isRoman {
		return strconv.Itoa(n), true
	}
	return "", false
}

var romans = map[string]int{
	"i": 1, "ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "x": 10,
	"xi": 11, "xii": 12, "xiii": 13, "xiv": 14, "xv": 15, "xvi": 16, "xvii": 17, "xviii": 18, "xix": 19, "xx": 20,
}

// joinsNumber reports whether two parts are the tens and the units of one number.
func joinsNumber(a, b part) bool {
	if a.class != number || len(a.text) != 2 || a.text[1] != '0' || len(b.text) != 1 {
		return false
	}
	return strings.Trim(a.written, "0123456789") != "" // "Forty 4", but not "40 4"
}

func sum(a, b string) string {
	x, _ := strconv.Atoi(a) // both are short numbers
	y, _ := strconv.Atoi(b)
	return strconv.Itoa(x + y)
}

var leet = strings.NewReplacer("0", "o", "1", "i", "3", "e", "4", "a", "5", "s", "7", "t", "9", "g")

// unleet replaces digits that stand for letters in a word with letters.
func unleet(text string) string {
	if strings.Trim(text, "0123456789") == "" || !strings.ContainsAny(text, "0123456789") {
		return text
	}
	return leet.Replace(text)
}

// finish sets what follows from the text of each part.
func finish(parts []part) {
	for i := range parts {
		p := &parts[i]
		p.weight = weigh(p.class, len(p.text))
		if p.class == word || p.class == common || p.class == particle {
			p.key, p.bones = keysOf(p.plain, p.exact)
			for k := range p.others {
				p.others[k].key, p.others[k].bones = keysOf(p.others[k].text, p.exact)
			}
		}
	}
}

func keysOf(text string, exact bool) (key, bones string) {
	if exact {
		return "", ""
	}
	return sounds(text), consonants(text)
}

// weigh returns the weight of a part before its rareness is known.
func weigh(c class, length int) float64 {
	switch c {
	case form, title, particle:
		return 0.1
	case common:
		return 0.5
	case number:
		return 0.6
	default:
		return min(1, 0.3+0.15*float64(length))
	}
}
