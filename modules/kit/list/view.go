package list

import (
	"slices"
	"strings"

	"kontor/server/apierr"
)

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
			refusal = apierr.QueryInvalidField.Detail("field", clip(p.distinct))
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
			return nil, false, apierr.QueryInvalidSortField.Detail("field", clip(name))
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
