package list

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kontor/store"
)

const (
	// maxDistinct bounds the values whose numbers of rows are remembered for a total of distinct values.
	maxDistinct = 1000
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
	switch {
	case q.matching.sql() == q.base && f.absent() != "":
		all = q.apartGroups(db, f)
		if c = all; indexed {
			c = q.skipScan(f)
		}
	case indexed:
		c, all.Each = q.skipScan(f), ""
	}
	few := *c
	few.MaxGroups = maxDistinct
	groups, err := db.Count(ctx, memoKey(c.SQL, c.Args), &few)
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
	sql := "WITH RECURSIVE found (value) AS (SELECT (" + value + f.least() + order +
		" UNION ALL SELECT (" + value + f.Column + " > found.value" + order + " FROM found WHERE found.value IS NOT NULL)" +
		" SELECT value AS value, 1 AS rows FROM (SELECT value FROM found WHERE value IS NOT NULL LIMIT " + strconv.Itoa(maxDistinct+1) + ") AS known"
	if f.Null {
		sql += " UNION ALL SELECT NULL, 1 WHERE EXISTS (SELECT 1 FROM " + table + of + f.Column + " IS NULL)"
	}
	return &store.Counting{SQL: sql, Args: q.matching.args, Tables: plainNames(q.tables)}
}

// apartGroups returns the statement that counts the values of a field with an index of the rows that have one. The rows without a value
// are the others.
func (q *query) apartGroups(db Store, f *Field) *store.Counting {
	present := q.matching.copy()
	present.and()
	present.add(f.present())
	c := q.counting(db, f.valueColumn(), present)
	total := q.counting(db, noValue, q.matching)
	c.SQL += " GROUP BY 1 UNION ALL SELECT " + f.absent() + ", (SELECT each.rows FROM (" + total.SQL + ") AS each) - (SELECT count(*) FROM " + q.from + present.sql() + ")"
	return c
}

// present returns the condition of the rows that an index apart has, and absent the value of the others; empty without such an index.
func (f *Field) present() string {
	if f.Index == EmptyApart {
		return f.Key + " <> '' AND " + f.Key + " > ''" // the second searches the index
	}
	return f.Column + " IS NOT NULL"
}

// none returns the value of the rows that such an index does not have.
func (f *Field) none() any {
	if f.Index == EmptyApart {
		return ""
	}
	return nil
}

func (f *Field) absent() string {
	switch f.Index {
	case NullsApart:
		return "NULL"
	case EmptyApart:
		return "''"
	}
	return ""
}

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

// least returns the condition that a field has a value, as one on the beginning of its index: else SQLite may sort another index.
func (f *Field) least() string {
	switch f.Type {
	case Text, UUID, Date:
		return f.Column + " >= ''"
	case Number, Time:
		return f.Column + " >= -9223372036854775807"
	}
	return f.Column + " IS NOT NULL"
}

// distinctPage appends the statement for the first row of each value. Rows are passed in their order until the page is full or each
// value was found, which few rows are enough for unless a value is rare or the page far behind the first.
func (q *query) distinctPage(ctx context.Context, db Store, b *builder, columns string, v view, w window) error {
	limit, lookups := q.passed(v)
	limit = min(limit, walks.distinct)
	ids, seen, left, err := q.firsts(ctx, db, b.args, v, w, limit)
	if err != nil {
		return fmt.Errorf("find the first rows of the values of %s: %w", q.name, err)
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
		later = "CASE WHEN " + strings.Join(w.segments, " OR ") + " THEN TRUE ELSE FALSE END"
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
		b := &builder{args: args[:len(args):len(args)]}
		b.add("SELECT ", q.id, ", ", v.distinct.valueColumn(), ", ", later, " FROM ", q.from, q.matching.sql(), conjunction(q.matching.sql()))
		p.condition(b)
		b.add(" ORDER BY ", terms(p.orders), " LIMIT ")
		b.arg(limit - f.passed)
		complete, err := f.read(ctx, db, b)
		switch {
		case complete || err != nil:
			return f.ids, f.seen, nil, err
		case f.passed >= limit:
			return f.ids, f.seen, pieces[i:], nil
		}
	}
	return f.ids, f.seen, nil, nil
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

// is appends the condition that a field has a stored value, as its index has it.
func (f *Field) is(b *builder, value any) {
	text, _ := value.(string)
	switch {
	case value == nil:
		b.add(f.valueColumn(), " IS NULL")
		return
	case f.Index == EmptyApart && text == "":
		b.add(f.Key, " = ''")
		return
	case f.Index == EmptyApart:
		b.add(f.Key, " = ")
		b.arg(f.Fold(text))
		b.add(" AND ", f.Key, " <> '' AND ")
	}
	b.add(f.valueColumn(), " = ")
	b.arg(value)
}
