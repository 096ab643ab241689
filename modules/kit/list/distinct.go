package list

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kontor/store"
)

const (
	// maxDistinct bounds the values whose numbers of rows are remembered for a total of distinct values.
	maxDistinct = 1000
	// maxLookups bounds the values whose first rows are looked up one by one.
	maxLookups = 50
	// soonPassed and maxPassed bound the rows that are read in their order to find the first ones of a page of values. After the
	// first number, an index that finds each value is quicker.
	soonPassed = 20_000
	maxPassed  = 1_000_000
)

// countValues returns the number of different values of a field in the matching rows, of which there is at least one. NULL counts as
// a value.
func (q *query) countValues(ctx context.Context, db Store, f *Field, matched int64) (n int64, err error) {
	defer func() { q.total = n }()
	switch f.valueColumn() {
	case q.id:
		return matched, nil
	case "''":
		return 1, nil
	}
	all := q.counting(db, f.valueColumn(), q.matching)
	all.Each = strings.Replace(all.SQL, countedRows, "", 1)
	all.SQL += " GROUP BY 1"
	c := all
	indexed := f.leads(q.created) && q.matching.sql() == q.base && !strings.Contains(q.from, " JOIN ")
	if indexed {
		c, all.Each = q.skipScan(f), ""
	}
	c.MaxGroups = maxDistinct
	groups, err := db.Count(ctx, memoKey(c.SQL, c.Args), c)
	if err == nil {
		q.values = groups
		return int64(len(groups)), nil
	}
	if errors.Is(err, store.ErrTooManyGroups) {
		n, err = db.CountValues(ctx, memoKey(all.SQL, all.Args), all)
	}
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, store.ErrTooManyGroups) {
		return 0, fmt.Errorf("count the values of %s: %w", q.name, err)
	}
	different := q.matching.after("SELECT ", f.valueColumn(), " AS value FROM ", q.from)
	n, err = db.Memo(ctx, memoKey(different.sql(), different.args), plainNames(q.tables), func() (n int64, err error) {
		if indexed { // the values come in their order
			return n, db.QueryRow(ctx, "SELECT count(*) FROM (SELECT DISTINCT value FROM ("+different.sql()+") AS each) AS found", different.args...).Scan(&n)
		}
		return db.CountDifferent(ctx, different.sql(), different.args)
	})
	if err != nil {
		err = fmt.Errorf("count the values of %s: %w", q.name, err)
	}
	return n, err
}

// leads reports whether an index begins with the values of the field, in their order.
func (f *Field) leads(created string) bool {
	return f.Column == created || f.sortColumn() == f.Column && f.Index != NoIndex && f.Index != EmptyApart
}

// skipScan returns the statement that finds the values of a field in the index that begins with it, one search for each value. It
// stops after more values than are remembered.
func (q *query) skipScan(f *Field) *store.Counting {
	table := q.from
	of := q.matching.sql() + conjunction(q.matching.sql())
	value := "SELECT " + f.Column + " FROM " + table + of
	order := " ORDER BY " + f.Column + " LIMIT 1)"
	sql := "WITH RECURSIVE found (value) AS (SELECT (" + value + f.Column + " IS NOT NULL" + order +
		" UNION ALL SELECT (" + value + f.Column + " > found.value" + order + " FROM found WHERE found.value IS NOT NULL)" +
		" SELECT value AS value, 1 AS rows FROM (SELECT value FROM found WHERE value IS NOT NULL LIMIT " + strconv.Itoa(maxDistinct+1) + ") AS known"
	if f.Null {
		sql += " UNION ALL SELECT NULL, 1 WHERE EXISTS (SELECT 1 FROM " + table + of + f.Column + " IS NULL)"
	}
	return &store.Counting{SQL: sql, Args: q.matching.args, Tables: plainNames(q.tables)}
}

// distinctPage appends the statement for the first row of each value. Rows are passed in their order until the page is full or each
// value was found, which few rows are enough for unless a value is rare or the page far behind the first.
func (q *query) distinctPage(ctx context.Context, db Store, b *builder, columns string, v view, w window) error {
	lookups := len(q.values) > 0 && len(q.values) <= maxLookups && v.distinct.leads(q.created) && q.matching.sql() == q.base
	limit := int64(maxPassed)
	if lookups {
		limit = soonPassed
	}
	ids, complete, err := q.firsts(ctx, db, b.args, v, w, limit)
	if err != nil {
		return fmt.Errorf("find the first rows of the values of %s: %w", q.name, err)
	}
	switch {
	case complete:
		b.args = q.matching.args[:len(q.matching.args):len(q.matching.args)]
		b.add("SELECT ", columns, " FROM ", q.from, " WHERE ")
		if !oneOf(b, q.id, ids) {
			b.add("FALSE")
		}
		if condition := q.matching.sql(); condition != "" { // a row may have changed since
			b.add(" AND ", strings.TrimPrefix(condition, " WHERE "))
		}
		b.add(" ORDER BY ", terms(v.orders))
		return nil
	case lookups:
		q.lookups(b, columns, v, w)
		return nil
	}
	b.add(q.rowsOf(v, "SELECT ", columns).sql())
	if len(w.segments) > 0 {
		b.add(" AND (", strings.Join(w.segments, " OR "), ")")
	}
	b.end(v, w)
	return nil
}

// firsts returns the ids of the rows of a page of distinct values. It reports false when they are not among the first rows in the
// order.
func (q *query) firsts(ctx context.Context, db Store, args []any, v view, w window, limit int64) (ids []any, complete bool, err error) {
	later := "TRUE"
	if w.after != nil {
		later = "CASE WHEN " + strings.Join(w.segments, " OR ") + " THEN TRUE ELSE FALSE END"
	}
	b := &builder{args: args[:len(args):len(args)]}
	b.add("SELECT ", q.id, ", ", v.distinct.valueColumn(), ", ", later, " FROM ", q.from, q.matching.sql(), " ORDER BY ", terms(v.orders), " LIMIT ")
	b.arg(limit)
	rows, err := db.Query(ctx, b.sql(), b.args...)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	seen := map[any]bool{}
	var passed, skipped int64
	for rows.Next() {
		passed++
		var id, value any
		var beyond bool
		if err := rows.Scan(&id, &value, &beyond); err != nil {
			return nil, false, err
		}
		if seen[value] {
			continue
		}
		seen[value] = true
		if beyond {
			if skipped++; skipped > w.offset {
				ids = append(ids, id)
			}
		}
		if int64(len(ids)) == w.limit || int64(len(seen)) == q.total {
			return ids, true, nil
		}
	}
	return ids, passed < limit, rows.Err()
}

// lookups appends the statement for the first row of each known value, which an index of the field finds without reading the others.
// A value that came up a moment ago may be missing: the total does not count it either.
func (q *query) lookups(b *builder, columns string, v view, w window) {
	b.add("SELECT ", columns, " FROM ", q.from, " WHERE ", q.id, " IN (")
	for i, g := range q.values {
		if i > 0 {
			b.add(" UNION ALL ")
		}
		b.add("SELECT part.id FROM (SELECT ", q.id, " AS id FROM ", q.from, q.matching.sql(), conjunction(q.matching.sql()), v.distinct.valueColumn())
		if g.Value == nil {
			b.add(" IS NULL")
		} else {
			b.add(" = ")
			b.arg(g.Value)
		}
		b.add(" ORDER BY ", terms(v.orders), " LIMIT 1) AS part")
	}
	b.add(")")
	if len(w.segments) > 0 {
		b.add(" AND (", strings.Join(w.segments, " OR "), ")")
	}
	b.end(v, w)
}
