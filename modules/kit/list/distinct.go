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
