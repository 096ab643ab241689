package csvtable

import (
	"encoding"
	stdjson "encoding/json"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
)

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
