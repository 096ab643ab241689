package list

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"kontor/modules/kit/types"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
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
	case Number, Time, Date, Decimal:
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

// oneOf appends "column is one of values".
func oneOf[V any](b *builder, column string, values []V) bool {
	switch len(values) {
	case 0:
		return false
	case 1:
		b.add(column, " = ")
		b.arg(values[0])
		return true
	}
	b.add(column, " IN (", store.In(len(b.args)+1, len(values)), ")")
	b.args = store.AppendIn(b.args, values)
	return true
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
	name := endpoint.Clip(searchPrefix + field)
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

// interval is a range of stored values with both ends included; nil is an open end. Its ends are int64 for numbers and times,
// string for dates.
type interval struct{ from, to any }

// rangeMark separates the ends of a range: "a..b", "a..", "..b".
const rangeMark = ".."

// parseRange parses a value or a range of an ordered type. It reports false for invalid values and for empty ranges.
func parseRange(t Type, s string) (interval, bool) {
	first, second, isRange := strings.Cut(s, rangeMark)
	if !isRange {
		point, ok := parsePoint(t, s)
		return point, ok && !point.reversed()
	}
	if first == "" && second == "" {
		return interval{}, false
	}
	var r interval
	if first != "" {
		from, ok := parsePoint(t, first)
		if !ok {
			return interval{}, false
		}
		r.from = from.from
	}
	if second != "" {
		to, ok := parsePoint(t, second)
		if !ok {
			return interval{}, false
		}
		r.to = to.to
	}
	return r, !r.reversed()
}

// reversed reports whether an interval ends before it begins.
func (r interval) reversed() bool {
	return r.from != nil && r.to != nil && compareValues(r.from, r.to) > 0
}

func parsePoint(t Type, s string) (interval, bool) {
	switch t {
	case Number:
		n, err := strconv.ParseInt(s, 10, 64)
		return interval{n, n}, err == nil
	case Time:
		return parseTime(s)
	case Date:
		d, err := types.ParseDate(s)
		return interval{d.String(), d.String()}, err == nil
	case Decimal:
		return parseDecimal(s)
	}
	return interval{}, false
}

// parseDecimal writes a number as numbers are stored, with more decimals if it has them. Numbers that are not stored become texts that
// sort before or behind all others.
func parseDecimal(s string) (interval, bool) {
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(n):
		return interval{}, false
	case n < 0:
		return interval{"", ""}, true
	}
	n = min(n, 9.9999)
	text := strconv.FormatFloat(n, 'f', 3, 64)
	if exact := strconv.FormatFloat(n, 'f', -1, 64); len(exact) > len(text) {
		text = exact
	}
	return interval{text, text}, true
}

// parseTime parses an RFC 3339 date-time as its millisecond, and a plain date as the whole day in UTC. Stored times are whole
// milliseconds: a time between two of them is an empty interval, but may be the end of a range.
func parseTime(s string) (interval, bool) {
	if d, err := types.ParseDate(s); err == nil {
		start := d.Start().UnixMilli()
		return interval{start, start + (24 * time.Hour).Milliseconds() - 1}, true
	}
	t, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	if err != nil {
		return interval{}, false
	}
	from := t.UnixMilli()
	if t.Nanosecond()%int(time.Millisecond) != 0 {
		return interval{from + 1, from}, true
	}
	return interval{from, from}, true
}
