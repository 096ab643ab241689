package list

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxLookups bounds the values whose first rows are looked up one by one.
	maxLookups = 50
	// The rows that are read in their order to find the first ones of a page of values. After these, values that were not found are
	// looked up, or all rows are ranked.
	passedInOrder  = 1_000     // an index has the rows of each value in the order of their creation
	passedIndexed  = 20_000    // another index
	passedSorted   = 100_000   // the page has another order
	passedFew      = 300_000   // few values without an index
	passedUnsorted = 1_000_000 // other fields
)

// passed returns how many rows are read in their order, and whether values are looked up after these.
func (q *query) passed(v view) (limit int64, lookups bool) {
	f := v.distinct
	lookups = len(q.values) > 0 && len(q.values) <= maxLookups && q.matching.sql() == q.base
	switch {
	case !lookups:
		return passedUnsorted, false
	case v.orders[0].column != q.created && v.orders[0].column != q.id:
		return passedSorted, true
	case f.Index == ThenCreated, f.Index == NullsApart, f.Index == EmptyApart, f.Index == First:
		return passedInOrder, true
	case f.leads(q.created):
		return passedIndexed, true
	case f.Few:
		return passedFew, true
	}
	return passedUnsorted, false
}

// distinctPage appends the statement for the first row of each value. Rows are passed in their order until the page is full or each
// value was found, which few rows are enough for unless a value is rare or the page far behind the first.
func (q *query) distinctPage(ctx context.Context, db Store, b *builder, columns string, v view, w window) error {
	limit, lookups := q.passed(v)
	limit = min(limit, walks.distinct)
	ids, seen, left, err := q.firsts(ctx, db, b.args, v, w, limit)
	if err != nil {
		return err
	}
	switch {
	case left == nil:
		q.chosen(b, columns, v, ids)
		return nil
	case lookups:
		q.lookups(b, columns, v, w, seen, left)
		return nil
	}
	b.add(q.rowsOf(v, "SELECT ", columns).sql())
	if len(w.segments) > 0 {
		b.add(" AND (", strings.Join(w.segments, " OR "), ")")
	}
	b.end(v, w)
	return nil
}

