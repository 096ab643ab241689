package list

import (
	"slices"

	"kontor/modules/kit/types"
	"kontor/server/endpoint"
	"kontor/store"
)

// Memory is a list whose rows are in memory. Its parameters and pages are those of [List]. It is safe for concurrent use.
type Memory[T any] struct {
	list   *List[T]
	values map[string]func(row *T) any
}

// MemoryField is a field of a [Memory]. Value returns a string for Text and UUID, and an int64 for Number and Time.
type MemoryField[T any] struct {
	Name  string
	Type  Type
	Value func(row *T) any
}

// NewMemory prepares a list. The first field identifies a row; rows with larger values are newer. It panics for an incomplete
// declaration, which is a programming error.
func NewMemory[T any](name string, fields ...MemoryField[T]) *Memory[T] {
	m := &Memory[T]{values: map[string]func(row *T) any{}}
	source := Source[T]{From: name, Columns: fields[0].Name, ID: fields[0].Name, Tables: []string{name},
		Scan: func(Row) (row T, err error) { return row, nil }}
	for _, f := range fields {
		declared := Field{Name: f.Name, Type: f.Type, Column: f.Name}
		if f.Type == Text {
			declared.Key = f.Name
		}
		source.Fields = append(source.Fields, declared)
		m.values[f.Name] = f.Value
	}
	m.list = New(source)
	return m
}

// Search returns the fields with their types, for the API document.
func (m *Memory[T]) Search() []endpoint.SearchField { return m.list.Search() }

// Page returns a page of the rows, which it may reorder. It returns the errors of [List.Page].
func (m *Memory[T]) Page(keys Keyring, rows []T, p Params) (page Page[T], err error) {
	matches, err := m.Filter(p)
	if err != nil {
		return page, err
	}
	f := found{stacked: p.Stacked(), totalUnfiltered: int64(len(rows))}
	rows = slices.DeleteFunc(rows, func(row T) bool { return !matches(&row) })
	f.total = int64(len(rows))
	if len(rows) > 0 {
		v, refusal := m.list.view(p)
		switch {
		case refusal == nil:
			if rows, err = m.read(keys, rows, v, p, &f); err != nil {
				return page, err
			}
		case p.Limit() != skipRows:
			return page, refusal
		}
	}
	if p.Limit() == skipRows {
		rows = nil
	}
	page.set(&f, inOrder(rows, nil))
	return page, nil
}

// read sorts and groups the rows, and returns those of the page.
func (m *Memory[T]) read(keys Keyring, rows []T, v view, p Params, f *found) ([]T, error) {
	slices.SortFunc(rows, func(a, b T) int { return compareSorted(m.sorted(&a, v), m.sorted(&b, v), v.orders) })
	if v.distinct != nil {
		rows = m.firstOfEach(rows, v.distinct)
		f.total = int64(len(rows))
	}
	if p.Limit() == skipRows {
		return nil, nil
	}
	all, bound := rows, (&query{name: m.list.source.From}).binding(v, p)
	if p.cursor != "" {
		after, ok := unseal(keys, p.cursor, bound, len(v.orders))
		if !ok {
			return nil, wrongCursor()
		}
		rows = slices.DeleteFunc(slices.Clone(rows), func(row T) bool { return compareSorted(m.sorted(&row, v), after, v.orders) <= 0 })
	}
	rows = rows[min(p.Offset(), int64(len(rows))):]
	if f.hasMore = len(rows) > p.Limit(); f.hasMore {
		rows = rows[:p.Limit()]
		cursor, err := seal(keys, bound, m.sorted(&rows[len(rows)-1], v))
		if err != nil {
			return nil, err
		}
		f.nextCursor = cursor
	}
	if v.stack != nil {
		m.group(all, rows, v.stack, f)
	}
	return rows, nil
}

// group sets the groups of the rows of a page, and counts those of all rows.
func (m *Memory[T]) group(all, rows []T, s *stack, f *found) {
	value := m.values[s.field.Name]
	stored := make([]any, len(rows))
	for i := range rows {
		stored[i] = value(&rows[i])
	}
	f.groups, f.keys = s.arrange(stored)
	counts := newTally(f.keys)
	for i := range all {
		counts.add(s.group(value(&all[i])), 1)
	}
	if totals := counts.totals(s); len(totals) > 0 {
		f.metadata = &Metadata{GroupTotals: totals}
	}
}

// firstOfEach returns the first row of each value of a field.
func (m *Memory[T]) firstOfEach(rows []T, f *Field) []T {
	seen := map[any]bool{}
	return slices.DeleteFunc(rows, func(row T) bool {
		value := m.values[f.Name](&row)
		known := seen[value]
		seen[value] = true
		return known
	})
}

// sorted returns the values by which a row is sorted.
func (m *Memory[T]) sorted(row *T, v view) []any {
	values := make([]any, len(v.orders))
	for i, o := range v.orders {
		values[i] = m.values[o.column](row)
		if text, is := values[i].(string); is {
			values[i] = types.Fold(text)
		}
	}
	return values
}

// compareSorted compares what two rows are sorted by.
func compareSorted(a, b []any, orders []order) int {
	for i, o := range orders {
		c := compareValues(a[i], b[i])
		if o.descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// Filter returns the function that reports whether a row meets all searches. It returns apierr.QueryInvalidSearchField.
func (m *Memory[T]) Filter(p Params) (matches func(row *T) bool, err error) {
	if _, err := m.list.query(p, nil); err != nil {
		return nil, err
	}
	conditions := make([]func(row *T) bool, len(p.search))
	for i, s := range p.search {
		value, f := m.values[s.name], m.list.field(s.name)
		if f.Type == Number || f.Type == Time {
			ranges := f.ranges(s.values)
			conditions[i] = func(row *T) bool { return within(value(row).(int64), ranges) }
		} else {
			conditions[i] = func(row *T) bool { return f.meets(f.Fold(value(row).(string)), s) }
		}
	}
	return func(row *T) bool {
		for _, meets := range conditions {
			if !meets(row) {
				return false
			}
		}
		return true
	}, nil
}

// ranges returns the searched values that can be parsed.
func (f *Field) ranges(values []string) (all []interval) {
	for _, v := range values {
		if r, ok := parseRange(f.Type, v); ok {
			all = append(all, r)
		}
	}
	return all
}

// within reports whether a number is in one of the ranges.
func within(number int64, ranges []interval) bool {
	return slices.ContainsFunc(ranges, func(r interval) bool {
		from, begins := r.from.(int64)
		to, ends := r.to.(int64)
		return (!begins || number >= from) && (!ends || number <= to)
	})
}

// Keyring derives the keys of cursors, as *store.DB does.
type Keyring = keyring

var _ Keyring = (*store.DB)(nil)
