package list

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"kontor/store"
)

// piece is a part of the rows in an order: all of its rows come before those of the next piece. Each is read by an index of its own.
type piece struct {
	condition func(b *builder) // appends the condition of the rows
	orders    []order          // of its rows
	rows      int64            // how many there are; negative: not known
}

// pieces divides the rows in the order of a view, after those of a cursor. It returns false when they are one piece.
func (q *query) pieces(ctx context.Context, db Store, v view, after []any) ([]piece, bool, error) {
	switch {
	case v.apart != nil:
		return v.apartPieces(after), true, nil
	case v.valued != nil && (v.valued.Index == NoIndex || q.searched || q.merges()):
		return q.valuedPieces(ctx, db, v, after)
	}
	return nil, false, nil
}

// apartPieces divides the rows into those with a value, which an index has, and the others. The others come first in ascending order.
func (v view) apartPieces(after []any) []piece {
	present := piece{rows: -1, orders: v.orders, condition: func(b *builder) { b.add(v.apart.present()) }}
	absent := piece{rows: -1, orders: v.orders[1:], condition: func(b *builder) { b.add(v.apart.missing()) }}
	descending := v.orders[0].descending
	switch {
	case after == nil && descending:
		return []piece{present, absent}
	case after == nil:
		return []piece{absent, present}
	case after[0] == v.apart.none() && descending:
		return []piece{absent.after(absent.orders, after[1:])}
	case after[0] == v.apart.none():
		return []piece{absent.after(absent.orders, after[1:]), present}
	}
	orders := slices.Clone(v.orders)
	orders[0].null = false
	if present = present.after(orders, after); descending {
		return []piece{present, absent}
	}
	return []piece{present}
}

// valuedPieces divides the rows by the values of a field that has few. It returns false when there are too many values.
func (q *query) valuedPieces(ctx context.Context, db Store, v view, after []any) ([]piece, bool, error) {
	groups, ok, err := q.fewGroups(ctx, db, v.valued)
	if err != nil || !ok {
		return nil, false, err
	}
	groups = slices.Clone(groups)
	first := v.orders[0]
	slices.SortFunc(groups, func(a, b store.Group) int {
		if first.descending {
			a, b = b, a
		}
		return compareValues(a.Value, b.Value)
	})
	var pieces []piece
	for _, g := range groups {
		p := piece{rows: g.Rows, orders: v.orders[1:], condition: func(b *builder) {
			b.add(first.column)
			if g.Value == nil {
				b.add(" IS NULL")
			} else {
				b.add(" = ")
				b.arg(g.Value)
			}
		}}
		if q.searched {
			p.rows = -1
		}
		switch place := placeOf(first, g.Value, after); {
		case place == 0:
			pieces = append(pieces, p.after(p.orders, after[1:]))
		case place > 0:
			pieces = append(pieces, p)
		}
	}
	return pieces, true, nil
}

// placeOf compares a value of the first term of an order with that in a cursor: negative for a value before it, positive for one after it
// or without a cursor.
func placeOf(first order, value any, after []any) int {
	switch {
	case after == nil:
		return 1
	case first.descending:
		return compareValues(after[0], value)
	}
	return compareValues(value, after[0])
}

// after returns the rows of a piece after those with values.
func (p piece) after(orders []order, values []any) piece {
	return piece{rows: -1, orders: p.orders, condition: func(b *builder) {
		p.condition(b)
		b.add(" AND (", joined(segments(b, orders, values)), ")")
	}}
}

// conditionsOf returns the conditions of pieces, whose arguments are added to b. Without a piece there is no row.
func conditionsOf(pieces []piece, b *builder) []string {
	if len(pieces) == 0 {
		return []string{"FALSE"}
	}
	all := make([]string, len(pieces))
	for i, p := range pieces {
		all[i] = b.part(p.condition)
	}
	return all
}

// maxPieces bounds the pieces that are merged in one statement.
const maxPieces = 50

// maxApart bounds the rows with a text that are collected to tell the others apart, without reading these.
const maxApart = 100_000

// countPieces counts the rows of the two pieces of a field with an index apart.
func (q *query) countPieces(ctx context.Context, db Store, v view, pieces []piece) error {
	total, err := q.countRows(ctx, db, q.matching)
	if err != nil {
		return err
	}
	condition := q.matching.copy()
	condition.and()
	if q.searched && v.apart.Index == NullsApart { // SQLite would read each row of its index, which may be most
		condition.add("(", unindexed(v.apart.present()), ")")
	} else {
		condition.add(v.apart.present())
	}
	present, err := q.countRows(ctx, db, condition)
	if err != nil {
		return err
	}
	with, without := &pieces[0], &pieces[1]
	if !v.orders[0].descending {
		with, without = without, with
	}
	with.rows, without.rows = present, max(0, total-present)
	if v.apart.Index == EmptyApart && present <= maxApart {
		without.condition = func(b *builder) {
			b.add(q.id, " NOT IN (SELECT ", q.id, " FROM ", q.from, condition.sql(), ")")
		}
	}
	return nil
}

