package names

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"kontor/modules/kit/names/latin"
)

// Doubt is why a program cannot compare a name, so that a person must look at it.
type Doubt string

// The doubts.
const (
	MixedScripts  Doubt = "mixed_scripts"  // a word has letters of several alphabets
	ManyParts     Doubt = "many_parts"     // the name is longer than what is compared
	SingleLetters Doubt = "single_letters" // no word has two letters, or many words have one
)

// Doubts returns all doubts.
func Doubts() []Doubt { return []Doubt{MixedScripts, ManyParts, SingleLetters} }

// DoubtOf returns why a person must look at a name; empty for nearly all names.
func DoubtOf(text string) Doubt {
	text = norm.NFKC.String(strings.ToValidUTF8(text, " "))
	if utf8.RuneCountInString(text) > maxText || len(Split(text)) > MaxNames {
		return ManyParts
	}
	parts, letters, longer := 0, 0, false
	for _, field := range strings.FieldsFunc(text, separates) {
		for _, word := range undot(field) {
			word = strings.Map(withoutMarks, word)
			if latin.Mixed(word) {
				return MixedScripts
			}
			switch n := utf8.RuneCountInString(word); {
			case n == 0:
				continue
			case n == 1 && latin.Alphabetic(word):
				letters++
			default:
				longer = true
			}
			parts++
		}
	}
	switch {
	case parts > maxParts:
		return ManyParts
	case letters > 0 && !longer, letters >= manyLetters && lettersBesideForms(text) > 1:
		return SingleLetters
	}
	return ""
}

// lettersBesideForms counts the words of one letter that are no part of an organisation type, such as "S. A. R. L.".
func lettersBesideForms(text string) (n int) {
	for _, p := range readParts(text, Organisation) {
		if p.class != form && len(p.plain) == 1 {
			n++
		}
	}
	return n
}

// manyLetters is from how many words of one letter on a name is doubtful. People with three initials exist.
const manyLetters = 4
