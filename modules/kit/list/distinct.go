package list

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"kontor/store"
)

// maxDistinct bounds the values whose numbers of rows are remembered for a total of distinct values.
const maxDistinct = 1000

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
	var c *store.Counting
	switch alone := q.matching.sql() == q.base; {
	case alone && f.leads(q.created) && !strings.Contains(q.from, " JOIN "):
		c = q.skipScan(f)
	case alone && f.absent() != "":
		c = q.apartGroups(db, f)
	default:
		c = q.grouping(db, f.valueColumn(), q.matching)
	}
	c.MaxGroups = maxDistinct
	groups, err := countNoted(ctx, db, c)
	if err == nil {
		return int64(len(groups)), nil
	}
	if !errors.Is(err, store.ErrTooManyGroups) {
		return 0, fmt.Errorf("count the values of %s: %w", q.name, err)
	}
	different := q.matching.after("SELECT DISTINCT ", f.valueColumn(), " AS value FROM ", q.from)
	done, err := plan{planRemembered, "there are more than " + strconv.Itoa(maxDistinct) + " values: the database counts them again after each change", different}.explain(ctx, db, stepCount)
	if err != nil {
		return 0, err
	}
	all := &store.Counting{SQL: "SELECT NULL AS value, count(*) AS rows FROM (" + different.sql() + ") AS found", Args: different.args, Tables: plainNames(q.tables)}
	if groups, err = db.Count(ctx, memoKey(all.SQL, all.Args), all); len(groups) > 0 {
		n = groups[0].Rows
	}
	if done(n); err != nil {
		return 0, fmt.Errorf("count the values of %s: %w", q.name, err)
	}
	return n, nil
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

// least returns the condition that a field has a value, as one on the beginning of its index: else SQLite may sort another index.
func (f *Field) least() string {
	switch f.Type {
	case Text, UUID, Date, Decimal:
		return f.Column + " >= ''"
	case Number, Time:
		return f.Column + " >= -9223372036854775807"
	}
	return f.Column + " IS NOT NULL"
}

// missing returns the condition of the rows that such an index does not have.
func (f *Field) missing() string {
	if f.Index == EmptyApart {
		return f.Key + " = ''"
	}
	return f.Column + " IS NULL"
}

// firsts returns the ids of the rows of a page of distinct values. It reports false when they are not among the first rows in the order.
func (q *query) firsts(ctx context.Context, db Store, args []any, v view, w window) (ids []any, found bool, err error) {
	later := "TRUE"
	if w.after != nil {
		later = unindexed(joined(w.segments))
	}
	pieces, divided, err := q.pieces(ctx, db, v, nil)
	if err != nil {
		return nil, false, err
	}
	if !divided {
		pieces = v.whole(nil)
	}
	f := &firstRows{seen: map[any]struct{}{}, skip: w.offset, wanted: w.limit, values: q.total}
	for _, p := range pieces {
		for round, last := walks.round, false; !last; round *= roundGrowth {
			b := &builder{args: args[:len(args):len(args)]}
			b.add("SELECT ", q.id, ", ", v.distinct.valueColumn(), ", ", later, " FROM ", q.from, q.matching.sql(), conjunction(q.matching.sql()))
			p.condition(b)
			rows := min(round, walks.distinct-f.passed)
			if !f.exclude(b, v.distinct.valueColumn()) {
				rows = walks.distinct - f.passed
			}
			b.add(" ORDER BY ", terms(p.orders), " LIMIT ")
			b.arg(rows)
			before := f.passed
			complete, err := f.read(ctx, db, b)
			switch last = f.passed-before < rows; {
			case complete || err != nil:
				return f.ids, true, err
			case f.passed >= walks.distinct:
				return nil, false, nil
			}
		}
	}
	return f.ids, true, nil
}

const (
	// roundGrowth is how many times more rows a round passes than the one before.
	roundGrowth = 4
	// maxExcluded bounds the values whose rows are left out.
	maxExcluded = 500
)

// exclude appends the condition of the rows whose values were not seen, and reports whether there are few enough values for it. One value
// may have nearly all rows. As one expression, it does not make SQLite use another index.
func (f *firstRows) exclude(b *builder, value string) bool {
	if len(f.seen) == 0 || len(f.seen) > maxExcluded {
		return len(f.seen) == 0
	}
	var known []any
	missing := "TRUE"
	for seen := range f.seen {
		if seen == nil {
			missing = "FALSE"
		} else {
			known = append(known, seen)
		}
	}
	b.add(" AND CASE WHEN ", value, " IS NULL THEN ", missing)
	if len(known) > 0 {
		b.add(" WHEN ")
		oneOf(b, value, known)
		b.add(" THEN FALSE")
	}
	b.add(" ELSE TRUE END")
	return true
}

// firstRows collects the first row of each value.
type firstRows struct {
	seen           map[any]struct{} // values
	ids            []any            // of the page
	skip, wanted   int64            // rows before the page, and on it
	values, passed int64            // how many values there are, and how many rows were read
}

// read reads rows in their order. It reports whether no further row is needed.
func (f *firstRows) read(ctx context.Context, db Store, b *builder) (complete bool, err error) {
	passed, err := plan{planFirsts, whyFirsts, b}.pass(ctx, db, func(row Row) (more bool, err error) {
		var id, value any
		var beyond bool
		if err := row.Scan(&id, &value, &beyond); err != nil {
			return false, err
		}
		if _, again := f.seen[value]; again {
			return true, nil
		}
		f.seen[value] = struct{}{}
		if beyond {
			if f.skip--; f.skip < 0 {
				f.ids = append(f.ids, id)
			}
		}
		complete = int64(len(f.ids)) == f.wanted || int64(len(f.seen)) == f.values
		return !complete, nil
	})
	f.passed += passed
	return complete, err
}
