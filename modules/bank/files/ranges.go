package files

import (
	"strconv"
	"strings"
)

// span is a part of a file, both ends included.
type span struct{ first, last int64 }

func wholeOf(size int64) span { return span{0, size - 1} }

func (s span) length() int64 { return s.last - s.first + 1 }

// rangeOf reads a header Range (RFC 9110, section 14.1.2) of a file that is not empty. It returns nil for a header that is ignored: of
// another unit, malformed, or with several ranges, which would need more than one pass over the file. satisfiable is false for a range
// beyond the end.
func rangeOf(header string, size int64) (asked *span, satisfiable bool) {
	unit, set, found := strings.Cut(header, "=")
	if !found || !strings.EqualFold(strings.TrimSpace(unit), "bytes") {
		return nil, true
	}
	from, to, found := strings.Cut(strings.TrimSpace(set), "-")
	if !found || strings.Contains(set, ",") {
		return nil, true
	}
	first, hasFirst := position(from)
	last, hasLast := position(to)
	switch {
	case from == "" && hasLast:
		if last == 0 {
			return nil, false
		}
		return &span{max(0, size-last), size - 1}, true
	case !hasFirst || to != "" && (!hasLast || last < first):
		return nil, true
	case first >= size:
		return nil, false
	case to == "":
		return &span{first, size - 1}, true
	}
	return &span{first, min(last, size-1)}, true
}

// position reads a number of a range. Numbers beyond any file count as the largest one.
func position(text string) (int64, bool) {
	if text == "" || len(text) > 64 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 1<<62 - 1, true
	}
	return n, true
}
