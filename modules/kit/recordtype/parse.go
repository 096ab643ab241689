package recordtype

import (
	"database/sql"
	"fmt"
	"reflect"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/types"
	"kontor/modules/kit/validate"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// Rule checks the text of a member and returns the text to store. It adds an error for a wrong one.
type Rule func(v *apierr.Fields, name, text string) string

// Line is the rule for an optional single line of at most limit characters.
func Line(limit int) Rule {
	return func(v *apierr.Fields, name, text string) string { return validate.Line(v, name, text, limit) }
}

// RequiredLine is the rule for a single line that must not be empty.
func RequiredLine(limit int) Rule {
	return func(v *apierr.Fields, name, text string) string { return validate.Required(v, name, text, limit) }
}

// Parsed is the rule for a text that a parser of package types accepts. An empty text is none.
func Parsed[P any](parse func(string) (P, error)) Rule {
	return func(v *apierr.Fields, name, text string) string {
		if text == "" {
			return ""
		}
		return Given(parse)(v, name, text)
	}
}

// Given is [Parsed] without the exception: who has no value leaves the member out, or sends null.
func Given[P any](parse func(string) (P, error)) Rule {
	return func(v *apierr.Fields, name, text string) string {
		parsed, err := parse(text)
		if err != nil {
			validate.Note(v, name, err)
			return ""
		}
		return fmt.Sprint(parsed)
	}
}

// Required is another rule for a text that must not be empty.
func Required(rule Rule) Rule {
	return func(v *apierr.Fields, name, text string) string {
		if text == "" {
			v.Add(name, "invalid.required")
			return ""
		}
		return rule(v, name, text)
	}
}

// JSON is the rule for a free-form JSON object.
func JSON(v *apierr.Fields, name, text string) string {
	return validate.Metadata(v, name, jsontext.Value(text))
}

// Parse returns a record with the members of an input that have rules. in is a pointer to a struct. A member is a text, a pointer to one,
// or metadata. Members of the type [endpoint.Optional] that the request leaves out stay as they are.
func (t *Type[T]) Parse(v *apierr.Fields, in any, record T) T {
	input := reflect.ValueOf(in).Elem()
	given := members(input.Type())
	for _, c := range t.columns {
		index, known := given[c.Name]
		if c.Parse == nil || !known {
			continue
		}
		text, present, keep := content(input.Field(index).Interface())
		if keep {
			continue
		}
		if present {
			text = c.Parse(v, c.Name, text)
		}
		set(t.at(&record, c.Name), text)
	}
	return record
}

// content returns the text of a member of an input. keep is true for a member that leaves the record as it is.
func content(member any) (text string, present, keep bool) {
	switch m := member.(type) {
	case string:
		return m, true, false
	case *string:
		return types.EmptyIfNil(m), m != nil, false
	case jsontext.Value:
		return string(m), true, false
	case endpoint.Optional[string]:
		return m.Value, true, !m.Given
	case endpoint.Optional[jsontext.Value]:
		return string(m.Value), true, !m.Given
	}
	panic(fmt.Sprintf("recordtype: a member of an input has the type %T", member))
}

// set stores a text in a member of a record.
func set(member reflect.Value, text string) {
	switch m := member.Addr().Interface().(type) {
	case *string:
		*m = text
	case **string:
		*m = types.NilIfEmpty(text)
	case *jsontext.Value:
		*m = jsontext.Value(text)
	case sql.Scanner:
		if err := m.Scan(text); err != nil {
			panic(fmt.Sprintf("recordtype: the rule of a member returned %q: %v", text, err))
		}
	default:
		panic(fmt.Sprintf("recordtype: a member of a record has the type %s", member.Type()))
	}
}
