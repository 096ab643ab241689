package list

import (
	"slices"
	"strings"

	"kontor/server/apierr"
)

// nullWord selects rows without a value.
const nullWord = "null"

// searched is one value of a search.
type searched struct {
	text   string
	quoted bool
}

// splitValues splits the values of a search at commas. A value may be in quotation marks, as in RFC 4180: then commas, spaces
// around it and the word null stand for themselves, and two quotation marks for one. A quotation mark in any other place
// stands for itself, also at the beginning of a value that does not end with one.
func splitValues(text string) []searched {
	var values []searched
	for {
		value, rest, more := cutValue(text)
		values = append(values, value)
		if !more {
			return values
		}
		text = rest
	}
}

// cutValue returns the first value of a text and the text after its comma.
func cutValue(text string) (value searched, rest string, more bool) {
	if start := strings.TrimLeft(text, " \t"); strings.HasPrefix(start, `"`) {
		var b strings.Builder
		for i := 1; i < len(start); i++ {
			if start[i] != '"' {
				b.WriteByte(start[i])
				continue
			}
			if i+1 < len(start) && start[i+1] == '"' {
				b.WriteByte('"')
				i++
				continue
			}
			after := strings.TrimLeft(start[i+1:], " \t")
			if rest, more = strings.CutPrefix(after, ","); more || after == "" {
				return searched{b.String(), true}, rest, more
			}
			break
		}
	}
	first, rest, more := strings.Cut(text, ",")
	return searched{text: strings.TrimSpace(first)}, rest, more
}

// SplitValues returns the values of a parameter that is searched as those of a list are.
func SplitValues(text string) []string {
	var values []string
	for _, v := range splitValues(text) {
		values = append(values, v.text)
	}
	return values
}

// parseSearch parses the values of a searched field. It drops empty values without quotation marks, unless all are empty: then
// it searches for the empty value.
func parseSearch(field string, given []string, problems *apierr.Fields) search {
	s := search{name: field}
	name := clip(searchPrefix + field)
	for _, list := range given {
		for _, v := range splitValues(list) {
			switch {
			case v.text == "" && !v.quoted:
				continue
			case v.text == nullWord && !v.quoted:
				s.null = true
				continue
			case len(v.text) > maxValueBytes:
				problems.Add(name, "invalid.max_length", apierr.Args{"Max": maxValueBytes})
				return s
			case len(s.values) == maxValues:
				problems.Add(name, "invalid.max_items", apierr.Args{"Max": maxValues})
				return s
			}
			s.values = append(s.values, v.text)
		}
	}
	if s.values == nil && !s.null {
		s.values = []string{""}
	}
	return s
}

// matching appends the condition of a search. In a field that may have no value, the word null and the empty value select the
// rows without one. In other fields, null is a text. It returns the builder to use further, and false when no value can match.
func (f *Field) matching(b *builder, s search) (*builder, bool) {
	values, null := s.values, s.null
	if !f.Null {
		if null {
			values = append(slices.Clone(values), nullWord)
		}
		return b, f.condition(b, values)
	}
	if !null && !slices.Contains(values, "") {
		return b, f.condition(b, values)
	}
	some := b.copy()
	if len(values) == 0 || !f.orCondition(some, values) {
		b.add(f.Column, " IS NULL")
		return b, true
	}
	return some, true
}

// orCondition appends that a field has no value or one of the values. It reports false when no value can match.
func (f *Field) orCondition(b *builder, values []string) bool {
	b.add("(", f.Column, " IS NULL OR ")
	some := f.condition(b, values)
	b.add(")")
	return some
}
