package types

import (
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// NoFirstName is the first name of people who have one name only, which is their last name then.
const NoFirstName = "-"

// FirstName returns the first name of a person: a dash of any kind stands for none.
func FirstName(s string) string {
	if r, size := utf8.DecodeRuneInString(s); size > 0 && size == len(s) && (unicode.Is(unicode.Pd, r) || r == '\u2212') {
		return NoFirstName
	}
	return s
}

// FullName returns the names of a person in one text.
func FullName(first, last string) string {
	if first == "" || first == NoFirstName {
		return last
	}
	return strings.TrimSpace(first + " " + last)
}

// MaxDisplayName is the longest display name in characters.
const MaxDisplayName = 100

// maxMarks is how many combining marks may follow one letter. Vietnamese and Hebrew need two and three.
const maxMarks = 3

// blankBraille is a symbol that is shown as a space.
const blankBraille = '\u2800'

// ParseDisplayName parses the name that a person is shown by. It trims the name, makes one space of each run of white
// space, and returns it in normal form C. It rejects an empty name with RuleRequired, more than [MaxDisplayName] characters
// with RuleTooLong, and control characters with RuleText. It rejects with RuleDisplayName what cannot be seen or reorders
// text (joiners, bidirectional controls, variation selectors), characters without a meaning to all readers (private use,
// unassigned), stacks of combining marks, and names without a letter or digit.
func ParseDisplayName(s string) (string, error) {
	name, err := Line(s, MaxDisplayName)
	switch {
	case err != nil:
		return "", err
	case name == "":
		return "", RuleRequired
	}
	name = strings.Join(strings.Fields(name), " ")
	marks, named := maxMarks, false // a mark must follow a letter
	for _, r := range name {
		switch {
		case isInvisible(r), r == blankBraille, !unicode.IsPrint(r):
			return "", RuleDisplayName
		case unicode.Is(unicode.M, r):
			if marks++; marks > maxMarks {
				return "", RuleDisplayName
			}
		case unicode.IsLetter(r), unicode.IsDigit(r):
			marks, named = 0, true
		default:
			marks = maxMarks
		}
	}
	if !named {
		return "", RuleDisplayName
	}
	return name, nil
}

// SearchKey returns the key under which names are searched without regard to case and accents: "Müller", "MULLER" and
// "muller" share one.
func SearchKey(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFD.String(Fold(s))))
}

// NameSkeleton returns the key that names share when readers may take one for the other. It extends the skeletons of UTS
// #39. It ignores case, accents, white space, punctuation, the order of the words, and German transliteration. Letters,
// digits and groups of them that look alike count as one (0 and o, 1, i and l, rn and m, Cyrillic and Latin а).
//
// "Anna Keller", "keller, anna", "AnnaKeller" and "KellerAnna" share one. Names of three and more words that are written
// without spaces are recognised in half of their orders only. Short words that are rotations of each other, such as Ian
// and Nia, share one, too.
func NameSkeleton(name string) string {
	words := skeletonWords(name)
	slices.Sort(words)
	return skeleton(strings.Join(words, ""))
}

// WrittenSkeleton is [NameSkeleton] with the words in the order in which they are written. It equals the skeleton of a
// name whose letters are separated by spaces in other places.
func WrittenSkeleton(name string) string { return skeleton(strings.Join(skeletonWords(name), "")) }

// LatinCapitals returns a name with Latin letters for those that look like one only before they are folded, such as Greek Η:
// its small letter η looks like n. A reader may take the name for either result, so callers must compare both.
func LatinCapitals(name string) string {
	if isASCII(name) {
		return name
	}
	table := likeLatinCapitals()
	latin := strings.Map(func(r rune) rune {
		if letter, ok := table[r]; ok {
			return letter
		}
		return r
	}, norm.NFKD.String(name))
	return norm.NFC.String(latin)
}

