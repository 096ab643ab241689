package list

import (
	"context"
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
	w := window{limit: int64(p.Limit()), offset: p.Offset()}
	b := &builder{args: q.matching.args[:len(q.matching.args):len(q.matching.args)]}
	if v.distinct != nil && v.distinct.valueColumn() == q.id {
		v.distinct = nil // all values are different
	}
	if w.after = after; after != nil {
		w.limit++
	}
	var pieces []piece
	divided := false
	if v.distinct == nil {
		var err error
		if pieces, divided, err = q.pieces(ctx, db, v, after); err != nil {
			return nil, err
		}
		if divided && v.apart == nil && !q.searched && !q.merges() && q.piecedPage(b, columns, v, w, pieces) {
			return b, nil
		}
		if done, err := q.walkedPage(ctx, db, b, columns, v, w, pieces); done || err != nil {
			return b, err
		}
		divided = divided && (v.apart != nil || len(pieces) <= maxLookups && w.depth() <= maxMergedRows)
	}
	if divided {
		w.segments = conditionsOf(pieces, b)
	} else if after != nil {
		w.segments = segments(b, v.orders, after)
	}
	alternatives := q.merges() && !q.few
	if alternatives && (v.distinct != nil || w.depth() > maxMergedRows) {
		ungranted, err := q.onlyAlternative(ctx, db)
		if err != nil {
			return nil, err
		}
		if ungranted != nil {
			q, alternatives = ungranted, false
		}
	}
	deep := w.depth() > maxMergedRows && after == nil && !alternatives && v.distinct == nil && q.text == nil
	many := q.searched && q.matched >= walks.matches && after == nil && !q.merges() && v.distinct == nil && q.text == nil
	if v.apart != nil && (deep || many) {
		if err := q.countPieces(ctx, db, v, pieces); err != nil {
			return nil, err
		}
		if q.piecedPage(b, columns, v, w, pieces) {
			return b, nil
		}
	} else if deep && v.first != nil {
		grouped := v
		grouped.valued = v.first
		groups, few, err := q.valuedPieces(ctx, db, grouped, nil)
		if err != nil {
			return nil, err
		}
		if few && q.piecedPage(b, columns, v, w, groups) {
			return b, nil
		}
		if done, err := q.deepPage(ctx, db, b, columns, v, w); done || err != nil {
			return b, err
		}
	}
	switch {
	case v.distinct != nil:
		if err := q.distinctPage(ctx, db, b, columns, v, w); err != nil {
			return nil, err
		}
	case w.depth() <= maxMergedRows && (alternatives || len(w.segments) > 1):
		q.mergedPage(b, columns, v, w)
	case w.depth() > maxMergedRows || v.unindexed && !divided:
		q.latePage(b, columns, v, w)
	default:
		b.add("SELECT ", columns, " FROM ", q.from, q.condition(w))
		b.end(v, w)
	}
	return b, nil
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

// onlyAlternative returns the query without the granted rows, when nothing is granted and there is one other alternative, else nil.
// A deep page is then read from the index of that alternative.
func (q *query) onlyAlternative(ctx context.Context, db Store) (*query, error) {
	if len(q.any) != 1 {
		return nil, nil
	}
	granted, few, err := q.grantedKeys(ctx, db)
	if err != nil || !few || len(granted) > 0 {
		return nil, err
	}
	alone := *q
	matching := q.matching.sql()
	alone.matching = &builder{args: q.matching.args}
	alone.matching.add(matching[:q.begin], "(", q.any[0], ")", matching[q.end:])
	return &alone, nil
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
	rows, err := db.Query(ctx, b.sql(), b.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var stored any
		var n int64
		if err := rows.Scan(&stored, &n); err != nil {
			return nil, err
		}
		counts.add(v.stack.group(stored), n)
	}
	return counts.totals(v.stack), rows.Err()
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
