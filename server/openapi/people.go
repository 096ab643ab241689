package openapi

import (
	"reflect"

	"kontor/server/endpoint"
)

// peopleDoc describes the member people of answers.
const peopleDoc = "The users that the answer refers to, by id. Unknown ids are missing. The member is missing if the answer refers to no user."

// answer returns the schema of an answer. For answers that refer to users, it adds the member people.
func (b *builder) answer(out reflect.Type) *Schema {
	if !endpoint.TypeNamesUsers(out) {
		return b.of(out, false)
	}
	if out.Kind() == reflect.Pointer {
		return nullable(b.answer(out.Elem()))
	}
	if out.Kind() != reflect.Struct || b.special(out, false) != nil {
		b.complain("type %s names users and is no JSON object, so that it cannot have the member people", out)
		return b.of(out, false)
	}
	object := func() *Schema {
		s := b.object(out, false)
		s.Properties.Set("people", &Schema{Type: "object", Description: peopleDoc, PropertyNames: &Schema{Type: "string", Format: "uuid"},
			AdditionalProperties: b.of(reflect.TypeFor[endpoint.Person](), false)})
		return s
	}
	name := componentName(out)
	if name == "" {
		return object()
	}
	if !endpoint.NamesUsersOfRows(out) { // records also are rows of lists, where they have no member people
		name += "Answer"
	}
	return b.component(name, out, object)
}
