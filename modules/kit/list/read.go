package list

import (
	"context"
	"fmt"
	"strings"

	"kontor/server/endpoint"
	"kontor/store"
)

// found is a page without its rows.
type found struct {
	stacked                bool
	total, totalUnfiltered int64
	hasMore                bool
	nextCursor             string
	groups                 []rowGroup
	keys                   []string
	metadata               *Metadata
	order                  []int // positions of the rows of the page; nil: all that were read, in the order in which they were
}

// lightRows is how many rows a page may have whose memory needs no limit.
const lightRows = 20

// page reads what [List.Page] returns, and adds the rows to into.
func (l *List[T]) page(ctx context.Context, db Store, p Params, conditions []Where, into collector) (page found, err error) {
	q, err := l.query(p, conditions)
	if err != nil {
		return page, err
	}
	if p.Limit() > lightRows {
		if err := endpoint.TakeTurn(ctx); err != nil {
			return page, err
		}
	}
	page.stacked = p.Stacked()
	if page.totalUnfiltered, err = q.countRows(ctx, db, q.visible); err != nil {
		return page, err
	}
	if err := q.matchText(ctx, db, p.text); err != nil {
		return page, err
	}
	matched := page.totalUnfiltered
	switch {
	case q.nothing:
		matched = 0
	case q.searched && matched > 0:
		if matched, err = l.countMatching(ctx, db, q, p); err != nil {
			return page, err
		}
	}
	q.rows, q.matched = page.totalUnfiltered, matched
	// The fields of sort and stack are checked only when there are rows to read.
	if page.total = matched; matched == 0 {
		return page, nil
	}
	v, refusal := l.view(p)
	if refusal != nil && p.Limit() != skipRows {
		return page, refusal
	}
	if v.distinct != nil {
		if page.total, err = q.countValues(ctx, db, v.distinct, matched); err != nil {
			return page, err
		}
	}
	switch {
	case p.Limit() == skipRows:
	case q.isRanked(p, page.total):
		err = l.readRanked(ctx, db, q, p, conditions, &page, into)
	default:
		err = l.read(ctx, db, q, v, p, &page, into)
	}
	return page, err
}

// read reads the rows of the page and groups them.
func (l *List[T]) read(ctx context.Context, db Store, q *query, v view, p Params, page *found, into collector) error {
	var stored []any
	bound := q.binding(v, p)
	var after []any
	if p.cursor != "" {
		ok := false
		if after, ok = unseal(db, p.cursor, bound, len(v.orders)); !ok {
			return wrongCursor()
		}
	}
	if p.Offset() < page.total {
		read, err := l.fetch(ctx, db, q, v, p, after, bound, into)
		if err != nil {
			return fmt.Errorf("read a page of %s: %w", q.name, err)
		}
		stored = read.stacked
		page.hasMore = read.more || after == nil && read.rows > 0 && p.Offset() < page.total-int64(read.rows)
		if page.hasMore && read.last != nil {
			if page.nextCursor, err = seal(db, bound, read.last); err != nil {
				return fmt.Errorf("the cursor after a page of %s: %w", q.name, err)
			}
		}
	}
	if v.stack == nil {
		return nil
	}
	page.groups, page.keys = v.stack.arrange(stored)
	totals, err := q.groupTotals(ctx, db, v, page.keys)
	if err != nil {
		return fmt.Errorf("count the groups of %s: %w", q.name, err)
	}
	if len(totals) > 0 {
		page.metadata = &Metadata{GroupTotals: totals}
	}
	return nil
}

// result is what a statement of a page has read, beside the rows.
type result struct {
	rows    int
	stacked []any // values of the stacked field
	last    []any // what the last row is sorted by
	more    bool  // there is a further row
}

// fetch reads the rows of a page. bound is what a cursor is bound to.
func (l *List[T]) fetch(ctx context.Context, db Store, q *query, v view, p Params, after []any, bound []byte, into collector) (result, error) {
	var place hint
	kept, keeps := into.(*keptRows)
	if keeps {
		place = kept.hints.place(bound, v, p)
	}
	if place.set() {
		chosen, done, err := q.chosenPage(ctx, db, l.source.ID, v, p, after)
		if err != nil {
			return result{}, err
		}
		read, known, err := kept.readKnown(ctx, db, chosen, v, p.Limit())
		if done(int64(read.rows)); err != nil || known {
			return read, err
		}
		place.clear()
	}
	chosen, done, err := q.chosenPage(ctx, db, l.source.Columns, v, p, after)
	if err != nil {
		return result{}, err
	}
	read, err := l.rows(ctx, db, chosen, v, p.Limit(), into)
	if done(int64(read.rows)); err == nil && keeps && kept.known {
		place.put()
	}
	return read, err
}

