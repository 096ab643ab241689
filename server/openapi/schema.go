package openapi

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Types with a custom JSON form describe it by these methods. The interfaces are declared here: the types need not import this
// package.
type (
	// stringer is a type that is encoded as a string of a format, or as null.
	stringer interface {
		JSONString() (format string, orNull bool)
	}
	// enumerated is a text with a fixed set of values.
	enumerated interface{ Values() []string }
	// shapes is a type that is encoded as one of several others.
	shapes interface{ JSONSchemaOneOf() []any }
)

var (
	typeAny       = reflect.TypeFor[any]()
	typeRaw       = reflect.TypeFor[jsontext.Value]()
	typeBytes     = reflect.TypeFor[[]byte]()
	typeMarshaler = reflect.TypeFor[json.Marshaler]()
	typeWriter    = reflect.TypeFor[json.MarshalerTo]()
)

// types builds schemas of Go types and stores those with a name as components. Answers and inputs of a type differ: an answer
// has all members, a request may omit some.
type types struct {
	components Map[*Schema]
	known      map[string]reflect.Type // component → type
	problems   []error
}

func newTypes() *types { return &types{known: map[string]reflect.Type{}} }

// of returns the schema of a type in a body: a reference for a struct with a name.
func (t *types) of(typ reflect.Type, input bool) *Schema {
	if typ.Kind() == reflect.Pointer {
		return nullable(t.of(typ.Elem(), input))
	}
	if s := t.special(typ, input); s != nil {
		return s
	}
	switch typ.Kind() {
	case reflect.String:
		return &Schema{Type: "string"}
	case reflect.Bool:
		return &Schema{Type: "boolean"}
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return &Schema{Type: "integer"}
	case reflect.Float64:
		return &Schema{Type: "number"}
	case reflect.Slice, reflect.Array:
		return &Schema{Type: "array", Items: t.of(typ.Elem(), input)}
	case reflect.Map:
		s := &Schema{Type: "object", AdditionalProperties: t.of(typ.Elem(), input)}
		if keys := t.of(typ.Key(), input); len(keys.Enum) > 0 {
			s.PropertyNames = keys
		}
		return s
	case reflect.Struct:
		return t.structure(typ, input)
	default:
		t.complain("type %s has no JSON form", typ)
		return &Schema{}
	}
}

// special returns the schema of a type whose JSON differs from its Go form, or nil.
func (t *types) special(typ reflect.Type, input bool) *Schema {
	switch zero := reflect.Zero(typ).Interface().(type) {
	case stringer:
		format, orNull := zero.JSONString()
		s := &Schema{Type: "string", Format: format}
		if orNull {
			return nullable(s)
		}
		return s
	case shapes:
		var all []*Schema
		for _, shape := range zero.JSONSchemaOneOf() {
			all = append(all, t.of(reflect.TypeOf(shape), input))
		}
		if len(all) == 1 {
			return all[0]
		}
		return &Schema{OneOf: all}
	case enumerated:
		s := &Schema{Type: "string"}
		for _, v := range zero.Values() {
			s.Enum = append(s.Enum, v)
		}
		return s
	}
	switch {
	case typ == typeAny:
		return &Schema{}
	case typ == typeRaw:
		return &Schema{Type: "object", AdditionalProperties: true}
	case typ == typeBytes:
		return &Schema{Type: "string", Format: "binary"}
	case strings.HasPrefix(typ.Name(), "Optional[") && typ.Kind() == reflect.Struct:
		value, _ := typ.FieldByName("Value")
		return nullable(t.of(value.Type, input))
	case isStackable(typ):
		return t.of(rowsOf(typ), input)
	case typ.Implements(typeMarshaler) || typ.Implements(typeWriter):
		t.complain("type %s writes itself and does not describe its form (JSONString, Values or JSONSchemaOneOf)", typ)
		return &Schema{}
	}
	return nil
}

// structure returns a reference to the component of a struct, or the object itself if the struct has no name.
func (t *types) structure(typ reflect.Type, input bool) *Schema {
	build := func() *Schema {
		if input {
			return t.object(typ, true)
		}
		return t.withPeople(t.object(typ, false), typ)
	}
	name := componentName(typ)
	if name == "" {
		return build()
	}
	if input && !strings.HasSuffix(name, "Input") {
		name += "Input"
	}
	return t.component(name, typ, build)
}

// component returns a reference to the component of a type. It calls build the first time.
func (t *types) component(name string, typ reflect.Type, build func() *Schema) *Schema {
	if other, taken := t.known[name]; !taken {
		t.known[name] = typ
		place := &Schema{}
		t.components.Set(name, place) // before the members, because types may be recursive
		*place = *build()
	} else if other != typ {
		t.complain("types %s and %s have the same name %s", typ, other, name)
	}
	return schemaRef(name)
}