// skeletonWords returns the words of a name without punctuation and accents, with one form for characters that look alike.
func skeletonWords(name string) []string {
	spaced := strings.Map(func(r rune) rune {
		switch {
		case r == '|':
			return 'l'
		case unicode.IsPunct(r), unicode.IsSymbol(r) && !isLikeASCII(r):
			return -1
		}
		return r
	}, compatibilityLetters.Replace(norm.NFKC.String(name)))
	return strings.Fields(lookAlikeGroups.Replace(plainLetters(spaced)))
}

func isLikeASCII(r rune) bool { _, like := likeASCII()[r]; return like }

// compatibilityLetters writes letters that normal form KC leaves: small capitals, and symbols that stand for a letter.
var compatibilityLetters = strings.NewReplacer("ᴀ", "a", "ʙ", "b", "ᴄ", "c", "ᴅ", "d", "ᴇ", "e", "ꜰ", "f", "ɢ", "g", "ʜ", "h", "ɪ", "i", "ᴊ", "j",
	"ᴋ", "k", "ʟ", "l", "ᴍ", "m", "ɴ", "n", "ᴏ", "o", "ᴘ", "p", "ꞯ", "q", "ʀ", "r", "ꜱ", "s", "ᴛ", "t", "ᴜ", "u", "ᴠ", "v", "ᴡ", "w", "ʏ", "y",
	"ᴢ", "z", "℮", "e", "∂", "d", "ℓ", "l", "∑", "e", "№", "no")

// lookAlikeGroups writes characters and groups that look alike in one way. Each character is replaced alone, so that the
// result does not depend on where words are joined.
var lookAlikeGroups = strings.NewReplacer("0", "o", "1", "l", "i", "l", "m", "rn", "w", "vv")

// skeleton makes one text of all rotations of a text, which is what joined words become in another order, and drops the e
// of German transliterations (ae, oe, ue).
func skeleton(joined string) string {
	letters := []rune(joined)
	plain := make([]rune, 0, len(letters))
	for i, r := range letters {
		before := letters[(i+len(letters)-1)%len(letters)]
		if r == 'e' && strings.ContainsRune("aou", before) {
			continue
		}
		plain = append(plain, r)
	}
	return string(leastRotation(plain))
}

// leastRotation returns the rotation of a text that comes first in the order of its characters.
func leastRotation(text []rune) []rune {
	n := len(text)
	best := 0
	for i := 1; i < n; i++ {
		for k := range n {
			a, b := text[(i+k)%n], text[(best+k)%n]
			if a < b {
				best = i
			}
			if a != b {
				break
			}
		}
	}
	return append(slices.Clone(text[best:]), text[:best]...)
}

// ContainsWords reports whether a name contains one of the words, alone or joined with others of them, whatever its case,
// accents, spaces and look-alike characters: "Kontor Support", "K0ntorSupport" and "S u p p o r t" contain words of
// {kontor, support}, "Kontorowicz" contains none.
func ContainsWords(name string, words ...string) bool {
	joined, ends := "", map[int]bool{0: true} // where words of the name begin and end
	for _, word := range skeletonWords(name) {
		joined += word
		ends[len(joined)] = true
	}
	patterns := make([]string, len(words))
	for i, word := range words {
		patterns[i] = strings.Join(skeletonWords(word), "")
	}
	for start := range ends {
		reached := map[int]bool{start: true}
		for at := start; at < len(joined); at++ {
			if !reached[at] {
				continue
			}
			for _, pattern := range patterns {
				if strings.HasPrefix(joined[at:], pattern) {
					if ends[at+len(pattern)] {
						return true
					}
					reached[at+len(pattern)] = true
				}
			}
		}
	}
	return false
}

// maxContained is how many words of a name are compared in parts.
const maxContained = 12

