package list

import (
	"cmp"
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
	b.add("(", c.From(len(b.args)).SQL, ")")
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
		c.Whole, c.WholeArgs = q.counting(db, noValue, q.collected).SQL, q.collected.args
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

// Found is a row that a search has found.
type Found[T any] struct {
	ID    string
	Row   T
	Score int             // larger is better
	Match store.TextMatch // the best of the matching documents
}

// candidates is the number of rows that are compared to find the best ones.
const candidates = 100

// Find returns the rows that match a text best, at most limit. It compares a bounded number of rows. If more match, those are the
// newest with all words, and then the newest with the beginning of the last one.
func (l *List[T]) Find(ctx context.Context, db Store, search *store.TextSearch, limit int, conditions ...Where) ([]Found[T], error) {
	if search == nil || search.Empty() {
		return nil, nil
	}
	ids, matches, err := l.candidates(ctx, db, search, conditions)
	if err != nil {
		return nil, err
	}
	if matches > candidates {
		whole := &store.TextSearch{Sources: search.Sources, Any: slices.Clone(search.Any)}
		for i := range whole.Any {
			whole.Any[i].Prefix = false
		}
		better, _, err := l.candidates(ctx, db, whole, conditions)
		if err != nil {
			return nil, err
		}
		ids = append(better, slices.DeleteFunc(ids, func(id string) bool { return slices.Contains(better, id) })...)
	}
	ranks, err := rank(ctx, db, search, ids)
	if err != nil {
		return nil, err
	}
	rows := &collected[T]{scan: l.source.Scan}
	if ranks, err = l.byID(ctx, db, ranks[:min(limit, len(ranks))], conditions, rows); err != nil {
		return nil, err
	}
	found := make([]Found[T], len(ranks))
	for i, r := range ranks {
		found[i] = Found[T]{ID: r.id, Row: rows.rows[r.at], Score: r.score, Match: r.match}
	}
	return found, nil
}

// candidates returns the newest matching rows, and how many documents match, at most manyMatches.
func (l *List[T]) candidates(ctx context.Context, db Store, search *store.TextSearch, conditions []Where) (ids []string, matches int64, err error) {
	q, err := l.query(Params{}, conditions)
	if err != nil {
		return nil, 0, err
	}
	if err := q.matchText(ctx, db, search); err != nil || q.matches == 0 {
		return nil, 0, err
	}
	newest, err := q.choose(ctx, db, l.source.ID, view{orders: l.newest, alone: true}, Params{limit: candidates}, nil)
	if err != nil {
		return nil, 0, err
	}
	if ids, err = store.All(ctx, db, store.Text, newest.sql(), newest.args...); err != nil {
		err = fmt.Errorf("search %s: %w", q.name, err)
	}
	return ids, q.matches, err
}

// byID reads the rows of ranked ids. It returns those that the conditions still allow, with their positions.
func (l *List[T]) byID(ctx context.Context, db Store, ranks []ranked, conditions []Where, into collector) ([]ranked, error) {
	found := make(map[string]int, len(ranks))
	ids := make([]string, len(ranks))
	for i, r := range ranks {
		ids[i] = r.id
	}
	for rows := 0; len(ids) > 0; {
		q, err := l.query(Params{}, conditions)
		if err != nil {
			return nil, err
		}
		q.visible.and()
		q.visible.add(q.id, " IN (", store.In(len(q.visible.args)+1, len(ids)), ")")
		q.visible.args = store.AppendIn(q.visible.args[:len(q.visible.args):len(q.visible.args)], ids)
		read, err := l.rows(ctx, db, q.visible.after("SELECT ", l.source.Columns, ", ", q.id, " FROM ", q.from), view{stack: &stack{}}, len(ids), into)
		if err != nil {
			return nil, fmt.Errorf("read what was found of %s: %w", q.name, err)
		}
		for i, stored := range read.stacked {
			id, _ := stored.(string)
			found[id] = rows + i
		}
		if read.rows == 0 { // the others are gone
			break
		}
		rows += read.rows
		ids = slices.DeleteFunc(ids, func(id string) bool { _, known := found[id]; return known })
	}
	allowed := make([]ranked, 0, len(ranks))
	for _, r := range ranks {
		if at, ok := found[r.id]; ok {
			r.at = at
			allowed = append(allowed, r)
		}
	}
	return allowed, nil
}

// isRanked reports whether the page is ordered by relevance.
func (q *query) isRanked(p Params, total int64) bool {
	return q.text != nil && len(p.sort) == 0 && p.cursor == "" && p.stack == "" && p.distinct == "" && total <= maxRanked
}

// readRanked reads a page in the order of relevance.
func (l *List[T]) readRanked(ctx context.Context, db Store, q *query, p Params, conditions []Where, page *found, into collector) error {
	newest := q.matching.after("SELECT ", q.id, " FROM ", q.from)
	newest.add(" ORDER BY ", terms(l.newest), " LIMIT ")
	newest.arg(maxRanked)
	done, err := plan{planRelevance, "the words match few rows, and there is no sort: all of them are ordered by relevance", newest}.explain(ctx, db, stepPage)
	if err != nil {
		return err
	}
	all, err := store.All(ctx, db, store.Text, newest.sql(), newest.args...)
	if done(int64(len(all))); err != nil {
		return fmt.Errorf("search %s: %w", q.name, err)
	}
	ranks, err := rank(ctx, db, q.text, all)
	if err != nil {
		return err
	}
	first := min(p.Offset(), int64(len(ranks)))
	ranks = ranks[first:min(first+int64(p.Limit()), int64(len(ranks)))]
	if ranks, err = l.byID(ctx, db, ranks, conditions, into); err != nil {
		return err
	}
	page.order = make([]int, len(ranks))
	for i, r := range ranks {
		page.order[i] = r.at
	}
	page.hasMore = len(ranks) > 0 && p.Offset() < page.total-int64(len(ranks))
	return nil
}

// ranked is a found id with its relevance.
type ranked struct {
	id    string
	score int
	match store.TextMatch
	at    int // position among the rows that were read
}

// rank orders ids by relevance. Ids with the same relevance keep their order.
func rank(ctx context.Context, db store.Querier, search *store.TextSearch, ids []string) ([]ranked, error) {
	all, at := make([]ranked, len(ids)), make(map[string]int, len(ids))
	for i, id := range ids {
		all[i].id, at[id] = id, i
	}
	if len(ids) == 0 {
		return nil, nil
	}
	matches, err := search.Matches(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	for _, m := range matches {
		if r := &all[at[m.Record]]; r.match.ID == "" || score(search, m) > r.score {
			r.score, r.match = score(search, m), m
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
	return all, nil
}

// The relevance of a word in a document.
const (
	wholeTitle   = 8 // of a title that consists of the searched words alone
	inTitle      = 6
	beginsTitle  = 4 // the beginning of a word of the title
	inBody       = 2
	beginsInBody = 1
)

// score returns the relevance of a document: that of its least relevant word, in the best reading.
func score(search *store.TextSearch, m store.TextMatch) (best int) {
	for _, reading := range search.Any {
		lowest := wholeTitle
		for i, word := range reading.Words {
			last := reading.Prefix && i == len(reading.Words)-1
			lowest = min(lowest, scoreWord(word, last, m))
		}
		if lowest == inTitle && len(m.Title) == len(reading.Words) {
			lowest = wholeTitle
		}
		best = max(best, lowest)
	}
	return best
}

func scoreWord(word string, prefix bool, m store.TextMatch) int {
	begins := func(other string) bool { return strings.HasPrefix(other, word) }
	switch {
	case slices.Contains(m.Title, word):
		return inTitle
	case prefix && slices.ContainsFunc(m.Title, begins):
		return beginsTitle
	case slices.Contains(m.Body, word):
		return inBody
	case prefix && slices.ContainsFunc(m.Body, begins):
		return beginsInBody
	}
	return 0
}
