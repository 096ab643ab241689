package list

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"kontor/modules/kit/types"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// stack describes the groups of a page: by a field and, for times, by a part of the time.
type stack struct {
	field      *Field
	descending bool
	format     timeFormat
}

// parseStack parses [-]field[format]. It returns apierr.QueryInvalidFormat for unbalanced brackets and unknown formats, and
// apierr.QueryInvalidField.
func (l *List[T]) parseStack(text string) (stack, error) {
	name, descending := strings.CutPrefix(text, "-")
	name, format, bracket := strings.Cut(name, "[")
	if bracket {
		var closed bool
		if format, closed = strings.CutSuffix(format, "]"); !closed {
			return stack{}, apierr.QueryInvalidFormat.Detail("stack", endpoint.Clip(text))
		}
	}
	f := l.field(name)
	if f == nil {
		return stack{}, apierr.QueryInvalidField.Detail("field", endpoint.Clip(name))
	}
	parsed := stack{field: f, descending: descending}
	if f.Type != Time {
		return parsed, nil
	}
	var ok bool
	if parsed.format, ok = parseFormat(format); !ok {
		return stack{}, apierr.QueryInvalidFormat.Detail("stack", endpoint.Clip(text))
	}
	return parsed, nil
}

// timeFormat formats some parts of a time.
type timeFormat struct {
	layout string // of time.Format
	// finest is the length of the shortest part in the format. All times of one such span, counted from the epoch, have the
	// same key.
	finest time.Duration
	ranks  [len(spans)]string // by unit: the layout by which its part is ordered; empty: the format lacks the unit
}

// unit is what a part of a format shows, from the longest to the shortest.
type unit int

const (
	year unit = iota
	month
	day
	weekday
	half // of the day
	hour
	minute
	second
	fraction
	zone // times are shown in UTC
)

// spans are the lengths of the units. Years and months have no fixed length; they consist of days.
var spans = [...]time.Duration{year: date, month: date, day: date, weekday: date, half: time.Hour, hour: time.Hour, minute: time.Minute,
	second: time.Second, fraction: time.Millisecond, zone: date}

const date = 24 * time.Hour

// timePart is a part of a format: as requests write it, as layouts of Go have it, and the layout that orders it.
type timePart struct {
	mark, layout string
	unit         unit
	rank         string
}

// timeParts are the parts of formats: our own marks, and those of layouts of Go. Of two that begin alike, the longer one is first.
var timeParts = [...]timePart{
	{"YYYY", "2006", year, "2006"}, {"MM", "01", month, "01"}, {"DD", "02", day, "02"},
	{"HH", "15", hour, "15"}, {"mm", "04", minute, "04"}, {"ss", "05", second, "05"},

	{"_2006", "_2006", year, "2006"}, {"2006", "2006", year, "2006"}, {"06", "06", year, "06"},
	{"January", "January", month, "01"}, {"Jan", "Jan", month, "01"}, {"01", "01", month, "01"},
	{"002", "002", day, "002"}, {"02", "02", day, "02"}, {"_2", "_2", day, "02"},
	{"Monday", "Monday", weekday, weekdayRank}, {"Mon", "Mon", weekday, weekdayRank},
	{"PM", "PM", half, "PM"}, {"pm", "pm", half, "PM"}, {"15", "15", hour, "15"}, {"03", "03", hour, "03"},
	{"04", "04", minute, "04"}, {"05", "05", second, "05"}, {".000", ".000", fraction, ".000"}, {".999", ".999", fraction, ".000"},
	{"MST", "MST", zone, "MST"}, {"Z07:00", "Z07:00", zone, "MST"}, {"-07:00", "-07:00", zone, "MST"}, {"-0700", "-0700", zone, "MST"},
	{"1", "1", month, "01"}, {"2", "2", day, "02"}, {"3", "3", hour, "03"}, {"4", "4", minute, "04"}, {"5", "5", second, "05"},
}

// weekdayRank stands for the number of the day in its week, for which there is no layout.
const weekdayRank = "weekday"

var namedFormats = map[string]string{
	"":      "YYYY-MM-DD",
	"year":  "YYYY",
	"month": "YYYY-MM",
	"day":   "YYYY-MM-DD",
	"hour":  "YYYY-MM-DDTHH",
}

// formatPunctuation may separate the parts. ISO 8601 uses the letter T between date and time, and Z after it.
const formatPunctuation = " -./:,_TZ"

// parseFormat parses a named format, or parts with punctuation between them. Each unit may occur once, which bounds the length.
func parseFormat(s string) (timeFormat, bool) {
	if named, ok := namedFormats[s]; ok {
		s = named
	}
	if len(s) > maxFormat {
		return timeFormat{}, false
	}
	f := timeFormat{finest: date}
	some := false
	for s != "" {
		at := slices.IndexFunc(timeParts[:], func(p timePart) bool { return strings.HasPrefix(s, p.mark) })
		switch {
		case at >= 0 && f.ranks[timeParts[at].unit] == "":
			part := timeParts[at]
			f.ranks[part.unit], some = part.rank, some || part.unit != zone
			f.layout += part.layout
			f.finest = min(f.finest, spans[part.unit])
			s = s[len(part.mark):]
		case at < 0 && strings.IndexByte(formatPunctuation, s[0]) >= 0:
			f.layout += s[:1]
			s = s[1:]
		default:
			return timeFormat{}, false
		}
	}
	if f.ranks[half] != "" && f.ranks[hour] != "" {
		f.ranks[hour] = "15" // twelve o'clock is the first hour of its half
	}
	return f, some
}

// maxFormat exceeds the length of all parts with punctuation.
const maxFormat = 60

// key returns the parts of a time in the format.
func (f *timeFormat) key(t time.Time) string { return t.Format(f.layout) }