// chosenPage chooses the statement of a page, and begins its step in the explanation of the request.
func (q *query) chosenPage(ctx context.Context, db Store, columns string, v view, p Params, after []any) (*builder, func(rows int64), error) {
	chosen, err := q.choose(ctx, db, columns, v, p, after)
	if err != nil {
		return nil, nil, err
	}
	done, err := chosen.explain(ctx, db, stepPage)
	return chosen.builder, done, err
}

// rows runs the statement of a page. The columns after those of the scanner are the value of the stacked field and what the rows are
// sorted by. A statement for a page after a cursor returns a row more than the limit.
func (l *List[T]) rows(ctx context.Context, db store.Querier, b *builder, v view, limit int, into collector) (read result, err error) {
	into.begin(ctx)
	rows, err := db.Query(ctx, b.sql(), b.args...)
	if err != nil {
		return read, err
	}
	defer rows.Close()
	further := furtherColumns{rows: rows, stacked: v.stack != nil, sorted: len(v.orders)}
	for rows.Next() {
		if read.rows == limit {
			read.more = true
			return read, nil
		}
		further.end = read.rows == limit-1 // only the last row of a full page needs a cursor after it
		if err := into.add(&further); err != nil {
			return read, err
		}
		read.last = further.last
		read.rows++
		if further.stacked {
			read.stacked = append(read.stacked, further.value)
		}
	}
	return read, rows.Err()
}

// collector appends the rows that statements read. Only it depends on their type.
type collector interface {
	// begin is called before each statement whose rows are added.
	begin(ctx context.Context)
	// add scans a row.
	add(row Row) error
}

// collected are the rows of a list.
type collected[T any] struct {
	scan func(row Row) (T, error)
	rows []T
}

func (*collected[T]) begin(context.Context) {}

func (c *collected[T]) add(row Row) error {
	item, err := c.scan(row)
	if err != nil {
		return err
	}
	if c.rows == nil {
		c.rows = make([]T, 0, defaultLimit)
	}
	c.rows = append(c.rows, item)
	return nil
}

// inOrder returns the rows at these positions; nil: all rows.
func inOrder[T any](rows []T, positions []int) []T {
	switch {
	case positions == nil && rows == nil:
		return []T{}
	case positions == nil:
		return rows
	}
	ordered := make([]T, len(positions))
	for i, at := range positions {
		ordered[i] = rows[at]
	}
	return ordered
}

// furtherColumns passes the first columns to the module's scanner and keeps the others.
type furtherColumns struct {
	rows    *store.Rows
	stacked bool
	sorted  int  // how many columns there are of what the row is sorted by
	end     bool // keep them
	value   any
	last    []any
	dest    []any
}

// Scan reads the columns of the scanner, the value of the stacked field, and what the row is sorted by.
func (r *furtherColumns) Scan(dest ...any) error {
	r.dest = append(r.dest[:0], dest...)
	if r.stacked {
		r.dest = append(r.dest, &r.value)
	}
	r.last = nil
	if r.end {
		r.last = make([]any, r.sorted)
	}
	for i := range r.sorted {
		if r.end {
			r.dest = append(r.dest, &r.last[i])
		} else {
			r.dest = append(r.dest, store.Ignored)
		}
	}
	return r.rows.Scan(r.dest...)
}

// SetPage selects a page whose limit may exceed that of clients, see [endpoint.Pageable].
func (p *Params) SetPage(limit int, offset int64) { p.limit, p.offset = limit, offset }

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
		b.add(segments(b, v.orders, after)[0])
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
	passed, err := plan{planWalk, whyWalk, b}.pass(ctx, db, func(row Row) (more bool, err error) {
		var id any
		if err = row.Scan(&id); id != nil {
			f.ids = append(f.ids, id)
		}
		return int64(len(f.ids)) < f.wanted, err
	})
	f.passed += passed
	return err
}

// pass calls read for each row of the statement, until it returns that no further row is needed, and returns how many there were.
func (p plan) pass(ctx context.Context, db Store, read func(row Row) (more bool, err error)) (passed int64, err error) {
	done, err := p.explain(ctx, db, stepPass)
	if err != nil {
		return 0, err
	}
	defer func() { done(passed) }()
	rows, err := db.Query(ctx, p.sql(), p.args...)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for rows.Next() {
		passed++
		if more, err := read(rows); err != nil || !more {
			return passed, err
		}
	}
	return passed, rows.Err()
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
