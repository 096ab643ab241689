package list

import (
	"context"
	"strconv"
)

// page returns the statement that reads a page. With a stack, the value of the stacked field is the last column.
func (q *query) page(columns string, v view, p Params) *builder {
	if v.stack != nil {
		columns += ", " + v.stack.field.valueColumn()
	}
	depth := p.Offset() + int64(p.Limit())
	if q.merges() && v.distinct == nil && depth <= maxMergedRows && !q.few {
		return q.mergedPage(columns, v, p, depth)
	}
	b := q.rowsOf(v, "SELECT ", columns)
	b.pageEnd(v, p)
	return b
}

// pageEnd appends order, limit and offset.
func (b *builder) pageEnd(v view, p Params) {
	b.add(" ORDER BY ", terms(v.orders), " LIMIT ")
	b.arg(int64(p.Limit()))
	if p.Offset() > 0 {
		b.add(" OFFSET ")
		b.arg(p.Offset())
	}
}

// maxMergedRows bounds the depth up to which the alternatives of a condition are read one by one. Deeper pages are rare, and
// sorting all rows costs no more then.
const maxMergedRows = 1000

// mergedPage returns a statement that reads the first rows of each alternative of a condition by its own index, and takes the
// page from these rows. With OR, the database would sort the rows of all alternatives first.
func (q *query) mergedPage(columns string, v view, p Params, depth int64) *builder {
	matching := q.matching.sql()
	before, after := matching[:q.begin], matching[q.end:]
	b := &builder{args: q.matching.args[:len(q.matching.args):len(q.matching.args)]}
	b.args = append(b.args, depth)
	first := " ORDER BY " + terms(v.orders) + " LIMIT $" + strconv.Itoa(len(b.args)) + ") AS part"
	b.add("SELECT ", columns, " FROM ", q.from, " WHERE ", q.id, " IN (")
	for i, alternative := range q.any {
		if i > 0 {
			b.add(" UNION ")
		}
		b.add("SELECT part.id FROM (SELECT ", q.id, " AS id FROM ", q.from, before, "(", alternative, ")", after, first)
	}
	if q.granted != "" {
		// SQLite executes a CROSS JOIN in the order of the statement: the grants first, which are few.
		b.add(" UNION SELECT part.id FROM (WITH granted (granted_id) AS (", q.granted, ") SELECT ", q.id, " AS id FROM granted CROSS JOIN ",
			q.from, before, q.id, " = granted.granted_id", after, first)
	}
	b.add(")")
	b.pageEnd(v, p)
	return b
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

// distinctValues counts the values of a field among the matching rows. NULL counts as one value.
func (q *query) distinctValues(f *Field) *builder {
	b := q.matching.after("SELECT count(*) FROM (SELECT DISTINCT ", f.valueColumn(), " AS value FROM ", q.from)
	b.add(") AS found")
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

// arrange groups the rows of a page by their stored values and returns the ordered keys.
func (d *Data[T]) arrange(s *stack, stored []any) []string {
	places := map[string]int{}
	var groups []group
	for i, value := range stored {
		g := s.group(value)
		place, known := places[g.key]
		if !known {
			place = len(d.groups)
			places[g.key] = place
			groups = append(groups, g)
			d.groups = append(d.groups, rowGroup{key: g.key})
		}
		d.groups[place].rows = append(d.groups[place].rows, i)
	}
	s.sorted(groups)
	keys := make([]string, len(groups))
	ordered := make([]rowGroup, len(groups))
	for i, g := range groups {
		keys[i] = g.key
		ordered[i] = d.groups[places[g.key]]
	}
	d.groups = ordered
	return keys
}
