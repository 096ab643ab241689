package list

import (
	"strings"

	"kontor/server/apierr"
)

// view is the order and grouping of the rows.
type view struct {
	orders    []order
	alone     bool   // without the columns of the order
	apart     *Field // the first field of the order, if an index has only the rows with a value; nil: another
	first     *Field // the only field of the order, if its index does not end with the id; nil: another
	unindexed bool   // the order has no index
	valued    *Field // the first field of the order, if it has few values and no index; nil: another
	distinct  *Field
	stack     *stack
}

// view looks up the fields of the parameters. With an error it also returns the valid part.
func (s *source) view(p Params) (view, error) {
	var v view
	var refusal error
	if p.distinct != "" {
		if v.distinct = s.field(p.distinct); v.distinct == nil {
			refusal = apierr.QueryInvalidField.Detail("field", clip(p.distinct))
		}
	}
	if p.stack != "" {
		parsed, err := s.parseStack(p.stack)
		if err != nil {
			refusal = err
		}
		v.stack = &parsed
	}
	var err error
	if v.orders, v.unindexed, err = s.orders(p.sort); err != nil {
		refusal = err
	}
	if len(p.sort) > 0 && len(v.orders) > 0 {
		s.sortedBy(&v, s.field(strings.TrimPrefix(p.sort[0], "-")), len(p.sort) == 1)
	}
	return v, refusal
}

// sortedBy sets what a view needs of the first field of its order. alone reports that there is no other.
func (s *source) sortedBy(v *view, f *Field, alone bool) {
	if f == nil || f.Type == Blank || v.orders[0].column != f.sortColumn() {
		return
	}
	switch {
	case f.absent() != "":
		v.apart = f
	case f.Index == First && alone && !f.Null:
		v.first = f
	case f.Few && alone:
		v.valued = f
	}
}