// ContainedSkeletons returns the skeletons of the parts of a name that are two words or more, but not of the whole name: "Frau Lena
// Brunner" contains "Lena Brunner". Of long names it looks at the first [maxContained] words.
func ContainedSkeletons(name string) []string {
	var found []string
	words := separateWords(name)
	eachPart(words, func(part []string) {
		if len(part) > 1 && len(part) < len(words) {
			found = append(found, skeleton(strings.Join(slices.Sorted(slices.Values(part)), "")), skeleton(strings.Join(part, "")))
		}
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// GluedSkeletons returns the skeletons of what stands in a name without a space before or behind it: single words ("LenaBrunner
// Zürich"), and what remains when titles are cut from the beginning or the end of words ("FrauLenaBrunner", "lenabrunner-advisor").
// Callers must compare them with names of two words or more only: Frauke is not the name Ke with a title.
//
// Short titles begin ordinary names, such as Drago and Frida. They are cut where a capital shows the seam ("DrLena Brunner"), and from
// names of one word.
func GluedSkeletons(name string, titles ...string) []string {
	var found []string
	words := separateWords(name)
	if seams := separateWords(showSeams(name, titles)); len(seams) > len(words) {
		eachPart(seams, func(part []string) {
			if len(part) < len(seams) {
				found = append(found, skeleton(strings.Join(part, "")))
			}
		})
	}
	if len(words) > 1 {
		for _, word := range words {
			found = append(found, skeleton(word))
		}
	}
	long := make([]string, 0, len(titles))
	for _, title := range titles {
		if len(words) == 1 || !isShort(title) {
			long = append(long, strings.Join(skeletonWords(title), ""))
		}
	}
	eachPart(words, func(part []string) {
		for _, rest := range withoutTitles(strings.Join(part, ""), long) {
			found = append(found, skeleton(rest))
		}
	})
	slices.Sort(found)
	return slices.Compact(found)
}

// isShort reports whether a title has so few letters that ordinary names begin with it.
func isShort(title string) bool { return utf8.RuneCountInString(title) < 4 }

// separateWords returns the first words of a name, with one form for characters that look alike.
func separateWords(name string) []string {
	words := skeletonWords(strings.Map(func(r rune) rune {
		if strings.ContainsRune(",/()|·;:", r) {
			return ' '
		}
		return r
	}, name))
	return words[:min(len(words), maxContained)]
}

// eachPart calls f with each run of words.
func eachPart(words []string, f func(part []string)) {
	for from := range words {
		for to := from + 1; to <= len(words); to++ {
			f(words[from:to])
		}
	}
}

// showSeams adds a space where a title meets a capital letter without one: "DrLena", "BrunnerDr".
func showSeams(name string, titles []string) string {
	fields := strings.Fields(name)
	for i, word := range fields {
		for _, title := range titles {
			size := len(title)
			if size >= len(word) {
				continue
			}
			if cut := len(word) - size; strings.EqualFold(word[:size], title) && isSeam(word, size) {
				fields[i] = word[:size] + " " + word[size:]
			} else if strings.EqualFold(word[cut:], title) && isSeam(word, cut) {
				fields[i] = word[:cut] + " " + word[cut:]
			}
		}
	}
	return strings.Join(fields, " ")
}

// isSeam reports whether a word has punctuation at a position, or a small letter before and a capital behind it.
func isSeam(word string, at int) bool {
	before, _ := utf8.DecodeLastRuneInString(word[:at])
	behind, _ := utf8.DecodeRuneInString(word[at:])
	return unicode.IsPunct(before) || unicode.IsPunct(behind) || unicode.IsUpper(behind) && unicode.IsLower(before)
}

// withoutTitles returns what remains of a text when one or more titles are cut from its ends.
func withoutTitles(text string, titles []string) []string {
	found := []string{text}
	for i := 0; i < len(found); i++ {
		for _, title := range titles {
			for _, rest := range []string{strings.TrimPrefix(found[i], title), strings.TrimSuffix(found[i], title)} {
				if rest != "" && !slices.Contains(found, rest) {
					found = append(found, rest)
				}
			}
		}
	}
	return found[1:]
}

// likeASCII maps a character to the letter of ASCII that it looks like.
var likeASCII = sync.OnceValue(func() map[rune]rune { return lettersOf(lookAlikes) })

// likeLatinCapitals maps a character to the Latin letter that it looks like before it is folded.
var likeLatinCapitals = sync.OnceValue(func() map[rune]rune { return lettersOf(capitalLookAlikes) })

func lettersOf(lookAlikes map[byte]string) map[rune]rune {
	table := make(map[rune]rune, 512)
	for letter, characters := range lookAlikes {
		for _, r := range characters {
			table[r] = rune(letter)
		}
	}
	return table
}

// LookAlike returns the key that texts share when they look alike: folded, in normal form KC, without invisible characters, and
// with the ASCII letter for every character that looks like one. ASCII texts are only folded, so that l and 1 stay different.
// LookAlike of a key is the key itself.
func LookAlike(s string) string {
	if isASCII(s) {
		return Fold(s)
	}
	table := likeASCII()
	for range maxFoldRounds {
		next := Fold(norm.NFKC.String(strings.Map(func(r rune) rune {
			if isInvisible(r) {
				return -1
			}
			if letter, ok := table[r]; ok {
				return letter
			}
			return r
		}, Fold(norm.NFKC.String(s)))))
		if next == s {
			break
		}
		s = next
	}
	return s
}

// isInvisible reports whether a character is not displayed (Unicode, Default_Ignorable_Code_Point).
func isInvisible(r rune) bool {
	return unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// LookAlikeKey is like [Email.Key]. Addresses that look alike share it.
func (e Email) LookAlikeKey() string {
	key := e.Key()
	local, domain, found := strings.Cut(key, "@")
	if !found {
		return LookAlike(key)
	}
	if shown, err := domainRules.ToUnicode(domain); err == nil {
		if like := LookAlike(shown); like != shown {
			domain = like
			if ascii, err := domainRules.ToASCII(like); err == nil {
				domain = ascii
			}
		}
	}
	return LookAlike(local) + "@" + domain
}

// lookAlikes maps ASCII letters to the characters that look like them. It is a part of confusables.txt, the data of Unicode
// Technical Standard 39 (Unicode Security Mechanisms), version 15.0.0, as in ICU 72. It has the characters that folding and
// normal form KC leave unchanged, and whose folded skeleton is one ASCII letter. The skeleton "rn" is an m there. Copyright
// © 1991-2022 Unicode, Inc., under the Unicode License v3 (https://www.unicode.org/license.txt).
var lookAlikes = map[byte]string{
	'a': "\u0251\u03b1\u0430\u13aa\u15c5\ua4ee\U000102a0\U00016f40",
	'b': "\u13cf\u13f4\u1472\u15af\u15f7\ua4d0\U00010282\U000102a1\U00010301",
	'c': "\u0441\u13df\u1d04\u2ca5\ua4da\U000102a2\U00010302\U0001043d\U0001051c\U000118e9\U000118f2",
	'd': "\u0501\u13a0\u13e7\u146f\u15de\u15ea\ua4d2\ua4d3",
	'e': "\u0435\u04bd\u13ac\u2d39\ua4f0\uab32\U00010286",
	'f': "\u0584\u15b4\u1e9d\ua4dd\ua799\uab35\U00010287\U000102a5\U00010525\U000118c2",
	'g': "\u018d\u0261\u0581\u13c0\u13f3\u1d83\ua4d6",
	'h': "\u04bb\u0570\u13bb\u13c2\u157c\ua4e7\U000102cf",
	'i': "\u0131\u0269\u026a\u03b9\u0456\u04cf\u13a5\ua647\U000118c3",
	'j': "\u03f3\u0458\u13ab\u148d\ua4d9",
	'k': "\u13e6\u16d5\ua4d7\U00010518",
	'l': "\u01c0\u05d5\u05df\u0627\u0661\u06f1\u07ca\u13de\u14aa\u16c1\u2d4f\ua4e1\ua4f2\U0001028a\U00010309\U00010320\U00010526\U00016f16\U00016f28\U0001e8c7",
	'm': "\u13b7\u15f0\u16d6\ua4df\U000102b0\U00010311\U00011700\U000118e3",
	'n': "\u0578\u057c\ua4e0\U00010513",
	'o': "\u03bf\u03c3\u043e\u0585\u05e1\u0647\u0665\u06be\u06c1\u06d5\u06f5\u07c0\u0966\u09e6\u0a66\u0ae6\u0b20\u0b66\u0be6\u0c02\u0c66\u0c82\u0ce6\u0d02\u0d20\u0d66\u0d82\u0e50\u0ed0\u101d\u1040\u10ff\u12d0\u1d0f\u1d11\u2c9f\u2d54\u3007\ua4f3\uab3d\U00010292\U000102ab\U0001042c\U000104ea\U00010516\U000114d0\U000118c8\U000118d7\U000118e0",
	'p': "\u03c1\u0440\u13e2\u146d\u2ca3\ua4d1\U00010295",
	'q': "\u051b\u0563\u0566\u2d55",
	'r': "\u0433\u13a1\u13d2\u1587\u1d26\u2c85\ua4e3\uab47\uab48\U00016f35",
	's': "\u01bd\u0455\u13d5\u13da\ua4e2\ua731\U00010296\U00010448\U000118c1\U00016f3a",
	't': "\u13a2\ua4d4\U00010297\U000102b1\U00010315\U00016f0a",
	'u': "\u028b\u03c5\u057d\u1200\u144c\u1d1c\ua4f4\ua79f\uab4e\uab52\U000104f6\U000118d8\U00016f42",
	'v': "\u03bd\u0475\u05d8\u0667\u06f7\u13d9\u142f\u1d20\u2d38\ua4e6\ua6df\U0001051d\U00011706\U000118c0\U00016f08",
	'w': "\u026f\u0461\u051d\u0561\u13b3\u13d4\u1d21\ua4ea\U0001170a\U0001170e\U0001170f\U000118e6\U000118ef",
	'x': "\u0445\u1541\u157d\u16b7\u2d5d\ua4eb\U00010290\U000102b4\U00010317\U00010322\U00010527\U000118ec",
	'y': "\u0263\u028f\u03b3\u0443\u04af\u10e7\u13a9\u13bd\u1d8c\u1eff\ua4ec\uab5a\U000102b2\U000118dc\U00016f43",
	'z': "\u13c3\u1d22\ua4dc\U000102f5\U000118c4\U000118e5",
}

// capitalLookAlikes maps ASCII letters to the characters that look like them and whose folded form does not. It is from the
// same data as lookAlikes.
var capitalLookAlikes = map[byte]string{
	'b': "\u0184\u042c\ua7b4",
	'c': "\u03f9\uabaf",
	'e': "\U000118a6\U000118ae",
	'f': "\u03dc",
	'g': "\u050c",
	'h': "\u0397\u2c8e",
	'i': "\uab75",
	'j': "\ua7b2",
	'k': "\u2c94",
	'l': "\u2c92\u2cd0\U0001041b\U000118b2",
	'm': "\u03fa\u2c98",
	'n': "\u039d\u2c9a",
	'o': "\U000118b5",
	'r': "\u01a6\uab81\U000104b4",
	's': "\u054f\uabaa",
	't': "\u2ca6\U000118bc",
	'v': "\uaba9",
	'w': "\uab83",
	'x': "\u2cac\ua7b3",
	'y': "\u03a5\u2ca8\U000118a4",
	'z': "\uab93\U000118a9",
}
