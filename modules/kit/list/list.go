// Package list is the query layer of all lists: limit, offset, sort, stack, distinct and search.<field>, with totals and
// errors as the API specifies them. A module declares the source of a list and reads pages:
//
//	var customers = list.New(list.Source[Customer]{
//		From:    "customers",
//		Columns: "id, last_name, created_at",
//		ID:      "id",
//		Created: "created_at",
//		Tables:  []string{"customers"},
//		Fields: list.Fields{
//			{Name: "id", Type: list.UUID, Column: "id"},
//			{Name: "last_name", Type: list.Text, Column: "last_name", Key: "last_name_key"},
//			{Name: "created_at", Type: list.Time, Column: "created_at"},
//		},
//		Scan: scanCustomer,
//	})
//
//	page, err := customers.Page(ctx, db, in.Query, list.Where{
//		Any:     []string{"created_by = $1"},
//		Granted: "SELECT rec_id FROM permissions WHERE principal_id = $1 AND rec_type = 'customers' AND permission = 'read'",
//		Args:    []any{caller.UserID},
//		Tables:  []string{"grants"},
//	})
//
// In.Query is a [Params] with the tag `query:"*"`. Without a condition the list contains all rows. Modules do not write the
// condition above themselves: records.Table.Visible returns it. Key is the column of the folded text, for searches that
// ignore case.
//
// SQL contains only text that the module declares: names from the client are looked up, values from the client are arguments.
// Unknown names are rejected as the API specifies: those of searches always, those of sort, stack and distinct only if rows
// are read.
//
// The store caches totals until one of the tables changes. With an index on (searched column, created, id), the cost of a page
// does not depend on the number of rows; an index on (sorted column, id) does the same for a sort.
//
// Access is a condition that the caller of Page provides; indexes belong to the module. Limits: wildcards, distinct, totals
// of groups and sorted searches for several values read every matching row. Totals and rows are read one after the other: a
// write in between may be visible in only one of them.
package list

import (
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/store"
)

// Row is a row for a scanner: one of a list or a single one, so that a module needs one scanner for both.
type Row = store.Scanner

// Source declares a list.
type Source[T any] struct {
	From    string // the table, with joins that neither add nor remove rows
	Columns string // what Scan reads, separated by commas
	ID      string // the column of the id: unique, never NULL
	Created string // the column of the default order, newest first; empty: by id
	// Tables are all tables in From, which has no aliases. A table whose rows decide only about the row with the id in one of its columns is
	// named with that column, "task_members.task_id": totals survive its changes, too. So is the table below a view.
	Tables []string
	Fields Fields
	Scan   func(row Row) (T, error)
	Keeper Keeper[T] // is used instead of Scan, unless it is nil
	Base   Where     // a condition that always holds
	// Hidden is the opposite of Base, if few rows meet it and an index has them: all visible rows are then counted as the rows of
	// the table less these.
	Hidden string
}

// List reads pages of one source. It is safe for concurrent use.
type List[T any] struct {
	source Source[T]
	fields Fields
	byName map[string]int
	newest []order
	long   []int // columns that count for the size of a page
	shapes shapes
	hints  *hints // nil without a keeper
}

// Store is the database of a list: *store.DB.
type Store interface {
	store.Querier
	counter
	keyring
	// CurrentTexts returns how statements search texts, when searches see everything that was committed before the call.
	CurrentTexts(ctx context.Context) (store.Texts, error)
}

// New prepares a list. It panics for an incomplete declaration, which is a programming error.
func New[T any](s Source[T]) *List[T] {
	if s.From == "" || s.Columns == "" || s.ID == "" || s.Scan == nil && s.Keeper == nil || len(s.Tables) == 0 {
		panic("list: a source needs From, Columns, ID, Tables and Scan")
	}
	l := &List[T]{source: s, byName: make(map[string]int, len(s.Fields)), long: long(s.Columns)}
	if s.Keeper != nil {
		l.hints = &hints{seed: maphash.MakeSeed()}
	}
	for _, declared := range s.Fields {
		f, err := declared.complete()
		if err != nil {
			panic("list: " + s.From + ": " + err.Error())
		}
		if _, twice := l.byName[f.Name]; twice {
			panic("list: " + s.From + ": field " + f.Name + " is duplicate")
		}
		l.byName[f.Name] = len(l.fields)
		l.fields = append(l.fields, f)
	}
	if s.Created != "" {
		l.newest = append(l.newest, order{column: s.Created, descending: true})
	}
	l.newest = append(l.newest, order{column: s.ID, descending: true})
	return l
}

