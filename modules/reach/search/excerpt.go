package search

import (
	"slices"
	"strings"
	"unicode"

	"kontor/modules/kit/types"
)

// excerpt returns the part of a message around the first of the searched words, in one line.
func excerpt(message, text string) string {
	fields := strings.FieldsFunc(message, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
	first := 0
	if readings := types.SearchWords(text); len(readings) > 0 {
		first = max(0, slices.IndexFunc(fields, func(field string) bool { return begins(types.Words(field), readings) }))
	}
	const before = 5 // words of context
	from := max(0, first-before)
	line := []rune(strings.Join(fields[from:], " "))
	prefix := ""
	if from > 0 {
		prefix = "… "
	}
	if len(line) > maxLine {
		return prefix + strings.TrimSpace(string(line[:maxLine])) + " …"
	}
	return prefix + string(line)
}

// begins reports whether one of the words begins with a searched one.
func begins(words []string, readings [][]string) bool {
	for _, reading := range readings {
		for _, searched := range reading {
			if slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, searched) }) {
				return true
			}
		}
	}
	return false
}
