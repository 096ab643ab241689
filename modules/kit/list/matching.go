package list

import "strings"

// Matching returns the conditions and the search as SQL of one condition with its arguments, for a statement that changes the rows
// that a page would show. The condition names columns as the source does. Without a possible row, some is false. It returns
// apierr.QueryInvalidSearchField.
func (l *List[T]) Matching(p Params, conditions ...Where) (w Where, some bool, err error) {
	return l.source.matching(p, conditions)
}

func (s *source) matching(p Params, conditions []Where) (w Where, some bool, err error) {
	q, err := s.query(p, conditions)
	if err != nil || q.nothing {
		return Where{}, false, err
	}
	sql := strings.TrimPrefix(q.matching.sql(), " WHERE ")
	return Where{SQL: sql, Args: q.matching.args}, true, nil
}

// After returns the condition for a statement that has n arguments before those of the condition.
func (w Where) After(n int) Where {
	w.SQL = renumbered(w.SQL, n)
	return w
}
