package list

import (
	"context"
	"strings"
)

// walks bounds how many rows are passed to find a page in its order.
var walks = struct {
	collected int64 // matching rows that are collected and sorted, at most
	matches   int64 // how many rows must match a search; fewer are sorted
	rows      int64 // that are passed
	pieces    int   // that are sorted one after the other
	distinct  int64 // rows that are passed to find distinct values, at most
	round     int64 // rows after which those with values that were found are left out
}{1_000, 10_000, 50_000, 20, 1_000_000, 20_000}

// walkedPage appends the statement for a page of a search that many rows match: an index has the order of the page, and its first rows
// contain enough matching ones. The database would read all matching rows and sort them. It reports false when there is no such index,
// or after too many rows, since the matching rows may all be at the end. A caller who sees part of the rows has them by another index.
func (q *query) walkedPage(ctx context.Context, db Store, b *builder, columns string, v view, w window, pieces []piece) (bool, error) {
	if w.depth() > maxMergedRows || v.orders[0].column == q.created || q.visible.sql() != q.base {
		return false, nil
	}
	// Eight times as many rows as there are before the page if the matching ones are spread evenly; and fewer than are sorted otherwise.
	f := &walked{query: q, wanted: w.depth(), limit: min(walks.rows, max(8*w.depth()*q.rows/q.matched, q.matched/10))}
	switch {
	case pieces != nil:
	case v.first != nil:
		groups, few, err := q.firstPieces(ctx, db, v, w.after)
		if err != nil {
			return false, err
		}
		if pieces, f.sorts = groups, few; !few { // those with the same value are few
			pieces = v.whole(w.after)
		}
	case !v.unindexed:
		pieces = v.whole(w.after)
	}
	if pieces == nil {
		return false, nil
	}
	complete, err := f.walk(ctx, db, pieces)
	if complete && err == nil {
		q.chosen(b, columns, v, f.ids[min(w.offset, int64(len(f.ids))):])
	}
	return complete, err
}

// whole returns the rows after those of a cursor as one piece, or nil if one index does not have them in their order.
func (v view) whole(after []any) []piece {
	if after != nil && !uniform(v.orders) {
		return nil
	}
	return []piece{{orders: v.orders, condition: func(b *builder) {
		if after == nil {
			b.add("TRUE")
			return
		}
		args := &builder{args: b.args}
		beyond := segments(args, v.orders, after)
		b.args = args.args
		b.add(beyond[0])
	}}}
}

// walked collects the first matching rows in an order.
type walked struct {
	*query
	sorts  bool // no index has the order of the rows of a piece: all of its matching rows are sorted
	ids    []any
	wanted int64
	passed int64
	limit  int64 // of the rows to pass
}

// walk reads the pieces in their order. It reports false when it stops before it has enough rows.
func (f *walked) walk(ctx context.Context, db Store, pieces []piece) (complete bool, err error) {
	for i, p := range pieces {
		if f.sorts && i == walks.pieces {
			return false, nil
		}
		if err := f.read(ctx, db, p); err != nil {
			return false, err
		}
		switch {
		case int64(len(f.ids)) == f.wanted:
			return true, nil
		case !f.sorts && f.passed >= f.limit:
			return false, nil
		}
	}
	return true, nil
}

// read reads rows of a piece until there are enough that match. The search is part of the result and not of the condition: SQLite would
// use its index instead of that of the order.
func (f *walked) read(ctx context.Context, db Store, p piece) error {
	visible, matching := f.visible.sql(), f.matching.sql()
	b := &builder{args: f.matching.args[:len(f.matching.args):len(f.matching.args)]}
	if f.sorts {
		b.add("SELECT ", f.id, " FROM ", f.from, matching, conjunction(matching))
	} else {
		search := strings.TrimPrefix(strings.TrimPrefix(matching, visible), conjunction(visible))
		b.add("SELECT CASE WHEN ", search, " THEN ", f.id, " END FROM ", f.from, visible, conjunction(visible))
	}
	p.condition(b)
	b.add(" ORDER BY ", terms(p.orders), " LIMIT ")
	if f.sorts {
		b.arg(f.wanted - int64(len(f.ids)))
	} else {
		b.arg(f.limit - f.passed)
	}
	rows, err := db.Query(ctx, b.sql(), b.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for int64(len(f.ids)) < f.wanted && rows.Next() {
		var id any
		if err := rows.Scan(&id); err != nil {
			return err
		}
		f.passed++
		if id != nil {
			f.ids = append(f.ids, id)
		}
	}
	return rows.Err()
}

// chosen appends the statement for rows that were found. A row may have changed since. Only the ids are looked up: SQLite would use the
// index of the search.
func (q *query) chosen(b *builder, columns string, v view, ids []any) {
	b.args = q.matching.args[:len(q.matching.args):len(q.matching.args)]
	b.add("SELECT ", columns, " FROM ", q.from, " WHERE ")
	if !oneOf(b, q.id, ids) {
		b.add("FALSE")
	}
	if condition := q.matching.sql(); condition != "" {
		b.add(" AND ", unindexed(strings.TrimPrefix(condition, " WHERE ")))
	}
	b.add(" ORDER BY ", terms(v.orders))
}
