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
	"slices"
	"strings"

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
	Base   Where // a condition that always holds
	// Hidden is the opposite of Base, if few rows meet it and an index has them: all visible rows are then counted as the rows of
	// the table less these.
	Hidden string
}

// List reads pages of one source. It is safe for concurrent use.
type List[T any] struct {
	source Source[T]
	fields []Field // as declared, completed
	byName map[string]int
	newest []order
	long   []int // columns that count for the size of a page
	shapes shapes
}

// Store is the database of a list: *store.DB.
type Store interface {
	store.Querier
	counter
	keyring
	explainer
	// CurrentTexts returns how statements search texts, when searches see everything that was committed before the call.
	CurrentTexts(ctx context.Context) (store.Texts, error)
}

// New prepares a list. It panics for an incomplete declaration, which is a programming error.
func New[T any](s Source[T]) *List[T] {
	if s.From == "" || s.Columns == "" || s.ID == "" || s.Scan == nil || len(s.Tables) == 0 {
		panic("list: a source needs From, Columns, ID, Tables and Scan")
	}
	l := &List[T]{source: s, byName: make(map[string]int, len(s.Fields)), long: long(s.Columns)}
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

// Page reads one page. The conditions restrict the rows to those that the caller may see, or that belong to the record in the
// path; they apply to both totals.
//
// It returns apierr.QueryInvalidSearchField, and when rows are read, apierr.QueryInvalidSortField, apierr.QueryInvalidField
// (stack and distinct) and apierr.QueryInvalidFormat.
func (l *List[T]) Page(ctx context.Context, db Store, p Params, conditions ...Where) (page Page[T], err error) {
	rows := &collected[T]{scan: l.source.Scan}
	found, err := l.page(ctx, db, p, conditions, rows)
	if err == nil {
		page.set(&found, inOrder(rows.rows, found.order))
	}
	return page, err
}

// Search returns the fields with their types, for the API document.
func (l *List[T]) Search() []endpoint.SearchField {
	fields := make([]endpoint.SearchField, len(l.fields))
	for i, f := range l.fields {
		fields[i] = endpoint.SearchField{Name: f.Name, Type: typeNames[f.Type]}
	}
	return fields
}

// field returns the field with a name, or nil.
func (l *List[T]) field(name string) *Field {
	if i, known := l.byName[name]; known {
		return &l.fields[i]
	}
	return nil
}

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

// Matching returns the conditions and the search as SQL of one condition with its arguments, for a statement that changes the rows
// that a page would show. The condition names columns as the source does. Without a possible row, some is false. It returns
// apierr.QueryInvalidSearchField.
func (l *List[T]) Matching(p Params, conditions ...Where) (w Where, some bool, err error) {
	q, err := l.query(p, conditions)
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
