package list

import (
	"slices"
	"strings"

	"kontor/server/apierr"
)

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
func (s *source) orders(keys []string) (orders []order, unindexed bool, err error) {
	orders = make([]order, 0, len(keys)+2)
	var sorted *Field
	for _, key := range keys {
		name, descending := strings.CutPrefix(key, "-")
		f := s.field(name)
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
		return s.newest, false, nil
	}
	last := orders[len(orders)-1]
	unindexed = (sorted.Index == NoIndex || sorted.Index == First) && last.column != s.created && last.column != s.id || len(orders) > 1
	if sorted.isThenByCreation(s.created) && !sortsBy(orders, s.created) {
		orders = append(orders, order{column: s.created, descending: last.descending})
	}
	if !sortsBy(orders, s.id) {
		orders = append(orders, order{column: s.id, descending: last.descending})
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