// rank returns a text that orders the keys of a format by time: the parts in the format, longest first.
func (f *timeFormat) rank(t time.Time) string {
	var b strings.Builder
	for _, layout := range f.ranks {
		if layout == weekdayRank {
			b.WriteString(strconv.Itoa((int(t.Weekday()) + 6) % 7)) // weeks begin on Monday
			continue
		}
		b.WriteString(t.Format(layout))
	}
	return b.String()
}

// bucket returns the SQL expression for counting the matching rows: the value itself or, for times, the first millisecond of
// the finest span of the format. Integer division rounds towards zero: times before 1970 need a positive remainder.
func (s *stack) bucket() string {
	if s.field.Type != Time {
		return s.field.valueColumn()
	}
	span := strconv.FormatInt(s.format.finest.Milliseconds(), 10)
	column := s.field.Column
	return "(" + column + " - ((" + column + " % " + span + ") + " + span + ") % " + span + ")"
}

// group is the group of a row: the key that the client sees, and the rank for the order of keys.
type group struct {
	key  string
	rank string
	null bool
}

// nullKey is the key of rows without a value.
const nullKey = "null"

// group returns the group of a value from the database.
func (s *stack) group(stored any) group {
	switch v := stored.(type) {
	case nil:
		return group{key: nullKey, null: true}
	case int64:
		switch s.field.Type {
		case Time:
			t := store.Time(v).Std()
			return group{key: s.format.key(t), rank: s.format.rank(t)}
		case Bool:
			return group{key: strconv.FormatBool(v != 0), rank: strconv.FormatInt(v, 10)}
		}
		return group{key: strconv.FormatInt(v, 10), rank: numberRank(v)}
	case bool:
		return group{key: strconv.FormatBool(v), rank: strconv.FormatBool(v)}
	case string:
		return group{key: v, rank: types.Fold(v)}
	case []byte:
		return group{key: string(v), rank: types.Fold(string(v))}
	}
	return group{key: nullKey, null: true}
}

// numberRank returns a text for a number. The texts sort like the numbers.
func numberRank(n int64) string {
	const digits = 20
	s := strconv.FormatUint(uint64(n)^(1<<63), 10) //nolint:gosec // the sign bit is inverted: negative numbers come first
	return strings.Repeat("0", digits-len(s)) + s
}

// compare orders groups ascending: no value first, then by rank, then by key.
func (g group) compare(other group) int {
	if g.null != other.null {
		if g.null {
			return -1
		}
		return 1
	}
	return cmp.Or(strings.Compare(g.rank, other.rank), strings.Compare(g.key, other.key))
}

// sorted sorts groups.
func (s *stack) sorted(groups []group) {
	slices.SortFunc(groups, func(a, b group) int {
		if s.descending {
			a, b = b, a
		}
		return a.compare(b)
	})
}

// maxGroups bounds the groups with totals. If there are more, only the groups of the page have totals.
const maxGroups = 1000

// groupTotals counts the matching rows of each group.
func (q *query) groupTotals(ctx context.Context, db Store, v view, keys []string) (Totals, error) {
	counts := newTally(keys)
	if v.distinct == nil {
		groups, err := q.countGroups(ctx, db, v.stack.bucket())
		for _, g := range groups {
			counts.add(v.stack.group(g.Value), g.Rows)
		}
		return counts.totals(v.stack), err
	}
	b := q.rowsOf(v, "SELECT ", v.stack.bucket(), " AS bucket, count(*)")
	b.add(" GROUP BY 1")
	err := store.Each(ctx, db, func(row Row) error {
		var stored any
		var n int64
		err := row.Scan(&stored, &n)
		counts.add(v.stack.group(stored), n)
		return err
	}, b.sql(), b.args...)
	return counts.totals(v.stack), err
}

// tally counts the rows of groups. It holds at most maxGroups groups and those of the page.
type tally struct {
	onPage map[string]bool
	found  map[string]*counted
	full   bool
}

type counted struct {
	group group
	rows  int64
}

func newTally(keys []string) *tally {
	t := &tally{onPage: make(map[string]bool, len(keys)), found: map[string]*counted{}}
	for _, key := range keys {
		t.onPage[key] = true
	}
	return t
}

func (t *tally) add(g group, rows int64) {
	if c, known := t.found[g.key]; known {
		c.rows += rows
		return
	}
	if !t.full && len(t.found) >= maxGroups {
		t.full = true
		for key := range t.found {
			if !t.onPage[key] {
				delete(t.found, key)
			}
		}
	}
	if !t.full || t.onPage[g.key] {
		t.found[g.key] = &counted{group: g, rows: rows}
	}
}

func (t *tally) totals(s *stack) Totals {
	groups := make([]group, 0, len(t.found))
	for _, c := range t.found {
		groups = append(groups, c.group)
	}
	s.sorted(groups)
	totals := make(Totals, len(groups))
	for i, g := range groups {
		totals[i] = Total{Key: g.key, Rows: t.found[g.key].rows}
	}
	return totals
}

// arrange groups the rows of a page by their stored values, and returns the groups in the order of their keys.
func (s *stack) arrange(stored []any) (arranged []rowGroup, keys []string) {
	rows := map[string][]int{}
	var groups []group
	for i, value := range stored {
		g := s.group(value)
		if _, known := rows[g.key]; !known {
			groups = append(groups, g)
		}
		rows[g.key] = append(rows[g.key], i)
	}
	s.sorted(groups)
	arranged, keys = make([]rowGroup, len(groups)), make([]string, len(groups))
	for i, g := range groups {
		arranged[i], keys[i] = rowGroup{key: g.key, rows: rows[g.key]}, g.key
	}
	return arranged, keys
}
