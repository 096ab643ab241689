package openapi

import (
	"reflect"

	"kontor/server/endpoint"
)

// peopleDoc describes the member people of answers.
const peopleDoc = "The users that the answer refers to, by id. Unknown ids are missing. The member is missing if the answer refers to no user, and in the elements of a list, which has one for all."

// answer returns the schema of an answer. An answer that refers to users must be a JSON object, to have the member people.
func (b *builder) answer(out reflect.Type) *Schema {
	if endpoint.TypeNamesUsers(out) {
		record := out
		if record.Kind() == reflect.Pointer {
			record = record.Elem()
		}
		if record.Kind() != reflect.Struct || b.special(record, false) != nil {
			b.complain("type %s names users and is no JSON object, so that it cannot have the member people", out)
		}
	}
	return b.of(out, false)
}

// withPeople adds the member people to the schema of an answer that refers to users, unless the type has one of its own.
func (t *types) withPeople(s *Schema, typ reflect.Type) *Schema {
	if _, own := s.Properties.Get("people"); own || !endpoint.TypeNamesUsers(typ) {
		return s
	}
	s.Properties.Set("people", &Schema{Type: "object", Description: peopleDoc, PropertyNames: &Schema{Type: "string", Format: "uuid"},
		AdditionalProperties: t.of(reflect.TypeFor[endpoint.Person](), false)})
	return s
}
