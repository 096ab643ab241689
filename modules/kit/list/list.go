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
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/types"
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
}

// Store is the database of a list: *store.DB.
type Store interface {
	store.Querier
	counter
	Keyring
	explainer
	// CurrentTexts returns how statements search texts, when searches see everything that was committed before the call.
	CurrentTexts(ctx context.Context) (store.Texts, error)
}

// New prepares a list. It panics for an incomplete declaration, which is a programming error.
func New[T any](s Source[T]) *List[T] {
	if s.From == "" || s.Columns == "" || s.ID == "" || s.Scan == nil || len(s.Tables) == 0 {
		panic("list: a source needs From, Columns, ID, Tables and Scan")
	}
	l := &List[T]{source: s, byName: make(map[string]int, len(s.Fields))}
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
		page = pageOf(&found, inOrder(rows.rows, found.order))
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
	w.SQL = store.Renumbered(w.SQL, n)
	return w
}

// Page is the answer of a list: the envelope of all lists. With the parameter stack its data is an object, and the hidden members are shown.
//
// Every package that can see a module compiles the methods of each type of page, so that Page and [Data] have one each.
type Page[T any] struct {
	Data            Data[T]   `json:"data"`
	Keys            []string  `json:"keys,omitempty" hidden:"true" doc:"The members of data, in their order."`
	Metadata        *Metadata `json:"metadata,omitempty" hidden:"true"`
	Total           int64     `json:"total" doc:"Number of matching rows that the caller may see."`
	TotalUnfiltered int64     `json:"total_unfiltered" doc:"Number of rows that the caller may see."`
	HasMore         bool      `json:"has_more" doc:"Whether there are further rows."`
	NextCursor      string    `json:"next_cursor,omitempty" doc:"The parameter cursor for the next page; missing on the last one."`
}

func pageOf[T any](found *found, rows []T) Page[T] {
	return Page[T]{
		Data: Data[T]{Rows: rows, stacked: found.stacked, groups: found.groups}, Keys: found.keys, Metadata: found.metadata,
		Total: found.total, TotalUnfiltered: found.totalUnfiltered, HasMore: found.hasMore, NextCursor: found.nextCursor,
	}
}

// Rows describes the rows of the page, see [endpoint.RowPage].
func (p Page[T]) Rows() endpoint.Rows {
	return endpoint.Rows{Slice: p.Data.Rows, Total: p.Total, More: p.HasMore}
}

// Metadata describes the matching rows.
type Metadata struct {
	GroupTotals Totals `json:"group_totals"`
}

// Data are the rows of a page: an array, or with stack an object of arrays.
type Data[T any] struct {
	// Rows are the rows in their order, stacked or not. A module may change them in place, to set members that depend on the
	// caller; it must not change their number.
	Rows []T

	stacked bool
	groups  []rowGroup // in the order of the keys
}

// rowGroup is a group with the positions of its rows.
type rowGroup struct {
	key  string
	rows []int
}

// MarshalJSONTo encodes the rows, or the groups in the order of the keys.
func (d *Data[T]) MarshalJSONTo(enc *jsontext.Encoder) error {
	if !d.stacked {
		return json.MarshalEncode(enc, d.Rows)
	}
	return writeGroups(enc, d.groups, endpoint.Rows{Slice: d.Rows})
}

