package generate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// read builds the model of a document.
func read(data []byte) (*model, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("read the API document: %w", err)
	}
	m := &model{tags: map[string]string{}}
	for _, tag := range d.Tags {
		m.tags[tag.Name] = tag.Description
	}
	for _, s := range d.Components.Schemas {
		if err := m.addType(&d, s.Name, s.Value); err != nil {
			return nil, fmt.Errorf("schema %s: %w", s.Name, err)
		}
	}
	for _, path := range d.Paths {
		for _, method := range path.Value {
			var e endpoint
			if err := json.Unmarshal(method.Value, &e); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method.Name, path.Name, err)
			}
			if err := m.addOperation(&d, strings.ToUpper(method.Name), path.Name, e); err != nil {
				return nil, fmt.Errorf("operation %s: %w", e.ID, err)
			}
		}
	}
	return m, nil
}

// typeNamed returns a type of the model.
func (m *model) typeNamed(name string) *namedType {
	for i := range m.types {
		if m.types[i].name == name {
			return &m.types[i]
		}
	}
	return nil
}

func (m *model) addType(d *document, name string, s schema) error {
	switch {
	case name == "Error":
		return nil // each client has a type of its own for errors
	case name == "ErrorCode":
		m.codes = s.Enum
		return nil
	case len(s.Enum) > 0:
		m.types = append(m.types, namedType{name: name, doc: s.Description, enum: s.Enum})
		return nil
	case !slices.Equal(s.Type, []string{"object"}):
		return fmt.Errorf("is neither an object nor an enumeration: %v", s.Type)
	}
	t := namedType{name: name, doc: s.Description}
	for _, p := range s.Properties {
		typ, err := d.typeOf(p.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		t.fields = append(t.fields, field{p.Name, p.Value.Description, typ, slices.Contains(s.Required, p.Name)})
	}
	m.types = append(m.types, t)
	return nil
}

// typeOf returns the type that a schema describes.
func (d *document) typeOf(s schema) (typeOf, error) {
	if s.Ref != "" {
		name := target(s.Ref)
		return typeOf{kind: named, name: name, enum: len(d.Components.Schemas.get(name).Enum) > 0}, nil
	}
	if len(s.AnyOf) == 2 && slices.Equal(s.AnyOf[1].Type, []string{"null"}) {
		t, err := d.typeOf(s.AnyOf[0])
		t.nullable = true
		return t, err
	}
	if len(s.AnyOf) > 0 {
		return typeOf{}, fmt.Errorf("an unsupported union of %d schemas", len(s.AnyOf))
	}
	if len(s.Type) == 0 {
		return typeOf{kind: anything}, nil
	}
	t := typeOf{nullable: slices.Contains(s.Type, "null")}
	switch s.Type[0] {
	case "string":
		t.kind = map[string]kind{"date-time": moment, "date": date, "binary": binary}[s.Format]
		if t.kind == anything {
			t.kind = text
		}
	case "integer":
		t.kind = integer
	case "number":
		t.kind = number
	case "boolean":
		t.kind = boolean
	case "array":
		t.kind = list
		return t, d.element(&t, s.Items)
	case "object":
		t.kind = object
		if s.Additional == nil {
			return t, fmt.Errorf("an object without a name")
		}
		return t, d.element(&t, &s.Additional.schema)
	default:
		return t, fmt.Errorf("unsupported type %v", s.Type)
	}
	return t, nil
}

func (d *document) element(t *typeOf, s *schema) error {
	elem, err := d.typeOf(*s)
	t.elem = &elem
	return err
}
