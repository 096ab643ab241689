package types

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

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
