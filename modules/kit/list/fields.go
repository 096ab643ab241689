package list

import (
	"fmt"

	"kontor/modules/kit/types"
)

// Type says how the values of a field are read, compared and shown.
type Type uint8

// The types of a field, with the column that each needs.
const (
	Text   Type = iota + 1 // TEXT, compared without regard to case
	UUID                   // TEXT with an id in lower case
	Bool                   // BOOLEAN
	Number                 // BIGINT
	Time                   // BIGINT, Unix milliseconds
	Date                   // TEXT with YYYY-MM-DD
	Blank                  // no column: empty on every row, so that no search matches
)

// typeNames are the types as the API's documentation names them.
var typeNames = map[Type]string{
	Text: "text", UUID: "uuid", Bool: "boolean", Number: "number", Time: "date-time", Date: "date", Blank: "text",
}

// Field is a member of a record by which a list can be searched, sorted, stacked and made distinct.
type Field struct {
	Name   string // as in JSON
	Type   Type
	Column string // SQL expression of the stored value
	Null   bool   // the column may hold NULL

	// Key is, for Text, the column that holds value.Fold of the text, and by which it is searched
	// and sorted. A column whose texts are folded already, such as a status, names itself. Without
	// a key the column goes through SQL's lower(), which no index serves and which knows only the
	// letters A to Z on SQLite: enough for codes, not for names.
	Key string
	// Fold turns a searched text into the form that Key holds; nil is value.Fold. Codes that are
	// stored in capitals take strings.ToUpper.
	Fold func(string) string
}

// Fields are what a module declares, in the order of its documentation.
type Fields []Field

// complete fills in what a field leaves out.
func (f Field) complete() (Field, error) {
	switch {
	case f.Name == "":
		return f, fmt.Errorf("a field has no name")
	case f.Type < Text || f.Type > Blank:
		return f, fmt.Errorf("field %s has no type", f.Name)
	case (f.Column == "") != (f.Type == Blank):
		return f, fmt.Errorf("field %s: every type but Blank needs a column", f.Name)
	case f.Type != Text && (f.Key != "" || f.Fold != nil):
		return f, fmt.Errorf("field %s: only texts have a key", f.Name)
	}
	if f.Type == Text && f.Key == "" {
		f.Key = "lower(" + f.Column + ")"
	}
	if f.Fold == nil {
		f.Fold = types.Fold
	}
	return f, nil
}

// sortColumn is what the rows are ordered by.
func (f *Field) sortColumn() string {
	if f.Type == Text {
		return f.Key
	}
	return f.Column
}

// valueColumn is the stored value, also where there is no column.
func (f *Field) valueColumn() string {
	if f.Type == Blank {
		return "''"
	}
	return f.Column
}
