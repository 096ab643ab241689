package list

import (
	"slices"
	"strings"
	"unicode/utf8"

	"kontor/modules/kit/types"
)

// condition appends the condition that a field has one of the values. It reports false, and appends nothing, when no value can
// match: such a search finds no rows and needs no statement.
func (f *Field) condition(b *builder, values []string) bool {
	switch f.Type {
	case Text:
		some := f.textCondition(b, values)
		if some && f.Index == EmptyApart && !slices.ContainsFunc(values, func(v string) bool { return f.Fold(v) == "" }) {
			b.add(" AND ", f.Key, " <> ''") // as the index
		}
		return some
	case UUID:
		return oneOf(b, f.Column, parsed(values, types.ParseID))
	case Bool:
		return f.boolCondition(b, values)
	case Number, Time, Date:
		return f.rangeCondition(b, values)
	}
	return false
}

// parsed returns the values that can be parsed.
func parsed(values []string, parse func(string) (string, error)) []string {
	good := make([]string, 0, len(values))
	for _, v := range values {
		if p, err := parse(v); err == nil {
			good = append(good, p)
		}
	}
	return good
}

// oneOf appends "column is one of values". The list is padded with the last value to a power of two, so that few different
// statements are compiled and cached.
func oneOf[V any](b *builder, column string, values []V) bool {
	switch len(values) {
	case 0:
		return false
	case 1:
		b.add(column, " = ")
		b.arg(values[0])
		return true
	}
	b.add(column, " IN (")
	for i := range listLength(len(values)) {
		if i > 0 {
			b.add(", ")
		}
		b.arg(values[min(i, len(values)-1)])
	}
	b.add(")")
	return true
}

// listLength returns the next power of two.
func listLength(n int) int {
	length := 1
	for length < n {
		length *= 2
	}
	return length
}

func (f *Field) boolCondition(b *builder, values []string) bool {
	var yes, no bool
	for _, v := range values {
		yes = yes || strings.EqualFold(v, "true")
		no = no || strings.EqualFold(v, "false")
	}
	switch {
	case yes && no:
		b.add(f.Column, " IN (TRUE, FALSE)")
	case yes:
		b.add(f.Column, " = TRUE")
	case no:
		b.add(f.Column, " = FALSE")
	}
	return yes || no
}

// textCondition compares folded texts. A text with an asterisk is a pattern. A single asterisk matches every text that is not
// empty.
func (f *Field) textCondition(b *builder, values []string) bool {
	var exact, patterns []string
	anything := false
	for _, v := range values {
		switch {
		case !utf8.ValidString(v) || strings.ContainsRune(v, 0):
			// No stored text contains these characters, and not every database accepts them as an argument.
		case strings.Trim(v, "*") == "" && v != "":
			anything = true
		case strings.Contains(v, "*"):
			patterns = append(patterns, likePattern(f.Fold(v)))
		default:
			exact = append(exact, f.Fold(v))
		}
	}
	if len(exact) > 0 && len(patterns) == 0 && !anything {
		return oneOf(b, f.Key, exact)
	}
	or := alternatives{b: b}
	if len(exact) > 0 {
		or.next()
		oneOf(b, f.Key, exact)
	}
	if anything {
		or.next()
		b.add(f.Key, " <> ''")
	}
	for _, pattern := range patterns {
		or.next()
		b.add(f.Key, " LIKE ")
		b.arg(pattern)
		b.add(` ESCAPE '\'`)
	}
	return or.close()
}

var likeEscapes = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`, `*`, `%`)

// likePattern converts a text with asterisks to a pattern of LIKE. Other characters have no special meaning.
func likePattern(s string) string {
	for strings.Contains(s, "**") {
		s = strings.ReplaceAll(s, "**", "*")
	}
	return likeEscapes.Replace(s)
}

// rangeCondition compares with first and last value, both included. Single points are combined in one list.
func (f *Field) rangeCondition(b *builder, values []string) bool {
	var points []any
	or := alternatives{b: b}
	for _, v := range values {
		r, ok := parseRange(f.Type, v)
		switch {
		case !ok:
		case r.from != nil && r.from == r.to:
			points = append(points, r.from)
		default:
			or.next()
			r.condition(b, f.Column)
		}
	}
	if len(points) > 0 {
		or.next()
		oneOf(b, f.Column, points)
	}
	return or.close()
}

func (r interval) condition(b *builder, column string) {
	if r.from != nil {
		b.add(column, " >= ")
		b.arg(r.from)
	}
	if r.from != nil && r.to != nil {
		b.add(" AND ")
	}
	if r.to != nil {
		b.add(column, " <= ")
		b.arg(r.to)
	}
}

// alternatives joins conditions by OR, in parentheses.
type alternatives struct {
	b    *builder
	some bool
}

func (a *alternatives) next() {
	if a.some {
		a.b.add(" OR ")
	} else {
		a.b.add("(")
	}
	a.some = true
}

// close ends the list and reports whether there was any condition.
func (a *alternatives) close() bool {
	if a.some {
		a.b.add(")")
	}
	return a.some
}
