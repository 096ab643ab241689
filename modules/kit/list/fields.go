package list

import (
	"fmt"

	"kontor/modules/kit/types"
)

// Type is the type of a field: how its values are parsed, compared and shown.
type Type uint8

// The types of fields, each with the column that it needs.
const (
	Text   Type = iota + 1 // TEXT, compared case-insensitively
	UUID                   // TEXT with an id in lower case
	Bool                   // BOOLEAN
	Number                 // BIGINT
	Time                   // BIGINT, Unix milliseconds
	Date                   // TEXT with YYYY-MM-DD
	Blank                  // no column: empty on every row, so that no search matches
)

// typeNames are the names of the types in the API document.
var typeNames = map[Type]string{
	Text: "text", UUID: "uuid", Bool: "boolean", Number: "number", Time: "date-time", Date: "date", Blank: "text",
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
