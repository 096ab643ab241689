package types

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