// writeGroups encodes an object of arrays.
func writeGroups(enc *jsontext.Encoder, groups []rowGroup, rows endpoint.Rows) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, g := range groups {
		if err := g.write(enc, rows); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

func (g rowGroup) write(enc *jsontext.Encoder, rows endpoint.Rows) error {
	if err := enc.WriteToken(jsontext.String(g.key)); err != nil {
		return err
	}
	if err := enc.WriteToken(jsontext.BeginArray); err != nil {
		return err
	}
	for _, i := range g.rows {
		if err := json.MarshalEncode(enc, rows.At(i)); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndArray)
}

// Total is the number of matching rows of a group, on any page.
type Total struct {
	Key  string
	Rows int64
}

// Totals are encoded as one object with a member for each group.
type Totals []Total

// MarshalJSONTo encodes the totals in their order.
func (t Totals) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, total := range t {
		if err := enc.WriteToken(jsontext.String(total.Key)); err != nil {
			return err
		}
		if err := enc.WriteToken(jsontext.Int(total.Rows)); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// JSONSchemaOneOf returns the shape for the API document.
func (Totals) JSONSchemaOneOf() []any { return []any{map[string]int64{}} }

// Type is the type of a field: how its values are parsed, compared and shown.
type Type uint8

// The types of fields, each with the column that it needs.
const (
	Text    Type = iota + 1 // TEXT, compared case-insensitively
	UUID                    // TEXT with an id in lower case
	Bool                    // BOOLEAN
	Number                  // BIGINT
	Time                    // BIGINT, Unix milliseconds
	Date                    // TEXT with YYYY-MM-DD
	Decimal                 // TEXT with a number from 0 to below 10 and three decimals, so that texts are in the order of the numbers
	Blank                   // no column: empty on every row, so that no search matches
)

// typeNames are the names of the types in the API document.
var typeNames = map[Type]string{
	Text: "text", UUID: "uuid", Bool: "boolean", Number: "number", Time: "date-time", Date: "date", Decimal: "number", Blank: "text",
}

// Index is the index that sorts by a field.
type Index uint8

// The indexes of a field. A list without an index is sorted by all its rows: their ids first, so that an index that has the column
// somewhere saves reading the rows.
const (
	NoIndex     Index = iota
	ThenID            // (column, id)
	ThenCreated       // (column, created, id): equal rows are in the order of their creation
	NullsApart        // (column, created, id) of the rows that have a value; the others are read in the order of their creation
	// EmptyApart is (key, created, id) of the rows whose text is not empty, which are few. The others are read in the order of their creation.
	EmptyApart
	First // (column, …): rows with the same value are sorted when they are read
)

// Field is a member of a record for search, sort, stack and distinct.
type Field struct {
	Name   string // as in JSON
	Type   Type
	Column string // SQL expression of the stored value
	Null   bool   // the column may hold NULL

	// Key is, for Text, the column with types.Fold of the text, which is searched and sorted. A column whose texts are
	// folded already, such as a status, is its own key. Without a key, SQL's lower() is applied. No index supports
	// it, and on SQLite it folds only the letters A to Z: enough for codes, not for names.
	Key string
	// Index says which index sorts by the field.
	Index Index
	// Few says that the column has few different values, such as a status or a country. The number of rows of each is then
	// remembered: it answers searches for the field, and says where a sorted page begins, without an index. Rows that are equal in
	// it are in the order of their creation. With more than 1000 values it has no effect. Only for Bool and for Text without Order.
	Few bool
	// Order is, for names, the column with types.SortKey of the text. Without it, Key is sorted.
	Order string
	// Fold converts a searched text to the form of Key; nil: types.Fold. Codes that are stored in capitals use
	// strings.ToUpper.
	Fold func(string) string
}

// Fields are the fields of a list in the order of the API document.
type Fields []Field

// complete returns the field with defaults for missing values.
func (f Field) complete() (Field, error) {
	switch {
	case f.Name == "":
		return f, fmt.Errorf("a field has no name")
	case f.Type < Text || f.Type > Blank:
		return f, fmt.Errorf("field %s has no type", f.Name)
	case (f.Column == "") != (f.Type == Blank):
		return f, fmt.Errorf("field %s: every type but Blank needs a column", f.Name)
	case f.Type != Text && (f.Key != "" || f.Order != "" || f.Fold != nil):
		return f, fmt.Errorf("field %s: only texts have a key", f.Name)
	case f.Few && f.Type != Bool && (f.Type != Text || f.Order != ""):
		return f, fmt.Errorf("field %s: only texts without an order of their own and booleans have few values", f.Name)
	}
	if f.Type == Text && f.Key == "" {
		f.Key = "lower(" + f.Column + ")"
	}
	if f.Fold == nil {
		f.Fold = types.Fold
	}
	return f, nil
}

// sortColumn returns the SQL expression for sorting.
func (f *Field) sortColumn() string {
	switch {
	case f.Order != "":
		return f.Order
	case f.Type == Text:
		return f.Key
	}
	return f.Column
}

// valueColumn returns the SQL expression of the stored value.
func (f *Field) valueColumn() string {
	if f.Type == Blank {
		return "''"
	}
	return f.Column
}