// Search returns the fields with their types, for the API document.
func (l *List[T]) Search() []endpoint.SearchField {
	fields := make([]endpoint.SearchField, len(l.source.Fields))
	for i, f := range l.source.Fields {
		fields[i] = endpoint.SearchField{Name: f.Name, Type: typeNames[f.Type]}
	}
	return fields
}

func (l *List[T]) field(name string) *Field {
	if i, known := l.byName[name]; known {
		return &l.fields[i]
	}
	return nil
}

// Page reads one page. The conditions restrict the rows to those that the caller may see, or that belong to the record in the
// path; they apply to both totals.
//
// It returns apierr.QueryInvalidSearchField, and when rows are read, apierr.QueryInvalidSortField, apierr.QueryInvalidField
// (stack and distinct) and apierr.QueryInvalidFormat.
func (l *List[T]) Page(ctx context.Context, db Store, p Params, conditions ...Where) (Page[T], error) {
	q, err := l.query(p, conditions)
	if err != nil {
		return Page[T]{}, err
	}
	page := Page[T]{Data: Data[T]{Rows: []T{}, stacked: p.Stacked()}}
	if page.TotalUnfiltered, err = q.countRows(ctx, db, q.visible); err != nil {
		return Page[T]{}, err
	}
	if err := q.matchText(ctx, db, p.text); err != nil {
		return Page[T]{}, err
	}
	matched := page.TotalUnfiltered
	switch {
	case q.nothing:
		matched = 0
	case q.searched && matched > 0:
		if matched, err = l.countMatching(ctx, db, q, p); err != nil {
			return Page[T]{}, err
		}
	}
	// The fields of sort and stack are checked only when there are rows to read.
	if page.Total = matched; matched == 0 {
		return page, nil
	}
	v, refusal := l.view(p)
	if refusal != nil && p.Limit() != skipRows {
		return Page[T]{}, refusal
	}
	if v.distinct != nil {
		if page.Total, err = q.countValues(ctx, db, v.distinct, matched); err != nil {
			return Page[T]{}, err
		}
	}
	if p.Limit() == skipRows {
		return page, nil
	}
	if q.isRanked(p, page.Total) {
		err = l.readRanked(ctx, db, q, p, conditions, &page)
	} else {
		err = l.read(ctx, db, q, v, p, &page)
	}
	if err != nil {
		return Page[T]{}, err
	}
	return page, nil
}

// view is the order and grouping of the rows.
type view struct {
	orders    []order
	alone     bool     // without the columns of the order
	apart     []string // conditions of the rows that have an index and of the others, which have another; nil: one has all
	unindexed bool     // the order has no index
	valued    *Field   // the first field of the order, if it has few values and no index; nil: another
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
		s, err := l.parseStack(p.stack)
		if err != nil {
			refusal = err
		}
		v.stack = &s
	}
	var err error
	if v.orders, v.unindexed, err = l.orders(p.sort); err != nil {
		refusal = err
	}
	if len(p.sort) > 0 && len(v.orders) > 0 {
		l.sortedBy(&v, l.field(strings.TrimPrefix(p.sort[0], "-")), len(p.sort) == 1)
	}
	return v, refusal
}

// sortedBy sets what a view needs of the first field of its order. alone reports that there is no other.
func (l *List[T]) sortedBy(v *view, f *Field, alone bool) {
	if f == nil || f.Type == Blank || v.orders[0].column != f.sortColumn() {
		return
	}
	column := v.orders[0].column
	switch {
	case f.Index == NullsApart:
		v.apart = []string{column + " IS NOT NULL", column + " IS NULL"}
	case f.Index == EmptyApart:
		v.apart = []string{column + " <> ''", column + " = ''"}
	case f.Few && f.Index == NoIndex && alone:
		v.valued = f
	}
}

// read reads the rows of the page and groups them.
func (l *List[T]) read(ctx context.Context, db Store, q *query, v view, p Params, page *Page[T]) error {
	var stored []any
	bound := q.binding(v, p)
	var after []any
	if p.cursor != "" {
		ok := false
		if after, ok = unseal(db, p.cursor, bound, len(v.orders)); !ok {
			return wrongCursor()
		}
	}
	if p.Offset() < page.Total {
		found, err := l.fetch(ctx, db, q, v, p, after, l.place(bound, v, p))
		if err != nil {
			return fmt.Errorf("read a page of %s: %w", q.name, err)
		}
		page.Data.Rows, stored = found.rows, found.stacked
		page.HasMore = found.more || after == nil && len(found.rows) > 0 && p.Offset() < page.Total-int64(len(found.rows))
		if page.HasMore && found.last != nil {
			if page.NextCursor, err = seal(db, bound, found.last); err != nil {
				return fmt.Errorf("the cursor after a page of %s: %w", q.name, err)
			}
		}
	}
	if v.stack == nil {
		return nil
	}
	page.Keys = page.Data.arrange(v.stack, stored)
	totals, err := q.groupTotals(ctx, db, v, page.Keys)
	if err != nil {
		return fmt.Errorf("count the groups of %s: %w", q.name, err)
	}
	if len(totals) > 0 {
		page.Metadata = &Metadata{GroupTotals: totals}
	}
	return nil
}

