package endpoint

import (
	"context"
	"encoding"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/apierr"
)

// maxWrong bounds the wrong values of a request that are reported. More are those of a long array.
const maxWrong = 100

// optional is a member that distinguishes absent and null: *Optional.
type optional interface{ value() reflect.Value }

// decode decodes a value of the body. null leaves targets that are no pointers unchanged. If the value is wrong, decode decodes
// each part of an object or array by itself: all wrong parts are reported at once, and the rules of the input check the others.
func decode(target reflect.Value, at string, value jsontext.Value, problems *apierr.Fields) {
	err := json.Unmarshal(value, target.Addr().Interface())
	if err == nil {
		return
	}
	known := problems.Len()
	decodeParts(target, at, value, problems)
	if problems.Len() > known || problems.Len() >= maxWrong {
		return
	}
	if rule, ok := errors.AsType[localized](err); ok {
		key, args := rule.Text()
		problems.Add(at+pointerSuffix(err), key, args)
		return
	}
	problems.Add(at+pointerSuffix(err), "invalid.type")
}

// decodeParts decodes the members of an object or the entries of an array. It does nothing for other values.
func decodeParts(target reflect.Value, at string, value jsontext.Value, problems *apierr.Fields) {
	if o, ok := target.Addr().Interface().(optional); ok {
		decodeParts(o.value(), at, value, problems)
		return
	}
	if decodesItself(target) {
		return
	}
	switch kind := target.Kind(); {
	case kind == reflect.Pointer && target.Type().Elem().Kind() != reflect.Struct:
		target.SetZero()
	case kind == reflect.Pointer:
		target.Set(reflect.New(target.Type().Elem()))
		decodeParts(target.Elem(), at, value, problems)
	case kind == reflect.Struct && value.Kind() == '{':
		target.SetZero()
		decodeMembers(target, at, value, problems)
	case kind == reflect.Slice && value.Kind() == '[':
		target.SetZero()
		decodeEntries(target, at, value, problems)
	}
}

// decodesItself reports whether a type has a JSON form of its own.
func decodesItself(target reflect.Value) bool {
	switch target.Addr().Interface().(type) {
	case json.Unmarshaler, json.UnmarshalerFrom, encoding.TextUnmarshaler:
		return true
	}
	return false
}

func decodeMembers(target reflect.Value, at string, value jsontext.Value, problems *apierr.Fields) {
	fields := map[string]int{}
	for i := range target.NumField() {
		if name, _, _ := strings.Cut(target.Type().Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = i
		}
	}
	eachPart(value, func(name string, _ int, part jsontext.Value) bool {
		if i, known := fields[name]; known {
			decode(target.Field(i), at+"."+name, part, problems)
		}
		return true
	})
}

func decodeEntries(target reflect.Value, at string, value jsontext.Value, problems *apierr.Fields) {
	eachPart(value, func(_ string, i int, part jsontext.Value) bool {
		entry := reflect.New(target.Type().Elem()).Elem()
		decode(entry, at+"."+strconv.Itoa(i), part, problems)
		target.Set(reflect.Append(target, entry))
		return problems.Len() < maxWrong
	})
}

// eachPart calls f with the members of an object, or with the entries of an array, until f returns false. The value is valid
// JSON.
func eachPart(value jsontext.Value, f func(name string, i int, part jsontext.Value) bool) {
	decoder := jsontext.NewDecoder(strings.NewReader(string(value)))
	first, err := decoder.ReadToken()
	if err != nil {
		return
	}
	object := first.Kind() == '{'
	for i := 0; decoder.PeekKind() > 0 && decoder.PeekKind() != ']' && decoder.PeekKind() != '}'; i++ {
		name := ""
		if object {
			token, err := decoder.ReadToken()
			if err != nil {
				return
			}
			name = token.String()
		}
		part, err := decoder.ReadValue()
		if err != nil || !f(name, i, part.Clone()) {
			return
		}
	}
}

// localized is an error of a type's own decoder, with a text for the client that is better than "wrong type".
type localized interface {
	error
	Text() (key string, args map[string]any)
}

// pointerSuffix returns the place of a decoding error within a member: ".city", ".0.type" or nothing.
func pointerSuffix(err error) string {
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok || semantic.JSONPointer == "" {
		return ""
	}
	return strings.ReplaceAll(string(semantic.JSONPointer), "/", ".")
}

// validated is implemented by inputs with rules.
type validated interface{ Validate(v *apierr.Fields) }

// validatedNow is implemented by inputs whose rules depend on the request, such as dates that must not be in the future.
type validatedNow interface {
	Validate(ctx context.Context, v *apierr.Fields)
}

// collector is implemented by inputs of which the service checks more than their rules can. The service must add its problems to
// those of the decoder, and return their error.
type collector interface{ Collect(problems *apierr.Fields) }

// Problems returns the members of a body that the rules of the input reject. It does not call the handler: rules that depend on stored
// records do not apply. It returns nil if the handler has no input.
func (h Handler) Problems(ctx context.Context, body string) *apierr.Fields {
	if h.plan == nil || !h.plan.hasBody() {
		return nil
	}
	in, problems := reflect.New(h.plan.input), &apierr.Fields{}
	if err := h.plan.bindBody([]byte(body), in.Elem(), problems); err != nil {
		if wrong, ok := errors.AsType[*apierr.Error](err); ok {
			return wrong.Fields
		}
		problems.Add("body", "invalid.json")
	}
	check(ctx, in.Interface(), problems)
	return problems
}

// QueryProblems is Problems for a request with one parameter of the query.
func (h Handler) QueryProblems(ctx context.Context, name, value string) *apierr.Fields {
	in, problems := reflect.New(h.plan.input), &apierr.Fields{}
	for _, field := range h.plan.query {
		if field.name == name {
			setQuery(in.Elem().Field(field.index), field, []string{value}, problems)
		}
	}
	check(ctx, in.Interface(), problems)
	return problems
}

// check adds what the rules of an input reject.
func check(ctx context.Context, in any, problems *apierr.Fields) {
	switch checked := in.(type) {
	case validated:
		checked.Validate(problems)
	case validatedNow:
		checked.Validate(ctx, problems)
	}
}

// read returns a pointer to the input of a request. It returns the error of all wrong fields together.
func (p *plan) read(ctx context.Context, r *Request) (any, error) {
	target := reflect.New(p.input)
	in, problems := target.Interface(), &apierr.Fields{}
	if err := p.bind(r, target.Elem(), problems); err != nil {
		return nil, err
	}
	check(ctx, in, problems)
	if service, ok := in.(collector); ok {
		service.Collect(problems)
		return in, nil
	}
	return in, problems.Err()
}

// Optional is a member of a body that distinguishes absent, null and a value. Updates keep absent members unchanged.
type Optional[T any] struct {
	Given bool // the member is in the body
	Null  bool // its value is null
	Value T
}

// UnmarshalJSON decodes the value. It is not called for an absent member.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	o.Given = true
	if string(data) == "null" {
		o.Null = true
		return nil
	}
	return json.Unmarshal(data, &o.Value)
}

func (o *Optional[T]) value() reflect.Value { return reflect.ValueOf(&o.Value).Elem() }

// Or returns the value if the member was given, the zero value for null, and otherwise now.
func (o Optional[T]) Or(now T) T {
	if !o.Given {
		return now
	}
	return o.Value
}

// NonEmpty returns a pointer to a text, or nil for an empty one: members that are null when they have no value.
func NonEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
