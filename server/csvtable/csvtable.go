// Package csvtable writes records as a table of comma-separated values (RFC 4180) that is safe to open in a spreadsheet.
//
// The columns are the members of the records' JSON in their order, those of nested objects as well (address.city). Texts in
// arrays are one cell with semicolons between them; other arrays and free objects are cells with JSON.
//
// A spreadsheet runs a text that begins with =, +, - or @ as a formula, which may send other cells to a foreign server. Such
// texts get an apostrophe in front. Numbers have none: they cannot be formulas.
package csvtable

import (
	"bytes"
	"encoding"
	stdjson "encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Writer appends records to a table. It must not be used concurrently.
type Writer struct {
	columns []string
	place   map[string]int // column → position
	nested  map[string]bool
	options json.Options
	record  bytes.Buffer // JSON of the present record
	cells   []string
}

// New returns a writer for records of a type, which must be a struct, with the options of their JSON.
func New(t reflect.Type, options json.Options) *Writer {
	w := &Writer{columns: columnsOf(t), place: map[string]int{}, nested: map[string]bool{}, options: options}
	for i, column := range w.columns {
		w.place[column] = i
		for at, c := range column {
			if c == '.' {
				w.nested[column[:at]] = true
			}
		}
	}
	w.cells = make([]string, len(w.columns))
	return w
}

// Columns returns the names of the columns in their order.
func (w *Writer) Columns() []string { return slices.Clone(w.columns) }

// AppendHeader appends the row with the names of the columns.
func (w *Writer) AppendHeader(b []byte) []byte { return appendRow(b, w.columns) }

// Append appends a record.
func (w *Writer) Append(b []byte, record any) ([]byte, error) {
	w.record.Reset()
	if err := json.MarshalWrite(&w.record, record, w.options); err != nil {
		return b, fmt.Errorf("encode a row: %w", err)
	}
	clear(w.cells)
	if err := w.read(jsontext.NewDecoder(&w.record), ""); err != nil {
		return b, fmt.Errorf("read a row: %w", err)
	}
	return appendRow(b, w.cells), nil
}

// Key returns what identifies the record that was appended last: its id, or all its cells.
func (w *Writer) Key() string {
	if i, ok := w.place["id"]; ok {
		return w.cells[i]
	}
	return strings.Join(w.cells, "\x00")
}

// read fills the cells from an object.
func (w *Writer) read(dec *jsontext.Decoder, prefix string) error {
	if _, err := dec.ReadToken(); err != nil { // the brace
		return err
	}
	for dec.PeekKind() == '"' {
		token, err := dec.ReadToken()
		if err != nil {
			return err
		}
		name := prefix + token.String()
		if w.nested[name] && dec.PeekKind() == '{' {
			if err := w.read(dec, name+"."); err != nil {
				return err
			}
			continue
		}
		value, err := dec.ReadValue()
		if err != nil {
			return err
		}
		if i, known := w.place[name]; known {
			w.cells[i] = cell(value)
		}
	}
	_, err := dec.ReadToken()
	return err
}

// cell returns the text of a JSON value.
func cell(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		return safe(unquoted(value))
	case 'n':
		return ""
	case '[':
		return safe(joined(value))
	default: // numbers, true, false and objects
		return string(value)
	}
}

func unquoted(value jsontext.Value) string {
	text, err := jsontext.AppendUnquote(nil, value)
	if err != nil {
		return string(value)
	}
	return string(text)
}

// joined returns the entries of an array with semicolons, or the JSON of an array with other entries than texts and numbers.
func joined(value jsontext.Value) string {
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	if _, err := dec.ReadToken(); err != nil {
		return string(value)
	}
	var entries []string
	for dec.PeekKind() != ']' {
		entry, err := dec.ReadValue()
		switch {
		case err != nil:
			return string(value)
		case entry.Kind() == '"':
			entries = append(entries, unquoted(entry))
		case entry.Kind() == '0':
			entries = append(entries, string(entry))
		default:
			return string(value)
		}
	}
	return strings.Join(entries, "; ")
}

// blanks precede a formula in some spreadsheets without hiding it.
const blanks = " \u00a0\u200b\ufeff"

// formulaStarts are the characters at which spreadsheets begin a formula, also in their wide forms, and the control characters that
// some of them skip.
const formulaStarts = "=+-@\t\r\n\u0000＝＋－＠"

// guard precedes texts that a spreadsheet would take for a formula, and texts that would be taken for a guarded one.
const guard = "'"

// safe returns a text that no spreadsheet takes for a formula.
func safe(text string) string {
	if guarded(text) {
		return guard + text
	}
	return text
}

// guarded reports whether a text gets an apostrophe. Apostrophes in front of a formula count as a part of it, so that [Plain] finds the
// text that each cell was made from.
func guarded(text string) bool {
	first, size := utf8.DecodeRuneInString(strings.TrimLeft(strings.TrimLeft(text, guard), blanks))
	return size > 0 && strings.ContainsRune(formulaStarts, first)
}

// Plain returns the text of a cell without the apostrophe that protects from formulas.
func Plain(cell string) string {
	if text, found := strings.CutPrefix(cell, guard); found && guarded(text) {
		return text
	}
	return cell
}

// appendRow appends a row with the line end of RFC 4180.
func appendRow(b []byte, cells []string) []byte {
	for i, text := range cells {
		if i > 0 {
			b = append(b, ',')
		}
		if !strings.ContainsAny(text, ",\"\r\n;\t") && text == strings.TrimSpace(text) {
			b = append(b, text...)
			continue
		}
		b = append(b, '"')
		b = append(b, strings.ReplaceAll(text, `"`, `""`)...)
		b = append(b, '"')
	}
	return append(b, '\r', '\n')
}

// maxDepth bounds the nesting of columns. Deeper objects are cells with JSON.
const maxDepth = 4

// columnsOf returns the columns of a type of rows in the order of its JSON members. The members of a nested object are columns
// with the names of both: address.city.
func columnsOf(t reflect.Type) []string {
	return appendColumns(nil, t, "", 0)
}

func appendColumns(columns []string, t reflect.Type, prefix string, depth int) []string {
	for field := range structOf(t).Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		inline := field.Anonymous && name == "" || strings.Contains(options, "inline")
		switch {
		case name == "-" || !field.IsExported() && !field.Anonymous:
		case inline && nests(field.Type):
			columns = appendColumns(columns, field.Type, prefix, depth+1)
		case nests(field.Type) && depth < maxDepth:
			columns = appendColumns(columns, field.Type, prefix+memberName(field, name)+".", depth+1)
		default:
			columns = append(columns, prefix+memberName(field, name))
		}
	}
	return columns
}

func memberName(field reflect.StructField, tagged string) string {
	if tagged != "" {
		return tagged
	}
	return field.Name
}

// structOf returns the struct that a type is or points to.
func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

var ownForms = []reflect.Type{
	reflect.TypeFor[json.MarshalerTo](), reflect.TypeFor[json.Marshaler](), reflect.TypeFor[stdjson.Marshaler](), reflect.TypeFor[encoding.TextMarshaler](),
}

// nests reports whether a type is encoded as an object with the members of a struct.
func nests(t reflect.Type) bool {
	object := structOf(t)
	if object.Kind() != reflect.Struct {
		return false
	}
	for _, form := range ownForms {
		if t.Implements(form) || object.Implements(form) || reflect.PointerTo(object).Implements(form) {
			return false
		}
	}
	return true
}
