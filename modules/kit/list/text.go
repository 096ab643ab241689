package list

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"kontor/modules/kit/types"
	"kontor/server/apierr"
	"kontor/store"
)

const (
	// maxTextLength bounds a searched text in characters.
	maxTextLength = 200
	// manyMatches is the number of matching documents from which statements check rows one by one, in their order, rather than
	// collecting all matches first: so many match that a page is full soon.
	manyMatches = 2000
	// maxRanked is the number of rows up to which a list with a searched text and without sort is ordered by relevance. More rows
	// are in the default order.
	maxRanked = 1000
)

// Words is the parameter q of a list: words that must occur in the record, in any order. Use it as a member with the tag
// `query:"q"`, and call Validate of it.
type Words string

// Validate rejects texts that are too long.
func (t Words) Validate(v *apierr.Fields) {
	if utf8.RuneCountInString(string(t)) > maxTextLength {
		v.Add("q", "invalid.max_length", apierr.Args{"Max": maxTextLength})
	}
}

// Search returns the search for the text in the documents of some sources, or nil for a text of blanks. A text without any letter or
// digit finds nothing.
func (t Words) Search(sources ...string) *store.TextSearch {
	if strings.TrimSpace(string(t)) == "" {
		return nil
	}
	search := &store.TextSearch{Sources: sources}
	for _, words := range types.SearchWords(string(t)) {
		search.Any = append(search.Any, store.TextWords{Words: words, Prefix: true})
	}
	return search
}

// WithText returns the parameters with a search for a text in the documents of some sources.
func (p Params) WithText(t Words, sources ...string) Params {
	p.text = t.Search(sources...)
	return p
}

// matchText adds the searched text to the conditions.
func (q *query) matchText(ctx context.Context, db Store, search *store.TextSearch) error {
	if search == nil {
		return nil
	}
	q.searched = true
	if search.Empty() {
		q.nothing = true
		return nil
	}
	texts, err := db.CurrentTexts(ctx)
	if err != nil {
		return err
	}
	if q.matches, err = countSome(ctx, db, texts, search); err != nil {
		return err
	}
	many := q.matches >= manyMatches
	q.text, q.few = search, !many
	checked, collected := search.Each(q.id), search.Matching(texts, q.id)
	alone := q.matching.text.Len() == 0
	q.counted = q.matching.copy()
	q.counted.condition(checked)
	if !many || alone { // else few rows remain without the text
		q.collected = q.matching.copy()
		q.collected.condition(collected)
	}
	if many {
		q.matching.condition(checked)
		q.tables = append(q.tables[:len(q.tables):len(q.tables)], store.TextRows...)
	} else {
		q.matching.condition(collected)
		q.tables = append(q.tables[:len(q.tables):len(q.tables)], store.TextTables...)
	}
	return nil
}

// countSome returns the number of matching documents, at most manyMatches.
func countSome(ctx context.Context, db store.Querier, texts store.Texts, search *store.TextSearch) (n int64, err error) {
	some := search.Some(texts, manyMatches)
	if err = db.QueryRow(ctx, some.SQL, some.Args...).Scan(&n); err != nil {
		err = fmt.Errorf("search texts: %w", err)
	}
	return n, err
}

// condition adds a condition with placeholders of its own.
func (b *builder) condition(c store.TextCondition) {
	b.and()
	b.add("(", renumbered(c.SQL, len(b.args)), ")")
	b.args = append(b.args[:len(b.args):len(b.args)], c.Args...)
}

// countMatches returns the number of matching rows. With a searched text, touched rows are checked one by one, and all rows are counted
// by the index of words.
func (q *query) countMatches(ctx context.Context, db Store) (int64, error) {
	if q.counted == nil {
		return q.countRows(ctx, db, q.matching)
	}
	followed := *q
	followed.tables = append(slices.DeleteFunc(slices.Clone(q.tables), func(table string) bool { return slices.Contains(store.TextTables, table) }), store.TextRows...)
	c := followed.counting(db, noValue, q.counted)
	if q.collected != nil {
		c.Whole, c.WholeArgs = q.shape(noValue, q.collected.sql()).sql, q.collected.args
	}
	return q.count(ctx, db, c)
}

// ByText returns the condition that a column holds the id of a record that matches a text, for lists with statements of their own
// that show few of all records. It returns nil for no text. Placeholders begin at $1.
func ByText(ctx context.Context, db Store, search *store.TextSearch, id string) (*store.TextCondition, error) {
	switch {
	case search == nil:
		return nil, nil
	case search.Empty():
		return &store.TextCondition{SQL: "1 = 0"}, nil
	}
	texts, err := db.CurrentTexts(ctx)
	if err != nil {
		return nil, err
	}
	n, err := countSome(ctx, db, texts, search)
	c := search.Matching(texts, id)
	if n >= manyMatches {
		c = search.Each(id)
	}
	return &c, err
}
