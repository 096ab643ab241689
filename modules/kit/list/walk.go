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
	distinct  int64 // rows that are passed to find distinct values, at most
	round     int64 // rows after which those with values that were found are left out
}{1_000, 10_000, 50_000, 1_000_000, 20_000}

// walk returns the ids of the rows of a page of a search that many rows match: an index has the order of the page, and its first rows
// contain enough matching ones. The database would read all matching rows and sort them. It reports false when there is no such index, or
// after too many rows, since the matching rows may all be at the end. A caller who sees part of the rows has them by another index.
func (q *query) walk(ctx context.Context, db Store, v view, w window, pieces []piece) (ids []any, found bool, err error) {
	if w.depth() > maxMergedRows || v.orders[0].column == q.created || q.visible.sql() != q.base {
		return nil, false, nil
	}
	if pieces == nil && !v.unindexed {
		pieces = v.whole(w.after)
	}
	if pieces == nil {
		return nil, false, nil
	}
	// Eight times as many rows as there are before the page if the matching ones are spread evenly; and fewer than are sorted otherwise.
	f := &walked{query: q, wanted: w.depth(), limit: min(walks.rows, max(8*w.depth()*q.rows/q.matched, q.matched/10))}
	for _, p := range pieces {
		if err := f.read(ctx, db, p); err != nil {
			return nil, false, err
		}
		if int64(len(f.ids)) == f.wanted {
			break
		}
		if f.passed >= f.limit {
			return nil, false, nil
		}
	}
	return f.ids[min(w.offset, int64(len(f.ids))):], true, nil
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
	ids    []any
	wanted int64
	passed int64
	limit  int64 // of the rows to pass
}

// read reads rows of a piece until there are enough that match. The search is part of the result and not of the condition: SQLite would
// use its index instead of that of the order.
func (f *walked) read(ctx context.Context, db Store, p piece) error {
	visible, matching := f.visible.sql(), f.matching.sql()
	b := f.begun()
	search := strings.TrimPrefix(strings.TrimPrefix(matching, visible), conjunction(visible))
	b.add("SELECT CASE WHEN ", search, " THEN ", f.id, " END FROM ", f.from, visible, conjunction(visible))
	p.condition(b)
	b.add(" ORDER BY ", terms(p.orders), " LIMIT ")
	b.arg(f.limit - f.passed)
	done, err := plan{planWalk, whyWalk, b}.explain(ctx, db, stepPass)
	if err != nil {
		return err
	}
	before := f.passed
	defer func() { done(f.passed - before) }()
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