// firsts returns the ids of the rows of a page of distinct values. When they are not among the first rows in the order, left are the pieces
// of the other rows, and seen has the ids of the first rows of the values that were found.
func (q *query) firsts(ctx context.Context, db Store, args []any, v view, w window, limit int64) (ids []any, seen map[any]any, left []piece, err error) {
	later := "TRUE"
	if w.after != nil {
		later = unindexed(strings.Join(w.segments, " OR "))
	}
	pieces, divided, err := q.pieces(ctx, db, v, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	if !divided {
		pieces = v.whole(nil)
	}
	f := &firstRows{seen: map[any]any{}, skip: w.offset, wanted: w.limit, values: q.total}
	for i, p := range pieces {
		for round, last := walks.round, false; !last; round *= roundGrowth {
			b := &builder{args: args[:len(args):len(args)]}
			b.add("SELECT ", q.id, ", ", v.distinct.valueColumn(), ", ", later, " FROM ", q.from, q.matching.sql(), conjunction(q.matching.sql()))
			p.condition(b)
			rows := min(round, limit-f.passed)
			if !f.exclude(b, v.distinct.valueColumn()) {
				rows = limit - f.passed
			}
			b.add(" ORDER BY ", terms(p.orders), " LIMIT ")
			b.arg(rows)
			before := f.passed
			complete, err := f.read(ctx, db, b)
			switch last = f.passed-before < rows; {
			case complete || err != nil:
				return f.ids, f.seen, nil, err
			case f.passed >= limit:
				return f.ids, f.seen, pieces[i:], nil
			}
		}
	}
	return f.ids, f.seen, nil, nil
}

const (
	// roundGrowth is how many times more rows a round passes than the one before.
	roundGrowth = 4
	// maxExcluded bounds the values whose rows are left out.
	maxExcluded = 500
)

// exclude appends the condition of the rows whose values were not seen, and reports whether there are few enough values for it. One value
// may have nearly all rows. As one expression, it does not make SQLite use another index.
func (f *firstRows) exclude(b *builder, value string) bool {
	if len(f.seen) == 0 || len(f.seen) > maxExcluded {
		return len(f.seen) == 0
	}
	var known []any
	missing := "TRUE"
	for seen := range f.seen {
		if seen == nil {
			missing = "FALSE"
		} else {
			known = append(known, seen)
		}
	}
	b.add(" AND CASE WHEN ", value, " IS NULL THEN ", missing)
	if len(known) > 0 {
		b.add(" WHEN ")
		oneOf(b, value, known)
		b.add(" THEN FALSE")
	}
	b.add(" ELSE TRUE END")
	return true
}

// firstRows collects the first row of each value.
type firstRows struct {
	seen           map[any]any // ids by value
	ids            []any       // of the page
	skip, wanted   int64       // rows before the page, and on it
	values, passed int64       // how many values there are, and how many rows were read
}

// read reads rows in their order. It reports whether no further row is needed.
func (f *firstRows) read(ctx context.Context, db Store, b *builder) (complete bool, err error) {
	rows, err := db.Query(ctx, b.sql(), b.args...)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	for rows.Next() {
		f.passed++
		var id, value any
		var beyond bool
		if err := rows.Scan(&id, &value, &beyond); err != nil {
			return false, err
		}
		if _, again := f.seen[value]; again {
			continue
		}
		f.seen[value] = id
		if beyond {
			if f.skip--; f.skip < 0 {
				f.ids = append(f.ids, id)
			}
		}
		if int64(len(f.ids)) == f.wanted || int64(len(f.seen)) == f.values {
			return true, nil
		}
	}
	return false, rows.Err()
}

// lookups appends the statement for the first row of each known value. Those that were not seen are looked up, which an index of the field
// does without reading other rows, in the pieces that are left. A value that came up a moment ago may be missing: the total does not count
// it either.
func (q *query) lookups(b *builder, columns string, v view, w window, seen map[any]any, left []piece) {
	b.add("SELECT ", columns, " FROM ", q.from, " WHERE (")
	if len(left) > 2 { // a statement has a largest number of parts
		left = v.whole(nil)
	}
	ids := slices.Collect(maps.Values(seen))
	or := alternatives{b: b}
	if len(ids) > 0 {
		or.next()
		oneOf(b, q.id, ids)
	}
	or.next()
	b.add(q.id, " IN (")
	next := ""
	for _, g := range q.values {
		if _, known := seen[g.Value]; known {
			continue
		}
		b.add(next, "SELECT part.id FROM (")
		for i, p := range left {
			if i > 0 {
				b.add(" UNION ALL ")
			}
			b.add("SELECT first.id, ", strconv.Itoa(i), " AS place FROM (SELECT ", q.id, " AS id FROM ", q.from, q.matching.sql(), conjunction(q.matching.sql()))
			v.distinct.is(b, g.Value)
			b.add(" AND ")
			p.condition(b)
			b.add(" ORDER BY ", terms(p.orders), " LIMIT 1) AS first")
		}
		b.add(" ORDER BY place LIMIT 1) AS part")
		next = " UNION ALL "
	}
	if next == "" {
		b.add("SELECT ", q.id, " FROM ", q.from, " WHERE FALSE")
	}
	b.add(")")
	or.close()
	b.add(")")
	if condition := q.matching.sql(); condition != "" { // a row may have changed since
		b.add(" AND ", strings.TrimPrefix(condition, " WHERE "))
	}
	if len(w.segments) > 0 {
		b.add(" AND (", strings.Join(w.segments, " OR "), ")")
	}
	b.end(v, w)
}
