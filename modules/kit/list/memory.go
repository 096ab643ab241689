package list

import (
	"context"
	"hash/maphash"
	"slices"
	"strconv"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"

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
	page = pageOf(&f, inOrder(rows, nil))
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
		return !slices.ContainsFunc(conditions, func(meets func(row *T) bool) bool { return !meets(row) })
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

// Kept is a list with the encoded rows of a keeper. It is safe for concurrent use.
type Kept struct {
	page   func(ctx context.Context, db Store, p Params, conditions []Where, rows collector) (found, error) // of the list
	keeper Keeper
	hints  *hints
}

// Of returns a list with the rows of another one in the form of a keeper.
func Of[T any](l *List[T], keeper Keeper) *Kept {
	return &Kept{page: l.page, keeper: keeper, hints: &hints{seed: maphash.MakeSeed()}}
}

// Page is [List.Page] with encoded rows.
func (k *Kept) Page(ctx context.Context, db Store, p Params, conditions ...Where) (page Page[jsontext.Value], err error) {
	rows := &keptRows{keeper: k.keeper, hints: k.hints}
	found, err := k.page(ctx, db, p, conditions, rows)
	if err == nil {
		page = pageOf(&found, inOrder(rows.rows, found.order))
	}
	return page, err
}

// keptRows are the encoded rows of a page.
type keptRows struct {
	keeper Keeper
	hints  *hints
	rows   []jsontext.Value
	known  bool // the keeper knew all rows
	scan   func(row Row) (item jsontext.Value, known bool, err error)
}

func (k *keptRows) begin(ctx context.Context) {
	if k.scan == nil { // ids that were found are read by several statements
		k.scan, k.known, k.rows = k.keeper.Scanner(ctx), true, make([]jsontext.Value, 0, defaultLimit)
	}
}

func (k *keptRows) add(row Row) error {
	item, known, err := k.scan(row)
	if err == nil {
		k.rows, k.known = append(k.rows, item), k.known && known
	}
	return err
}

// readKnown runs the statement of a page with the column of the id. It returns known only if it has found the whole page.
func (k *keptRows) readKnown(ctx context.Context, db store.Querier, b *builder, v view, limit int) (read result, known bool, err error) {
	began := k.keeper.Begin(ctx)
	rows, err := db.Query(ctx, b.sql(), b.args...)
	if err != nil {
		return read, false, err
	}
	defer rows.Close()
	k.rows = make([]jsontext.Value, 0, defaultLimit)
	var id store.ReusedText
	dest := make([]any, 1+len(v.orders))
	dest[0] = &id
	for i := range v.orders {
		dest[1+i] = store.Ignored
	}
	for rows.Next() {
		if read.rows == limit {
			read.more = true
			break
		}
		if read.rows == limit-1 { // only this one needs a cursor after it
			read.last = make([]any, len(v.orders))
			for i := range read.last {
				dest[1+i] = &read.last[i]
			}
		}
		if err := rows.Scan(dest...); err != nil {
			return read, false, err
		}
		item, ok := k.keeper.Known(id)
		if !ok {
			return read, false, nil
		}
		k.rows = append(k.rows, item)
		read.rows++
	}
	return read, rows.Err() == nil && k.keeper.Holds(began), rows.Err()
}

// A Keeper remembers the encoded rows of a list between its pages. It must return the same JSON as a scan of the row would.
type Keeper interface {
	// Scanner is called before the statement of a page. It returns the function that scans the rows of the page, and reports for each
	// whether it was known. The function may scan a row twice.
	Scanner(ctx context.Context) func(row Row) (item jsontext.Value, known bool, err error)
	// Begin is called before a statement that reads ids only.
	Begin(ctx context.Context) store.Reading
	// Known returns a row, if it is known.
	Known(id []byte) (item jsontext.Value, ok bool)
	// Holds reports whether the items that Known has returned are those of the rows that the statement has found.
	Holds(since store.Reading) bool
}

// hints note which pages had only known rows when they were read last. The ids of such a page are read first, which takes a third of
// the time. A hint may be wrong: then the page is read once more.
type hints struct {
	seed  maphash.Seed
	slots [512]atomic.Uint64
}

// hint is the note of one page; the zero hint notes nothing.
type hint struct {
	slot *atomic.Uint64
	page uint64
}

// place returns the hint of a page, by what a cursor is bound to and the place of the page.
func (h *hints) place(bound []byte, v view, p Params) hint {
	if v.stack != nil || v.distinct != nil {
		return hint{}
	}
	page := maphash.Comparable(h.seed, [4]any{string(bound), p.cursor, p.Limit(), p.Offset()})
	return hint{slot: &h.slots[page%uint64(len(h.slots))], page: page}
}

func (h hint) set() bool { return h.slot != nil && h.slot.Load() == h.page }

func (h hint) put() {
	if h.slot != nil {
		h.slot.Store(h.page)
	}
}

func (h hint) clear() { h.slot.CompareAndSwap(h.page, 0) }

// Encode encodes a page whose rows are encoded. It does not copy the rows.
func Encode(p Page[jsontext.Value]) (*endpoint.Encoded, error) {
	if p.Data.stacked || p.Metadata != nil || len(p.Keys) > 0 {
		return endpoint.Encode(p)
	}
	parts := make([][]byte, 0, 2*len(p.Data.Rows)+1)
	before := []byte(`{"data":[`)
	for _, row := range p.Data.Rows {
		parts = append(parts, before, row)
		before = comma
	}
	end := make([]byte, 0, 160+len(p.NextCursor))
	if len(p.Data.Rows) == 0 {
		end = append(end, before...)
	}
	end = strconv.AppendInt(append(end, `],"total":`...), p.Total, 10)
	end = strconv.AppendInt(append(end, `,"total_unfiltered":`...), p.TotalUnfiltered, 10)
	end = strconv.AppendBool(append(end, `,"has_more":`...), p.HasMore)
	if p.NextCursor != "" {
		var err error
		if end, err = jsontext.AppendQuote(append(end, `,"next_cursor":`...), p.NextCursor); err != nil {
			return nil, err
		}
	}
	return &endpoint.Encoded{Parts: append(parts, append(end, '}'))}, nil
}

var comma = []byte{','}
