package openapi

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Map is a JSON object whose members keep their order. This makes the document reproducible.
type Map[V any] []Member[V]

// Member is a member of a [Map].
type Member[V any] struct {
	Name  string
	Value V
}

// Set adds a member or replaces the member of that name.
func (m *Map[V]) Set(name string, value V) {
	for i := range *m {
		if (*m)[i].Name == name {
			(*m)[i].Value = value
			return
		}
	}
	*m = append(*m, Member[V]{name, value})
}

// Get returns the member of a name.
func (m Map[V]) Get(name string) (value V, ok bool) {
	for _, member := range m {
		if member.Name == name {
			return member.Value, true
		}
	}
	return value, false
}

// MarshalJSONTo writes the members in their order.
func (m Map[V]) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, member := range m {
		if err := enc.WriteToken(jsontext.String(member.Name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, member.Value); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}
