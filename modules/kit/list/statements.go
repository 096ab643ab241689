package list

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// page returns the statement that reads a page. After the columns come the value of the stacked field, with a stack, and what the
// rows are sorted by. after are the values of the row before the page, of a cursor; the statement then reads one row more.
func (q *query) page(ctx context.Context, db Store, columns string, v view, p Params, after []any) (*builder, error) {
	if v.stack != nil {
		columns += ", " + v.stack.field.valueColumn()
	}
	if !v.alone {
		for _, o := range v.orders {
			columns += ", " + o.column
		}
	}
	w := window{limit: int64(p.Limit()), offset: p.Offset(), after: after}
	if after != nil {
		w.limit++
	}
	if v.distinct != nil && v.distinct.valueColumn() == q.id {
		v.distinct = nil // all values are different
	}
	b := &builder{args: q.matching.args[:len(q.matching.args):len(q.matching.args)]}
	if v.distinct == nil {
		return b, q.plainPage(ctx, db, b, columns, v, w)
	}
	if after != nil {
		w.segments = segments(b, v.orders, after)
	}
	if q.alternates() {
		var err error
		if q, _, err = q.onlyAlternative(ctx, db); err != nil {
			return nil, err
		}
	}
	return b, q.distinctPage(ctx, db, b, columns, v, w)
}

// alternates reports whether the alternatives of a condition are read one by one. Few matches of a text are collected instead.
func (q *query) alternates() bool { return q.merges() && !q.few }

// plainPage appends the statement for a page without distinct.
func (q *query) plainPage(ctx context.Context, db Store, b *builder, columns string, v view, w window) error {
	pieces, divided, err := q.pieces(ctx, db, v, w.after)
	if err != nil {
		return err
	}
	if done, err := q.piecewisePage(ctx, db, b, columns, v, w, pieces); done || err != nil {
		return err
	}
	divided = divided && (v.apart != nil || len(pieces) <= maxLookups && w.depth() <= maxMergedRows)
	if divided {
		w.segments = conditionsOf(pieces, b)
	} else if w.after != nil {
		w.segments = segments(b, v.orders, w.after)
	}
	alternatives, deep := q.alternates(), w.depth() > maxMergedRows
	if alternatives && deep {
		if q, alternatives, err = q.onlyAlternative(ctx, db); err != nil {
			return err
		}
	}
	if deep && w.after == nil && !alternatives && q.text == nil {
		if done, err := q.deepPage(ctx, db, b, columns, v, w, pieces); done || err != nil {
			return err
		}
	}
	switch {
	case !deep && (alternatives || len(w.segments) > 1):
		q.mergedPage(b, columns, v, w)
	case deep || v.unindexed && !divided:
		q.latePage(b, columns, v, w)
	default:
		b.add("SELECT ", columns, " FROM ", q.from, q.condition(w))
		b.end(v, w)
	}
	return nil
}

// piecewisePage appends a statement for a page that needs few of the pieces of its order, if there is one.
func (q *query) piecewisePage(ctx context.Context, db Store, b *builder, columns string, v view, w window, pieces []piece) (done bool, err error) {
	switch {
	case q.merges() || q.text != nil:
		return false, nil
	case !q.searched:
		return pieces != nil && v.apart == nil && q.piecedPage(b, columns, v, w, pieces), nil
	case q.matched <= walks.collected && pieces != nil:
		q.collectedPage(b, columns, v, w)
		return true, nil
	case q.matched < walks.matches || slices.Contains(q.columns, v.orders[0].column): // one index has both, if any
		return false, nil
	}
	if done, err = q.walkedPage(ctx, db, b, columns, v, w, pieces); done || err != nil || v.apart == nil || w.after != nil {
		return done, err
	}
	if err := q.countPieces(ctx, db, v, pieces); err != nil {
		return false, err
	}
	return q.piecedPage(b, columns, v, w, pieces), nil
}

// window is the part of the rows that a page shows.
type window struct {
	limit, offset int64
	segments      []string // of which a row meets exactly one; nil: all rows
	after         []any    // the values of a cursor, which has the segments; nil: there is none
}

func (w window) depth() int64 { return w.offset + w.limit }

// condition returns the condition of the matching rows in a window.
func (q *query) condition(w window) string {
	if len(w.segments) == 0 {
		return q.matching.sql()
	}
	var b builder
	b.add(q.matching.sql())
	b.and()
	b.add("(", strings.Join(w.segments, " OR "), ")")
	return b.sql()
}

// end appends order, limit and offset.
func (b *builder) end(v view, w window) {
	b.add(" ORDER BY ", terms(v.orders), " LIMIT ")
	b.arg(w.limit)
	if w.offset > 0 {
		b.add(" OFFSET ")
		b.arg(w.offset)
	}
}

