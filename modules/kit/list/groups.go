package list

import "context"

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
