package endpoint

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/apierr"
)

// The limits of every body, whatever its type. They hold while the body is read: no value is decoded before its size is known to be allowed.
// Arrays and objects with free names have limits of their own, by the tags maxItems and maxProperties.
const (
	// MaxValues is the maximum number of values in a body. Arrays, objects and their entries count one each.
	MaxValues = 20_000
	// MaxFreeValues is the same for a member without a declared form, such as metadata.
	MaxFreeValues = 1_000
	// MaxDepth is how deep arrays and objects may be nested.
	MaxDepth = 64
)

// limits are those of a value. nil: only the limits of every body apply.
type limits struct {
	items   int                // of an array
	members int                // of an object with free names; zero: the names are those of fields
	each    *limits            // of the entries of the array or object
	fields  map[string]*limits // of the members of a struct
	free    bool               // the value has no declared form
}

// limiter makes the limits of types, and lists the fields without a declared limit.
type limiter struct {
	known      map[reflect.Type]*limits
	undeclared []string
}

// ofStruct returns the limits of the members that JSON has.
func (l *limiter) ofStruct(t reflect.Type) *limits {
	if made, ok := l.known[t]; ok {
		return made
	}
	made := &limits{fields: map[string]*limits{}}
	l.known[t] = made // before the members, because types may be recursive
	l.addFields(made, t)
	return made
}

func (l *limiter) addFields(to *limits, t reflect.Type) {
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && name == "" && field.Type.Kind() == reflect.Struct:
			l.addFields(to, field.Type)
		case field.IsExported() && name != "" && name != "-":
			to.fields[name] = l.of(field.Type, field.Tag, t.String()+"."+field.Name)
		}
	}
}

// of returns the limits of a type with the tags of its field.
func (l *limiter) of(t reflect.Type, tag reflect.StructTag, where string) *limits {
	switch reflect.Zero(reflect.PointerTo(t)).Interface().(type) {
	case optional:
		value, _ := t.FieldByName("Value")
		return l.of(value.Type, tag, where)
	case InPlace:
		return &limits{free: true}
	case json.Unmarshaler, json.UnmarshalerFrom, encoding.TextUnmarshaler:
		if t.Kind() != reflect.Slice && t.Kind() != reflect.Map {
			return &limits{free: true}
		}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return l.of(t.Elem(), tag, where)
	case reflect.Interface:
		return &limits{free: true}
	case reflect.Struct:
		return l.ofStruct(t)
	case reflect.Slice, reflect.Array:
		if t == typeRaw {
			return &limits{free: true}
		}
		if t.Elem().Kind() == reflect.Uint8 {
			return nil // a text in base64
		}
		return &limits{items: l.declared(tag, "maxItems", where), each: l.of(t.Elem(), "", where+"[]")}
	case reflect.Map:
		return &limits{members: l.declared(tag, "maxProperties", where), each: l.of(t.Elem(), "", where+"[]")}
	default:
		return nil
	}
}

var typeRaw = reflect.TypeFor[jsontext.Value]()

// declared returns the limit in a tag, which must be there.
func (l *limiter) declared(tag reflect.StructTag, name, where string) int {
	limit, err := strconv.Atoi(tag.Get(name))
	if err != nil || limit <= 0 {
		l.undeclared = append(l.undeclared, fmt.Sprintf("%s needs the tag %s", where, name))
	}
	return limit
}

// walk reads a value of a body and checks its limits. It keeps nothing of the value.
type walk struct {
	*jsontext.Decoder
	left int // values that may still come
}

// value reads the next value. It returns apierr.InvalidInput for one that is too large, and the error of the decoder for one that is no
// JSON.
func (w *walk) value(of *limits) error {
	if of != nil && of.free {
		return w.freeValue()
	}
	if w.left == 0 {
		return errValues
	}
	w.left--
	token, err := w.ReadToken()
	if err != nil {
		return err
	}
	switch token.Kind() {
	case '[':
		return w.entries(of)
	case '{':
		return w.members(of)
	default:
		return nil
	}
}

// errValues and errDepth are the limits of every body.
var (
	errValues = errors.New("too many values")
	errDepth  = errors.New("too deep")
)

func tooMany(field, key string, limit int) error {
	return apierr.Invalid(field, key, apierr.Args{"Max": limit})
}

// freeValue reads a value without a declared form.
func (w *walk) freeValue() error {
	before, depth := w.left, w.StackDepth()
	w.left = min(before, MaxFreeValues)
	allowed := w.left
	err := w.value(nil)
	if errors.Is(err, errValues) && allowed < before {
		return tooMany(w.place(depth), "invalid.max_values", MaxFreeValues)
	}
	w.left = before - allowed + w.left
	return err
}

// entries reads the rest of an array.
func (w *walk) entries(of *limits) error {
	if w.StackDepth() > MaxDepth {
		return errDepth
	}
	var each *limits
	if of != nil {
		each = of.each
	}
	for n := 1; w.PeekKind() != ']'; n++ {
		if of != nil && of.items > 0 && n > of.items {
			return tooMany(w.place(w.StackDepth()-1), "invalid.max_items", of.items)
		}
		if err := w.value(each); err != nil {
			return err
		}
	}
	_, err := w.ReadToken()
	return err
}

// members reads the rest of an object.
func (w *walk) members(of *limits) error {
	if w.StackDepth() > MaxDepth {
		return errDepth
	}
	for n := 1; w.PeekKind() != '}'; n++ {
		name, err := w.ReadToken()
		if err != nil {
			return err
		}
		var member *limits
		if of != nil {
			member = of.each
			if of.fields != nil {
				member = of.fields[name.String()]
			}
		}
		if of != nil && of.members > 0 && n > of.members {
			return tooMany(w.place(w.StackDepth()-1), "invalid.max_properties", of.members)
		}
		if err := w.value(member); err != nil {
			return err
		}
	}
	_, err := w.ReadToken()
	return err
}

// place returns the name of the value that is being read, as errors name it, up to a depth.
func (w *walk) place(depth int) string {
	names := strings.Split(strings.TrimPrefix(string(w.StackPointer()), "/"), "/")
	return Clip(strings.Join(names[:min(depth, len(names))], "."))
}

// ofQuery returns how often a parameter of the query may be repeated; zero for one that has a single value.
func (l *limiter) ofQuery(field reflect.StructField, in reflect.Type) int {
	if field.Type.Kind() != reflect.Slice {
		return 0
	}
	return l.declared(field.Tag, "maxItems", in.String()+"."+field.Name)
}