// maxMergedRows bounds the depth up to which the alternatives of a condition are read one by one. Deeper pages are rare, and
// sorting all rows costs no more then.
const maxMergedRows = 1000

// onlyAlternative returns the query without the granted rows, when nothing is granted and there is one other alternative. A deep page is
// then read from the index of that alternative. Otherwise it returns the query, and that it has alternatives.
func (q *query) onlyAlternative(ctx context.Context, db Store) (only *query, alternatives bool, err error) {
	if len(q.any) != 1 {
		return q, true, nil
	}
	granted, few, err := q.grantedKeys(ctx, db)
	if err != nil || !few || len(granted) > 0 {
		return q, true, err
	}
	alone := *q
	matching := q.matching.sql()
	alone.matching = &builder{args: q.matching.args}
	alone.matching.add(matching[:q.begin], "(", q.any[0], ")", matching[q.end:])
	return &alone, false, nil
}

// mergedPage appends a statement that reads the first rows of each alternative and segment by its own index, and takes the
// page from these rows. With OR, the database would sort the rows of all of them first.
func (q *query) mergedPage(b *builder, columns string, v view, w window) {
	matching := q.matching.sql()
	before, after := matching, ""
	if q.merges() {
		before, after = matching[:q.begin], matching[q.end:]
	}
	b.args = append(b.args, w.depth())
	first := " ORDER BY " + terms(v.orders) + " LIMIT $" + strconv.Itoa(len(b.args)) + ") AS part"
	next := ""
	each := func(from, condition string) {
		for _, segment := range append([]string(nil), w.all()...) {
			b.add(next, "SELECT part.id FROM (", from, before, condition, after)
			if segment != "" {
				b.add(conjunction(matching), segment)
			}
			b.add(first)
			next = " UNION "
		}
	}
	b.add("SELECT ", columns, " FROM ", q.from, " WHERE ", q.id, " IN (")
	if !q.merges() {
		each("SELECT "+q.id+" AS id FROM "+q.from, "")
	} else {
		for _, alternative := range q.any {
			each("SELECT "+q.id+" AS id FROM "+q.from, "("+alternative+")")
		}
		if q.granted != "" {
			// SQLite executes a CROSS JOIN in the order of the statement: the grants first, which are few.
			each("WITH granted (granted_id) AS ("+q.granted+") SELECT "+q.id+" AS id FROM granted CROSS JOIN "+q.from, q.id+" = granted.granted_id")
		}
	}
	b.add(")", q.again())
	b.end(v, w)
}

// all returns the segments, or one without a condition.
func (w window) all() []string {
	if len(w.segments) == 0 {
		return []string{""}
	}
	return w.segments
}

// conjunction returns what joins a further condition to a statement with this condition.
func conjunction(condition string) string {
	if condition == "" {
		return " WHERE "
	}
	return " AND "
}

// again returns the condition of the matching rows to follow one on their ids, when another row may have the same id.
func (q *query) again() string {
	if !strings.Contains(q.from, " JOIN ") || q.matching.sql() == "" {
		return ""
	}
	return " AND " + strings.TrimPrefix(q.matching.sql(), " WHERE ")
}

// latePage appends a statement that finds the ids of the rows of a page first, and reads only these rows. An index that has all
// columns of search and sort is then enough for the rows that are skipped or sorted.
func (q *query) latePage(b *builder, columns string, v view, w window) {
	b.add("SELECT ", columns, " FROM ", q.from, " WHERE ", q.id, " IN (SELECT part.id FROM (SELECT ", q.id, " AS id FROM ", q.from, q.condition(w))
	b.end(v, w)
	b.add(") AS part)", q.again(), " ORDER BY ", terms(v.orders))
}

// collectedPage appends a statement that finds all matching rows, which are few, by an index of the search, and sorts them.
func (q *query) collectedPage(b *builder, columns string, v view, w window) {
	if w.after != nil {
		w.segments = segments(b, v.orders, w.after)
	}
	b.add("SELECT ", columns, " FROM ", q.from, " WHERE ", q.id, " IN (SELECT ", q.id, " FROM ", q.from, q.condition(w), ")", q.again())
	b.end(v, w)
}

// rowsOf begins a statement over the matching rows; with distinct, over the first row of each value in the order.
func (q *query) rowsOf(v view, columns ...string) *builder {
	if v.distinct == nil {
		return q.matching.after(append(columns, " FROM ", q.from)...)
	}
	b := q.matching.after(append(columns,
		" FROM ", q.from, " WHERE ", q.id, " IN (SELECT ranked.id FROM (SELECT ", q.id, " AS id, row_number() OVER (PARTITION BY ",
		v.distinct.valueColumn(), " ORDER BY ", terms(v.orders), ") AS place FROM ", q.from)...)
	b.add(") AS ranked WHERE ranked.place = 1)")
	return b
}
