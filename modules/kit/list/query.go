package list

import (
	"slices"
	"strconv"
	"strings"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// query is a list with its conditions and searches, before the view is known.
type query struct {
	name     string
	from     string
	id       string
	created  string // may be empty
	tables   []string
	visible  *builder // condition of the rows that the caller may see
	matching *builder // condition of the matching rows among them
	searched bool
	columns  []string // by which the searched fields are sorted
	nothing  bool     // no row can match
	rows     int64    // how many rows are visible
	matched  int64    // how many of them match the search

	total  int64  // how many values the distinct field has
	base   string // the condition that always holds, as it begins visible
	hidden string

	// The searched text, see matchText. Without one, counted is nil.
	text      *store.TextSearch
	matches   int64    // documents, at most manyMatches
	few       bool     // so few match that they are collected first
	counted   *builder // condition of the matching rows that is checked row by row
	collected *builder // the same condition, when collecting all matches first is faster; else nil

	// The first condition with alternatives, and the position of its text in visible and matching.
	restriction Where
	any         []string
	granted     string
	begin, end  int
}

// query combines the conditions. It returns apierr.QueryInvalidSearchField.
func (l *List[T]) query(p Params, conditions []Where) (*query, error) {
	for _, given := range p.search {
		if l.field(given.name) == nil {
			return nil, apierr.QueryInvalidSearchField.Detail("field", endpoint.Clip(given.name))
		}
	}
	name, _, _ := strings.Cut(l.source.From, " ")
	q := &query{name: name, from: l.source.From, id: l.source.ID, created: l.source.Created, tables: l.source.Tables}
	q.visible = &builder{}
	q.restrict(l.source.Base)
	q.base, q.hidden = q.visible.sql(), l.source.Hidden
	for _, w := range conditions {
		q.restrict(w)
	}
	q.matching = q.visible.copy()
	for _, given := range p.search {
		q.matching.and()
		q.searched = true
		f, some := l.field(given.name), false
		q.columns = append(q.columns, f.sortColumn())
		if q.matching, some = f.matching(q.matching, given); !some {
			q.nothing = true
			break
		}
	}
	return q, nil
}

// restrict adds a condition of the module.
func (q *query) restrict(w Where) {
	b := q.visible
	base := len(b.args)
	if w.SQL != "" {
		b.and()
		b.add("(", store.Renumbered(w.SQL, base), ")")
	}
	if len(w.Any) > 0 || w.Granted != "" {
		b.and()
		q.addAlternatives(w, base)
	}
	b.args = append(b.args, w.Args...)
	if len(w.Tables) > 0 {
		q.tables = append(q.tables[:len(q.tables):len(q.tables)], w.Tables...)
	}
}

// addAlternatives adds the alternatives of a condition, and stores those of the first condition that has any.
func (q *query) addAlternatives(w Where, base int) {
	b := q.visible
	begin := b.text.Len()
	or := alternatives{b: b}
	texts := make([]string, len(w.Any))
	for i, sql := range w.Any {
		texts[i] = store.Renumbered(sql, base)
		or.next()
		b.add("(", texts[i], ")")
	}
	granted := store.Renumbered(w.Granted, base)
	if granted != "" {
		or.next()
		b.add(q.id, " IN (", granted, ")")
	}
	or.close()
	if q.begin == 0 {
		q.any, q.granted, q.begin, q.end, q.restriction = texts, granted, begin, b.text.Len(), w
	}
}

// merges reports whether there is more than one alternative.
func (q *query) merges() bool { return len(q.any) > 1 || len(q.any) == 1 && q.granted != "" }

// Where is a condition on the rows of a list with its arguments. It is for filters of the module, such as the customer in the
// path or the caller's access. Its placeholders start at $1. They are renumbered when the condition becomes part of a statement:
// a dollar sign must not have another meaning in it. The zero Where matches every row.
type Where struct {
	SQL string
	// Any are conditions of which at least one must hold, in addition to SQL: relations of the caller to the row, each with
	// its own index. They use the same arguments.
	Any []string
	// Granted is a SELECT of the ids of further rows, which should be few. It uses the same arguments.
	//
	// "Created by the caller, or granted to the caller" must be in Any and Granted rather than in one text with OR: then a page
	// is read from the beginning of each index, independent of the number of rows.
	Granted string
	Args    []any
	// Tables are the further tables that the condition reads: totals are counted again when one of them changes. A table that decides
	// only about the row with the id in one of its columns is named with that column, see [Source.Tables].
	Tables []string
}

// builder builds a statement. Text comes from the program only; values of clients are added with arg.
type builder struct {
	text strings.Builder
	args []any
}

// unindexed returns a condition that is checked row by row: no index is searched for it, and SQLite reads that of the order instead.
func unindexed(condition string) string {
	return "CASE WHEN " + condition + " THEN TRUE ELSE FALSE END"
}

// add appends text of the program.
func (b *builder) add(parts ...string) {
	for _, part := range parts {
		b.text.WriteString(part)
	}
}

// arg appends a placeholder for a value.
func (b *builder) arg(value any) {
	b.args = append(b.args, value)
	b.text.WriteByte('$')
	b.text.WriteString(strconv.Itoa(len(b.args)))
}

// part returns the text that write appends to an empty builder. Its arguments are added to b.
func (b *builder) part(write func(part *builder)) string {
	part := &builder{args: b.args}
	write(part)
	b.args = part.args
	return part.sql()
}

// sql returns the statement so far.
func (b *builder) sql() string { return b.text.String() }

// and begins the next condition.
func (b *builder) and() {
	if b.text.Len() == 0 {
		b.text.WriteString(" WHERE ")
	} else {
		b.text.WriteString(" AND ")
	}
}

// copy returns a builder that continues the statement.
func (b *builder) copy() *builder {
	next := &builder{args: b.args[:len(b.args):len(b.args)]}
	next.text.WriteString(b.text.String())
	return next
}

// after returns a builder whose text is the parts followed by the text of b. Placeholders keep their numbers.
func (b *builder) after(parts ...string) *builder {
	next := &builder{args: b.args[:len(b.args):len(b.args)]}
	next.text.Grow(256)
	next.add(parts...)
	next.text.WriteString(b.text.String())
	return next
}

// view is the order and grouping of the rows.
type view struct {
	orders    []order
	alone     bool   // without the columns of the order
	apart     *Field // the first field of the order, if an index has only the rows with a value; nil: another
	unindexed bool   // the order has no index
	valued    *Field // the first field of the order, if it has few values and no index; nil: another
	distinct  *Field
	stack     *stack
}

// view looks up the fields of the parameters. With an error it also returns the valid part.
func (l *List[T]) view(p Params) (view, error) {
	var v view
	var refusal error
	if p.distinct != "" {
		if v.distinct = l.field(p.distinct); v.distinct == nil {
			refusal = apierr.QueryInvalidField.Detail("field", endpoint.Clip(p.distinct))
		}
	}
	if p.stack != "" {
		parsed, err := l.parseStack(p.stack)
		if err != nil {
			refusal = err
		}
		v.stack = &parsed
	}
	var err error
	if v.orders, v.unindexed, err = l.orders(p.sort); err != nil {
		refusal = err
	}
	if len(p.sort) > 0 && len(v.orders) > 0 {
		v.sortedBy(l.field(strings.TrimPrefix(p.sort[0], "-")), len(p.sort) == 1)
	}
	return v, refusal
}

// sortedBy sets what a view needs of the first field of its order. alone reports that there is no other.
func (v *view) sortedBy(f *Field, alone bool) {
	if f == nil || f.Type == Blank || v.orders[0].column != f.sortColumn() {
		return
	}
	switch {
	case f.absent() != "":
		v.apart = f
	case f.Few && alone:
		v.valued = f
	}
}

// order is a term of ORDER BY.
type order struct {
	column     string
	descending bool
	null       bool // the column may hold NULL
}

// terms joins the terms of ORDER BY. NULL is the smallest value on every database.
func terms(orders []order) string {
	var b strings.Builder
	for i, o := range orders {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(o.column)
		switch {
		case o.descending && o.null:
			b.WriteString(" DESC NULLS LAST")
		case o.descending:
			b.WriteString(" DESC")
		case o.null:
			b.WriteString(" NULLS FIRST")
		}
	}
	return b.String()
}

// orders converts the parameter sort to terms. Rows that are equal in it are in the order of their creation if the index of the
// field is, see [ThenCreated], or the field has few values. The id is the last term, in the direction of the term before it, so that the
// order is total and one index supports both directions. It returns apierr.QueryInvalidSortField.
func (l *List[T]) orders(keys []string) (orders []order, unindexed bool, err error) {
	orders = make([]order, 0, len(keys)+2)
	var sorted *Field
	for _, key := range keys {
		name, descending := strings.CutPrefix(key, "-")
		f := l.field(name)
		if f == nil {
			return nil, false, apierr.QueryInvalidSortField.Detail("field", endpoint.Clip(name))
		}
		// A field that is always empty, or repeated, does not change the order.
		if f.Type == Blank || sortsBy(orders, f.sortColumn()) {
			continue
		}
		orders, sorted = append(orders, order{column: f.sortColumn(), descending: descending, null: f.Null}), f
	}
	if len(orders) == 0 {
		return l.newest, false, nil
	}
	last := orders[len(orders)-1]
	unindexed = (sorted.Index == NoIndex || sorted.Index == First) && last.column != l.source.Created && last.column != l.source.ID || len(orders) > 1
	if sorted.isThenByCreation(l.source.Created) && !sortsBy(orders, l.source.Created) {
		orders = append(orders, order{column: l.source.Created, descending: last.descending})
	}
	if !sortsBy(orders, l.source.ID) {
		orders = append(orders, order{column: l.source.ID, descending: last.descending})
	}
	return orders, unindexed, nil
}

// sortsBy reports whether a column is one of the terms.
func sortsBy(orders []order, column string) bool {
	return slices.ContainsFunc(orders, func(o order) bool { return o.column == column })
}

// isThenByCreation reports whether rows with the same value are in the order of their creation.
func (f *Field) isThenByCreation(created string) bool {
	switch f.Index {
	case ThenCreated, NullsApart, EmptyApart:
		return true
	}
	return f.Few && created != ""
}
