package list

import (
	"strings"

	"kontor/server/apierr"
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

	shapes *shapes
	values []store.Group // of the distinct field, when they are few; in no order
	total  int64         // how many values the distinct field has
	base   string        // the condition that always holds, as it begins visible
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
func (s *source) query(p Params, conditions []Where) (*query, error) {
	for _, given := range p.search {
		if s.field(given.name) == nil {
			return nil, apierr.QueryInvalidSearchField.Detail("field", clip(given.name))
		}
	}
	name, _, _ := strings.Cut(s.from, " ")
	q := &query{name: name, from: s.from, id: s.id, created: s.created, tables: s.tables, shapes: &s.shapes}
	q.visible = &builder{}
	q.restrict(s.base)
	q.base, q.hidden = q.visible.sql(), s.hidden
	for _, w := range conditions {
		q.restrict(w)
	}
	q.matching = q.visible.copy()
	for _, given := range p.search {
		q.matching.and()
		q.searched = true
		f, some := s.field(given.name), false
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
		b.add("(", renumbered(w.SQL, base), ")")
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
		texts[i] = renumbered(sql, base)
		or.next()
		b.add("(", texts[i], ")")
	}
	granted := renumbered(w.Granted, base)
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
