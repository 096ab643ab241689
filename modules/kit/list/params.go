package list

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

const (
	defaultLimit = 10
	maxLimit     = 100
	// skipRows is the limit for reading totals only.
	skipRows = -1

	// maxValues bounds the searched values of one field, and the fields of a sort.
	maxValues = 100
	// maxValueBytes bounds one searched value. No field for searches by equality is longer.
	maxValueBytes = 1000
	// maxPatterns bounds the patterns of a request in all fields. Each is compared with every row that the caller may see,
	// without an index.
	maxPatterns = 20

	searchPrefix = "search."
)

// Input is the input of a list without other parameters.
type Input struct {
	Query Params `query:"*"`
}

// OfInput is the input of a list of what belongs to the record in the path.
type OfInput struct {
	ID    string `path:"id"`
	Query Params `query:"*"`
}

// Params are the parameters of a list from the client. Names of fields in them are not checked yet: [List.Page] does that.
// The zero Params select the first ten rows.
type Params struct {
	limit    int // zero: the default
	offset   int64
	sort     []string
	stack    string
	distinct string
	cursor   string
	search   []search
	text     *store.TextSearch // see WithText
}

// search is one searched field with all its values. null is the word null without quotation marks.
type search struct {
	name   string
	values []string
	null   bool
}

// Parse parses the decoded parameters of a query string. It returns apierr.InvalidInput with the wrong parameters.
func Parse(query map[string][]string) (Params, error) {
	var p Params
	var problems apierr.Fields
	p.BindQuery(query, &problems)
	return p, problems.Err()
}

// BindQuery parses the decoded parameters of a query string and adds the wrong ones to problems. Of a repeated parameter the
// last value counts, except for sort and search, where all values count.
func (p *Params) BindQuery(query map[string][]string, problems *apierr.Fields) {
	*p = Params{
		limit:    parseLimit(last(query["limit"]), problems),
		offset:   parseOffset(last(query["offset"]), problems),
		sort:     parseSort(query["sort"], problems),
		stack:    last(query["stack"]),
		distinct: last(query["distinct"]),
		cursor:   parseCursor(last(query["cursor"]), problems),
	}
	for name, values := range query {
		if field, found := strings.CutPrefix(name, searchPrefix); found {
			p.search = append(p.search, parseSearch(field, values, problems))
		}
	}
	slices.SortFunc(p.search, func(a, b search) int { return strings.Compare(a.name, b.name) })
	p.boundPatterns(problems)
}

// boundPatterns rejects a search with too many patterns. The error names the field that exceeds the limit.
func (p *Params) boundPatterns(problems *apierr.Fields) {
	total := 0
	for _, s := range p.search {
		for _, v := range s.values {
			total += patterns(v)
		}
		if total > maxPatterns {
			problems.Add(endpoint.Clip(searchPrefix+s.name), "invalid.max_patterns", apierr.Args{"Max": maxPatterns})
			return
		}
	}
}

// patterns returns the number of patterns of a searched value: zero without an asterisk, otherwise one for each text between
// asterisks, since the database searches for each separately.
func patterns(value string) int {
	if !strings.Contains(value, "*") {
		return 0
	}
	n := 0
	for text := range strings.SplitSeq(value, "*") {
		if text != "" {
			n++
		}
	}
	return max(1, n)
}

// Limit returns the maximum number of rows, from 1 to 100, or -1.
func (p Params) Limit() int {
	if p.limit == 0 {
		return defaultLimit
	}
	return p.limit
}

// Offset returns the number of rows to skip.
func (p Params) Offset() int64 { return p.offset }

// Stacked reports whether the rows are to be grouped.
func (p Params) Stacked() bool { return p.stack != "" }

func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// integer parses a whole number. Numbers beyond the range of int64 become its limits.
func integer(name, s string, problems *apierr.Fields) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && n != math.MaxInt64 && n != math.MinInt64 {
		problems.Add(name, "invalid.integer")
	}
	return n
}

func parseLimit(s string, problems *apierr.Fields) int {
	if s == "" {
		return defaultLimit
	}
	switch n := integer("limit", s, problems); {
	case n == skipRows:
		return skipRows
	case n < 1:
		return defaultLimit
	case n > maxLimit:
		return maxLimit
	default:
		return int(n)
	}
}

func parseOffset(s string, problems *apierr.Fields) int64 {
	if s == "" {
		return 0
	}
	return max(0, integer("offset", s, problems))
}

func parseSort(values []string, problems *apierr.Fields) []string {
	var keys []string
	for _, value := range values {
		for key := range strings.SplitSeq(value, ",") {
			key = strings.TrimSpace(key)
			if key == "" {
				continue
			}
			if len(keys) == maxValues {
				problems.Add("sort", "invalid.max_items", apierr.Args{"Max": maxValues})
				return nil
			}
			keys = append(keys, key)
		}
	}
	return keys
}