// read is the result of a statement of a page.
type read[T any] struct {
	rows    []T
	stacked []any // values of the stacked field
	last    []any // what the last row is sorted by
	more    bool  // there is a further row
	known   bool  // all rows were known to the keeper
}

// fetch reads the rows of a page.
func (l *List[T]) fetch(ctx context.Context, db Store, q *query, v view, p Params, after []any, h hint) (read[T], error) {
	if h.set() {
		b, err := q.page(ctx, db, l.source.ID, v, p, after)
		if err != nil {
			return read[T]{}, err
		}
		if found, err := l.knownRows(ctx, db, b, v, p.Limit()); err != nil || found.known {
			return found, err
		}
		h.clear()
	}
	b, err := q.page(ctx, db, l.source.Columns, v, p, after)
	if err != nil {
		return read[T]{}, err
	}
	found, err := l.rows(ctx, db, b, v, p.Limit())
	if err == nil && found.known {
		h.put()
	}
	return found, err
}

// rows runs the statement of a page. The columns after those of the scanner are the value of the stacked field and what the rows are
// sorted by. A statement for a page after a cursor returns a row more than the limit.
func (l *List[T]) rows(ctx context.Context, db store.Querier, b *builder, v view, limit int) (found read[T], err error) {
	scan := func(row Row) (item T, known bool, err error) {
		item, err = l.source.Scan(row)
		return item, false, err
	}
	if l.source.Keeper != nil {
		scan = l.source.Keeper.Scanner(ctx)
	}
	rows, err := db.Query(ctx, b.sql(), b.args...)
	if err != nil {
		return found, err
	}
	defer rows.Close()
	found.rows, found.known = make([]T, 0, defaultLimit), true
	free := endpoint.PageBytes
	further := furtherColumns{rows: rows, stacked: v.stack != nil, sorted: len(v.orders)}
	for rows.Next() {
		// A page ends before the row that would exceed the limit, and has_more reports further rows. The first row is never cut.
		if free -= rowBytes + rows.Size(l.long); free < 0 && len(found.rows) > 0 || len(found.rows) == limit {
			found.more = true
			return found, nil
		}
		// Only a row that may be the last of the page needs a cursor after it.
		further.end = len(found.rows) == limit-1 || free < endpoint.PageBytes/2
		item, known, err := scan(&further)
		if err != nil {
			return found, err
		}
		found.known = found.known && known
		found.rows, found.last = append(found.rows, item), further.last
		if further.stacked {
			found.stacked = append(found.stacked, further.value)
		}
	}
	return found, rows.Err()
}

// rowBytes is an upper bound for the size of a row in an answer without its long columns.
const rowBytes = 1500

// longColumns are the columns of all lists whose texts may be long.
var longColumns = []string{"metadata", "description", "assignees", "content", "text"}

// long returns the positions of the long columns among those that a list reads.
func long(columns string) (places []int) {
	for i, column := range strings.Split(columns, ",") {
		if slices.ContainsFunc(strings.Fields(column), func(word string) bool {
			return slices.Contains(longColumns, word[strings.LastIndexByte(word, '.')+1:])
		}) {
			places = append(places, i)
		}
	}
	return places
}

// furtherColumns passes the first columns to the module's scanner and keeps the others.
type furtherColumns struct {
	rows    *store.Rows
	stacked bool
	sorted  int  // how many columns there are of what the row is sorted by
	end     bool // keep them
	value   any
	last    []any
	dest    []any
}

// Scan reads the columns of the scanner, the value of the stacked field, and what the row is sorted by.
func (r *furtherColumns) Scan(dest ...any) error {
	r.dest = append(r.dest[:0], dest...)
	if r.stacked {
		r.dest = append(r.dest, &r.value)
	}
	r.last = nil
	if r.end {
		r.last = make([]any, r.sorted)
	}
	for i := range r.sorted {
		if r.end {
			r.dest = append(r.dest, &r.last[i])
		} else {
			r.dest = append(r.dest, store.Ignored)
		}
	}
	return r.rows.Scan(r.dest...)
}