// piecedPage appends a statement that reads a page from those pieces that are on it. It reports false when rows must be skipped whose
// number is not known.
func (q *query) piecedPage(b *builder, columns string, v view, w window, pieces []piece) bool {
	if w.offset > 0 && slices.ContainsFunc(pieces, func(p piece) bool { return p.rows < 0 }) {
		return false
	}
	b.args = q.matching.args[:len(q.matching.args):len(q.matching.args)]
	condition := q.matching.sql()
	b.add("SELECT ", columns, " FROM ", q.from, " WHERE ", q.id, " IN (")
	skipped, wanted, next := w.offset, w.limit, ""
	for _, p := range pieces {
		if p.rows >= 0 && skipped >= p.rows {
			skipped -= p.rows
			continue
		}
		b.add(next, "SELECT part.id FROM (SELECT ", q.id, " AS id FROM ", q.from, condition, conjunction(condition))
		p.condition(b)
		b.add(" ORDER BY ", terms(p.orders), " LIMIT ")
		b.arg(w.limit)
		if skipped > 0 {
			b.add(" OFFSET ")
			b.arg(skipped)
		}
		b.add(") AS part")
		next = " UNION ALL "
		if p.rows >= 0 {
			wanted -= p.rows - skipped
		}
		if skipped = 0; wanted <= 0 {
			break
		}
	}
	if next == "" {
		b.add("SELECT ", q.id, " FROM ", q.from, " WHERE FALSE")
	}
	b.add(")")
	if condition != "" { // a row may have changed since
		b.add(" AND ", strings.TrimPrefix(condition, " WHERE "))
	}
	b.add(" ORDER BY ", terms(v.orders), " LIMIT ")
	b.arg(w.limit)
	return true
}

// fewGroups returns the number of visible rows for each value of a field with few values. It returns false when there are too many
// values.
func (q *query) fewGroups(ctx context.Context, db Store, f *Field) ([]store.Group, bool, error) {
	c := q.grouping(db, f.sortColumn(), q.visible)
	c.MaxGroups = maxDistinct
	groups, err := countNoted(ctx, db, c)
	if errors.Is(err, store.ErrTooManyGroups) {
		return nil, false, nil
	}
	return groups, err == nil, err
}

// countMatching returns the number of matching rows. For one searched field with few values it adds up the rows of the values.
func (l *List[T]) countMatching(ctx context.Context, db Store, q *query, p Params) (n int64, err error) {
	if len(p.search) == 1 && p.text == nil {
		if f := l.field(p.search[0].name); f.Few {
			groups, ok, err := q.fewGroups(ctx, db, f)
			if err != nil {
				return 0, err
			}
			if ok {
				for _, g := range groups {
					if f.meets(g.Value, p.search[0]) {
						n += g.Rows
					}
				}
				return n, nil
			}
		}
	}
	return q.countMatches(ctx, db)
}

// meets reports whether a stored value meets the condition that matching appends for the search.
func (f *Field) meets(value any, s search) bool {
	values := s.values
	switch {
	case f.Null && value == nil:
		return s.null || slices.Contains(values, "")
	case !f.Null && s.null:
		values = append(slices.Clone(values), nullWord)
	}
	return slices.ContainsFunc(values, func(given string) bool {
		if f.Type == Bool {
			return isTrue(value) && strings.EqualFold(given, "true") || !isTrue(value) && strings.EqualFold(given, "false")
		}
		text, _ := value.(string)
		switch {
		case strings.Trim(given, "*") == "" && given != "":
			return text != ""
		case strings.Contains(given, "*"):
			return matchesPattern(text, f.Fold(given))
		}
		return text == f.Fold(given)
	})
}

// isTrue returns a stored value of the type BOOLEAN, which is a number on SQLite.
func isTrue(value any) bool { return value == true || value == int64(1) }

// matchesPattern compares a text with a pattern in which asterisks stand for any characters, as LIKE does.
func matchesPattern(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		place := strings.Index(text, part)
		if place < 0 {
			return false
		}
		text = text[place+len(part):]
	}
	return ok && strings.HasSuffix(text, last)
}

// compareValues compares stored values as the databases order them: NULL first.
func compareValues(a, b any) int {
	if a == nil || b == nil {
		return cmp.Compare(presence(a), presence(b))
	}
	switch a := a.(type) {
	case string:
		b, _ := b.(string)
		return strings.Compare(a, b)
	case int64:
		b, _ := b.(int64)
		return cmp.Compare(a, b)
	case []byte:
		b, _ := b.([]byte)
		return bytes.Compare(a, b)
	}
	return cmp.Compare(presence(isTrue(a)), presence(isTrue(b)))
}

// presence orders what is missing before what is there.
func presence(value any) int {
	if value == nil || value == false {
		return 0
	}
	return 1
}
