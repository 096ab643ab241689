package list

import (
	"strconv"
	"strings"
	"time"

	"kontor/modules/kit/types"
)

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
	switch from := r.from.(type) {
	case int64:
		to, closed := r.to.(int64)
		return closed && from > to
	case string:
		to, closed := r.to.(string)
		return closed && from > to
	}
	return false
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
	}
	return interval{}, false
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
