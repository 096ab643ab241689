package list

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"kontor/server/endpoint"
)

// plan is how the rows of a page are read: the statement with its arguments, the name of the way, and why it was chosen. Neither name
// nor reason contains a value of the request.
type plan struct {
	name, why string
	*builder
}

// The plans. docs/operations.md describes them.
const (
	planIndex      = "index"
	planPieces     = "pieces"
	planMatches    = "matches"
	planWalk       = "walk"
	planMerge      = "merge"
	planSort       = "sort"
	planSkip       = "skip"
	planFirsts     = "firsts"
	planRank       = "rank"
	planRelevance  = "relevance"
	planRemembered = "remembered"
)

// The steps of a list: it counts, passes rows to find those of the page, and reads the page.
const (
	stepCount = "count"
	stepPass  = "pass"
	stepPage  = "page"
)

const (
	whyRemembered = "totals are remembered: a first count, and one after many changes, reads all of its rows"
	whyPieces     = "no index has the whole order: the rows are read part by part, each by an index, and the number of rows of each part is remembered"
	whyWalk       = "many rows match: rows are passed in the order of the page, by its index, until enough of them match"
	whyFirsts     = "rows are passed in the order of the page until each of its values was found"
	whySkip       = "the page is far behind the first: the ids of all rows before it are passed; a cursor costs no more than the first page"
)

// window is the part of the rows that a page shows.
type window struct {
	limit, offset int64
	segments      []string // of which a row meets exactly one; nil: all rows
	after         []any    // the values of a cursor, which has the segments; nil: there is none
}

func (w window) depth() int64 { return w.offset + w.limit }

// choose chooses how a page is read. After the columns come the value of the stacked field, with a stack, and what the rows are sorted by.
// after are the values of the row before the page, of a cursor; the statement then reads one row more.
func (q *query) choose(ctx context.Context, db Store, columns string, v view, p Params, after []any) (plan, error) {
	if v.stack != nil {
		columns += ", " + v.stack.field.valueColumn()
	}
	if !v.alone {
		for _, o := range v.orders {
			columns += ", " + o.column
		}
	}
	w := window{limit: int64(p.Limit()), offset: p.Offset(), after: after}
	if after != nil {
		w.limit++
	}
	if v.distinct != nil && v.distinct.valueColumn() != q.id { // else all values are different
		return q.chooseDistinct(ctx, db, columns, v, w)
	}
	pieces, divided, err := q.pieces(ctx, db, v, after)
	if err != nil {
		return plan{}, err
	}
	if !q.merges() && q.text == nil {
		if found, err := q.chooseAlone(ctx, db, columns, v, w, pieces); found.builder != nil || err != nil {
			return found, err
		}
	}
	b, deep := q.begun(), w.depth() > maxMergedRows
	if divided = divided && (v.apart != nil || len(pieces) <= maxPieces && !deep); divided {
		w.segments = conditionsOf(pieces, b)
	} else if after != nil {
		w.segments = segments(b, v.orders, after)
	}
	alternatives := q.alternates()
	if alternatives && deep {
		if q, alternatives, err = q.onlyAlternative(ctx, db); err != nil {
			return plan{}, err
		}
	}
	switch {
	case deep && after == nil && !alternatives && q.text == nil && v.apart != nil:
		return q.countedPieces(ctx, db, columns, v, w, pieces)
	case !deep && (alternatives || len(w.segments) > 1):
		q.mergedPage(b, columns, v, w)
		return plan{planMerge, "the first rows of each relation, grant and part of the order are read by an index of their own, and merged", b}, nil
	case deep:
		q.latePage(b, columns, v, w)
		return plan{planSkip, whySkip, b}, nil
	case v.unindexed && !divided:
		q.latePage(b, columns, v, w)
		return plan{planSort, "no index has this order: the ids of all matching rows are sorted, and only the rows of the page are read", b}, nil
	}
	b.add("SELECT ", columns, " FROM ", q.from, q.condition(w))
	b.end(v, w)
	return plan{planIndex, "an index is expected to have the matching rows in the order of the page, or few rows match", b}, nil
}

// chooseAlone chooses among the plans for rows without alternatives, of which the number that match is known. A plan without a statement
// means that there is none.
func (q *query) chooseAlone(ctx context.Context, db Store, columns string, v view, w window, pieces []piece) (plan, error) {
	b := q.begun()
	switch {
	case !q.searched:
		if pieces != nil && v.apart == nil && q.piecedPage(b, columns, v, w, pieces) {
			return plan{planPieces, whyPieces, b}, nil
		}
	case q.matched <= walks.collected && pieces != nil:
		q.collectedPage(b, columns, v, w)
		return plan{planMatches, "few rows match: an index of the search finds them, and they are sorted", b}, nil
	case q.matched >= walks.matches && !slices.Contains(q.columns, v.orders[0].column): // else one index has both, if any
		ids, found, err := q.walk(ctx, db, v, w, pieces)
		switch {
		case err != nil:
			return plan{}, err
		case found:
			q.chosen(b, columns, v, ids)
			return plan{planWalk, whyWalk, b}, nil
		case v.apart != nil && w.after == nil:
			return q.countedPieces(ctx, db, columns, v, w, pieces)
		}
	}
	return plan{}, nil
}

