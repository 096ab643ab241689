package types

import (
	"slices"
	"strings"
)

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

// joinedID returns the words of a text without blanks. An id, or the beginning of one, is one word.
func joinedID(field string) []string {
	if strings.Trim(field, "0123456789abcdefABCDEF-") == "" {
		field = strings.ReplaceAll(field, "-", "")
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
