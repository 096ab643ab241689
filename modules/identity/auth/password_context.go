package auth

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Attackers first try the words that belong to a person or a service, with the suffixes that people add to reach a minimum
// length: a year, digits, exclamation marks (NIST SP 800-63B-4, section 3.1.1.2).

// minOther is the number of letters that a password must have beside words of its context.
const minOther = 3

// substitutions replace digits and signs by the letters that they stand for. 1 and ! stand for i in the first list and for l
// in the second.
var substitutions = [...]*strings.Replacer{
	strings.NewReplacer("0", "o", "1", "i", "!", "i", "3", "e", "4", "a", "@", "a", "5", "s", "$", "s", "7", "t", "8", "b"),
	strings.NewReplacer("0", "o", "1", "l", "!", "l", "3", "e", "4", "a", "@", "a", "5", "s", "$", "s", "7", "t", "8", "b"),
}

// spellings returns a text unchanged, and with the letters that its digits and signs may stand for.
func spellings(text string) []string {
	all := []string{text}
	for _, s := range substitutions {
		if other := s.Replace(text); !slices.Contains(all, other) {
			all = append(all, other)
		}
	}
	return all
}

func isLetter(r rune) bool { return unicode.IsLetter(r) || unicode.IsMark(r) }

func noLetter(r rune) bool { return !isLetter(r) }

// isDecorated reports whether a password in lower case is a common word with digits and signs around it.
func isDecorated(password string) bool {
	core := strings.TrimFunc(password, noLetter)
	if utf8.RuneCountInString(core) < minValuePart {
		return false
	}
	return slices.ContainsFunc(spellings(core), isListed)
}

// isContext reports whether a password in lower case consists of the words, common words, digits and signs: whether it
// has fewer than minOther letters beside them.
func isContext(password string, words []string) bool {
	for _, spelling := range spellings(password) {
		rest, found := []byte(password), false
		for _, word := range words {
			for at := strings.Index(spelling, word); at >= 0; at = strings.Index(spelling, word) {
				blank := strings.Repeat(" ", len(word))
				// A spelling has each character where the password has it.
				copy(rest[at:], blank)
				spelling, found = spelling[:at]+blank+spelling[at+len(word):], true
			}
		}
		if found && otherLetters(string(rest)) < minOther {
			return true
		}
	}
	return false
}

// otherLetters counts the letters of a text that belong to no common word.
func otherLetters(text string) (n int) {
	for _, word := range strings.FieldsFunc(text, noLetter) {
		if length := utf8.RuneCountInString(word); length < minValuePart || !isListed(word) {
			n += length
		}
	}
	return n
}

// valueWords are the words of a credential value in lower case: those of the part before the @ and of the domain but its
// last label, longest first.
func valueWords(value string) []string {
	local, domain, isEmail := strings.Cut(value, "@")
	if dot := strings.LastIndexByte(domain, '.'); isEmail && dot >= 0 {
		domain = domain[:dot]
	}
	var words []string
	for _, part := range strings.FieldsFunc(local+" "+domain, noLetter) {
		if utf8.RuneCountInString(part) >= minValuePart {
			words = append(words, part)
		}
	}
	slices.SortFunc(words, func(a, b string) int { return len(b) - len(a) })
	return words
}