// countedPieces reads a page from the two pieces of a field that part of the rows do not have.
func (q *query) countedPieces(ctx context.Context, db Store, columns string, v view, w window, pieces []piece) (plan, error) {
	if err := q.countPieces(ctx, db, v, pieces); err != nil {
		return plan{}, err
	}
	b := q.begun()
	q.piecedPage(b, columns, v, w, pieces)
	return plan{planPieces, whyPieces, b}, nil
}

// chooseDistinct chooses how the first row of each value is found. Rows are passed in their order until the page is full or each value was
// found, which few rows are enough for unless a value is rare or the page far behind the first.
func (q *query) chooseDistinct(ctx context.Context, db Store, columns string, v view, w window) (plan, error) {
	b := q.begun()
	if w.after != nil {
		w.segments = segments(b, v.orders, w.after)
	}
	if q.alternates() {
		var err error
		if q, _, err = q.onlyAlternative(ctx, db); err != nil {
			return plan{}, err
		}
	}
	ids, found, err := q.firsts(ctx, db, b.args, v, w)
	if err != nil {
		return plan{}, err
	}
	if found {
		q.chosen(b, columns, v, ids)
		return plan{planFirsts, whyFirsts, b}, nil
	}
	b.add(q.rowsOf(v, "SELECT ", columns).sql())
	if len(w.segments) > 0 {
		b.add(" AND (", joined(w.segments), ")")
	}
	b.end(v, w)
	return plan{planRank, "the first " + strconv.FormatInt(walks.distinct, 10) + " rows do not have all values of the page: the database ranks the rows of each value", b}, nil
}

// begun returns an empty statement with the arguments of the condition.
func (q *query) begun() *builder {
	return &builder{args: q.matching.args[:len(q.matching.args):len(q.matching.args)]}
}

// explainer returns how the database runs a statement, as *store.DB does.
type explainer interface {
	Explain(ctx context.Context, sql string, args ...any) ([]string, error)
}

// explain begins a step in the explanation of the request, if there is one. It is called before the statement runs: one that takes too
// long must be explained, too. done must be called with the number of rows that were read or counted.
func (p plan) explain(ctx context.Context, db Store, name string) (done func(rows int64), err error) {
	x := endpoint.Of(ctx).Explanation
	if x == nil {
		return unexplained, nil
	}
	step := endpoint.Step{Name: name, Plan: p.name, Why: p.why, SQL: p.sql()}
	if x.Thorough {
		if step.Database, err = db.Explain(ctx, step.SQL, p.args...); err != nil {
			return nil, err
		}
	}
	return x.Begin(step), nil
}

func unexplained(int64) {}

// alternates reports whether the alternatives of a condition are read one by one. Few matches of a text are collected instead.
func (q *query) alternates() bool { return q.merges() && !q.few }

// condition returns the condition of the matching rows in a window.
func (q *query) condition(w window) string {
	if len(w.segments) == 0 {
		return q.matching.sql()
	}
	var b builder
	b.add(q.matching.sql())
	b.and()
	b.add("(", joined(w.segments), ")")
	return b.sql()
}

// joined joins conditions of which a row meets exactly one.
func joined(segments []string) string { return strings.Join(segments, " OR ") }

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

// onlyAlternative returns the query without the granted rows, when nothing is granted and there is one other alternative. A deep page is
// then read from the index of that alternative. Otherwise it returns the query, and that it has alternatives.
func (q *query) onlyAlternative(ctx context.Context, db Store) (only *query, alternatives bool, err error) {
	if len(q.any) != 1 {
		return q, true, nil
	}
	granted, few, err := q.grantedKeys(ctx, db)
	if err != nil || !few || len(granted) > 0 {
		return q, true, err
	}
	alone := *q
	matching := q.matching.sql()
	alone.matching = &builder{args: q.matching.args}
	alone.matching.add(matching[:q.begin], "(", q.any[0], ")", matching[q.end:])
	return &alone, false, nil
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

// collectedPage appends a statement that finds all matching rows, which are few, by an index of the search, and sorts them.
func (q *query) collectedPage(b *builder, columns string, v view, w window) {
	if w.after != nil {
		w.segments = segments(b, v.orders, w.after)
	}
	b.add("SELECT ", columns, " FROM ", q.from, " WHERE ", q.id, " IN (SELECT ", q.id, " FROM ", q.from, q.condition(w), ")", q.again())
	b.end(v, w)
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