func (t *types) object(typ reflect.Type, input bool) *Schema {
	return t.objectOf(componentName(typ), typ, input)
}

// objectOf returns the schema of a struct. owner begins the names of the enumerations of its members.
func (t *types) objectOf(owner string, typ reflect.Type, input bool) *Schema {
	s := &Schema{Type: "object"}
	t.members(s, owner, typ, input)
	return s
}

// members adds the members of a struct and of its embedded structs.
func (t *types) members(s *Schema, owner string, typ reflect.Type, input bool) {
	for i := range typ.NumField() {
		field := typ.Field(i)
		_, tagged := field.Tag.Lookup("json")
		if field.Anonymous && !tagged && field.Type.Kind() == reflect.Struct {
			t.members(s, owner, field.Type, input)
		} else if field.Tag.Get("hidden") != "true" {
			t.field(s, owner, field, input)
		}
	}
}

// field adds the member of a field, unless JSON omits it.
func (t *types) field(s *Schema, owner string, field reflect.StructField, input bool) {
	tag, tagged := field.Tag.Lookup("json")
	name, options, _ := strings.Cut(tag, ",")
	if !field.IsExported() || name == "-" || !tagged {
		return
	}
	s.Properties.Set(name, t.named(owner, name, t.member(name, field, input)))
	required := !input && !strings.Contains(options, "omit")
	if asked, ok := field.Tag.Lookup("required"); ok {
		required = asked == "true"
	}
	if required {
		s.Required = append(s.Required, name)
	}
}

// member returns the schema of a field, completed by its tags and its name.
func (t *types) member(name string, field reflect.StructField, input bool) *Schema {
	s := &Schema{} // any value
	if field.Tag.Get("type") != "any" {
		s = t.of(field.Type, input)
	}
	if s.Ref != "" {
		return s
	}
	if err := applyTags(s, field.Tag); err != nil {
		t.complain("%s: %w", name, err)
	}
	suggest(s, name)
	if input && s.Default != nil { // generators require members with a default: an answer always has them
		s.Description = strings.TrimSpace(s.Description + fmt.Sprintf(" Default: %v.", s.Default))
		s.Default = nil
	}
	return s
}

// resolve returns the schema that a reference points to.
func (t *types) resolve(s *Schema) *Schema {
	if name, ok := strings.CutPrefix(s.Ref, schemaPrefix); ok {
		if target, known := t.components.Get(name); known {
			return target
		}
	}
	return s
}

func (t *types) complain(format string, args ...any) {
	t.problems = append(t.problems, fmt.Errorf(format, args...))
}

// nullable returns a schema that also allows null.
func nullable(s *Schema) *Schema {
	null := &Schema{Type: "null"}
	switch kind := s.Type.(type) {
	case string:
		s.Type = []string{kind, "null"}
		if s.Enum != nil && !slices.Contains(s.Enum, nil) {
			s.Enum = append(s.Enum, nil)
		}
		return s
	case []string:
		return s
	}
	switch {
	case s.Ref != "":
		return &Schema{AnyOf: []*Schema{s, null}}
	case s.AnyOf != nil && s.AnyOf[len(s.AnyOf)-1].Type == "null":
	case s.AnyOf != nil:
		s.AnyOf = append(s.AnyOf, null)
	case s.OneOf != nil:
		s.OneOf = append(s.OneOf, null)
	}
	return s
}

// Kind returns the type of a schema apart from null.
func (s *Schema) Kind() string {
	switch kind := s.Type.(type) {
	case string:
		return kind
	case []string:
		return kind[0]
	}
	return ""
}

// isStackable reports whether a type is list.Data: an array, or with the parameter stack an object of arrays.
func isStackable(typ reflect.Type) bool {
	return strings.HasPrefix(typ.Name(), "Data[") && typ.Kind() == reflect.Struct
}

func rowsOf(data reflect.Type) reflect.Type {
	rows, _ := data.FieldByName("Rows")
	return rows.Type
}

// stackedPage returns the schema of the page of a list with the parameter stack; nil for other types. It is a component of its own, so
// that clients have an array in the data of a plain page.
func (t *types) stackedPage(page reflect.Type) *Schema {
	if page.Kind() != reflect.Struct || page.NumField() == 0 || !isStackable(page.Field(0).Type) {
		return nil
	}
	name := strings.TrimSuffix(componentName(page), "Page") + "StackedPage"
	return t.component(name, page, func() *Schema {
		s := &Schema{Type: "object"}
		rows := t.of(rowsOf(page.Field(0).Type), false)
		s.Properties.Set("data", &Schema{Type: "object", Description: "The rows of each group.", AdditionalProperties: rows})
		s.Required = []string{"data"}
		for i := 1; i < page.NumField(); i++ {
			t.field(s, name, page.Field(i), false)
		}
		return t.withPeople(s, page)
	})
}
