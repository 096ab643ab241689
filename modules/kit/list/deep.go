package list

import (
	"context"
	"errors"
	"strings"

	"kontor/store"
)

// deepPage appends a statement for a page far behind the first one, in an order whose pieces are counted or that has no further terms in its
// index. It reports false for other orders.
func (q *query) deepPage(ctx context.Context, db Store, b *builder, columns string, v view, w window, pieces []piece) (bool, error) {
	switch {
	case v.apart != nil:
		if err := q.countPieces(ctx, db, v, pieces); err != nil {
			return false, err
		}
		return q.piecedPage(b, columns, v, w, pieces), nil
	case v.orders[0].column == q.id && q.hidden != "" && q.matching.sql() == q.base:
		q.pageByID(b, columns, v, w)
		return true, nil
	case v.first == nil:
		return false, nil
	}
	groups, few, err := q.firstPieces(ctx, db, v, nil)
	if err != nil {
		return false, err
	}
	if few && q.piecedPage(b, columns, v, w, groups) {
		return true, nil
	}
	return q.placedPage(ctx, db, b, columns, v, w)
}

// pageByID appends a statement for a page of all rows in the order of their ids. The index of the ids does not say which rows are hidden: these
// few are left out by their ids, so that the rows that are skipped are not read.
func (q *query) pageByID(b *builder, columns string, v view, w window) {
	b.add("SELECT ", columns, " FROM ", q.from, " WHERE ", q.id, " IN (SELECT part.id FROM (SELECT ", q.id, " AS id FROM ", q.from,
		" WHERE ", q.id, " NOT IN (SELECT ", q.id, " FROM ", q.from, " WHERE ", q.hidden, ")")
	b.end(v, w)
	b.add(") AS part) AND ", strings.TrimPrefix(q.base, " WHERE "), " ORDER BY ", terms(v.orders))
}

// firstPieces divides the rows by the values of a field whose index has no further terms. It returns false when there are too many.
func (q *query) firstPieces(ctx context.Context, db Store, v view, after []any) ([]piece, bool, error) {
	v.valued = v.first
	return q.valuedPieces(ctx, db, v, after)
}

// placedPage appends a statement for a page far behind the first one in the order of a field whose index does not end with the id. The index
// alone says which value the page begins with, and how many rows are before that value. It reports false when no row is left.
func (q *query) placedPage(ctx context.Context, db Store, b *builder, columns string, v view, w window) (bool, error) {
	column, before, from := v.orders[0].column, " < ", " >= "
	if v.orders[0].descending {
		before, from = " > ", " <= "
	}
	find := q.matching.after("SELECT ", column, " FROM ", q.from)
	find.add(conjunction(q.matching.sql()), v.first.least()) // else SQLite may sort another index
	find.add(" ORDER BY ", terms(v.orders[:1]), " LIMIT 1 OFFSET ")
	find.arg(w.offset)
	var value any
	if err := db.QueryRow(ctx, find.sql(), find.args...).Scan(&value); errors.Is(err, store.ErrNotFound) || err == nil && value == nil {
		return false, nil
	} else if err != nil {
		return false, err
	}
	count := q.matching.after("SELECT count(*) FROM ", q.from)
	count.add(conjunction(q.matching.sql()), column, before)
	count.arg(value)
	var skipped int64
	if err := db.QueryRow(ctx, count.sql(), count.args...).Scan(&skipped); err != nil {
		return false, err
	}
	place := &builder{args: b.args}
	place.add(column, from)
	place.arg(value)
	b.args, w.segments, w.offset = place.args, []string{place.sql()}, max(0, w.offset-skipped)
	q.latePage(b, columns, v, w)
	return true, nil
}
