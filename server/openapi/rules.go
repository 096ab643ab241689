package openapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"kontor/server/endpoint"
)

// member is a member of a body, with its place as errors name it: "address.city", "documents.0.type".
type member struct {
	place  string
	schema *Schema
}

// applyRules completes the schema of a body by what the rules of the input say: which members reject null, and how long texts may
// be. So the document cannot differ from the rules.
func (b *builder) applyRules(row endpoint.Endpoint, body *Schema) {
	members := b.membersOf(body, "", 0)
	for _, m := range members {
		if m.schema.allowsNull() && row.Handle.Problems(context.Background(), bodyWith(m.place, nil)).Has(m.place) {
			m.schema.rejectNull()
		}
		if m.schema.kind() == "string" && len(m.schema.Enum) == 0 {
			b.applyLength(row, m)
		}
	}
}

// longText is longer than all texts that have a limit.
var longText = strings.Repeat("a", 70_000)

func (b *builder) applyLength(row endpoint.Endpoint, m member) {
	for place, text := range row.Handle.Problems(context.Background(), bodyWith(m.place, longText)).All {
		limit, known := text.Args["Max"].(int)
		if place != m.place || !known || text.Key != "invalid.max_length" {
			continue
		}
		if now := m.schema.MaxLength; now != nil && *now != int64(limit) {
			b.complain("%s: %s has the tag maxLength %d, and its rule says %d", row.Name, m.place, *now, limit)
		}
		m.schema.MaxLength = new(int64(limit))
	}
}

// membersOf returns the members of a body and of the objects in it.
func (b *builder) membersOf(body *Schema, prefix string, depth int) []member {
	var all []member
	if depth > maxDepth {
		return nil
	}
	for _, property := range b.resolve(body).Properties {
		place, schema := prefix+property.Name, property.Value
		all = append(all, member{place, schema})
		if inner := schema.withoutNull(); inner.kind() == "array" && inner.Items != nil {
			place += ".0"
			all = append(all, member{place, inner.Items})
			schema = inner.Items
		}
		all = append(all, b.membersOf(schema.withoutNull(), place+".", depth+1)...)
	}
	return all
}

// bodyWith returns a body with one member.
func bodyWith(place string, value any) string {
	names := strings.Split(place, ".")
	slices.Reverse(names)
	for _, name := range names {
		if _, err := strconv.Atoi(name); err == nil {
			value = []any{value}
		} else {
			value = map[string]any{name: value}
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(fmt.Sprintf("openapi: a body with %s: %v", place, err)) // the values are plain
	}
	return string(text)
}

func (s *Schema) allowsNull() bool {
	if kinds, several := s.Type.([]string); several {
		return slices.Contains(kinds, "null")
	}
	return s.withoutNull() != s
}

// withoutNull returns the schema that allows null in addition to another one, without null.
func (s *Schema) withoutNull() *Schema {
	if n := len(s.AnyOf); n == 2 && s.AnyOf[1].Type == "null" {
		return s.AnyOf[0]
	}
	return s
}

// rejectNull removes null from the values.
func (s *Schema) rejectNull() {
	if inner := s.withoutNull(); inner != s {
		description := s.Description
		*s = *inner
		s.Description = description
		return
	}
	s.Type = s.kind()
	s.Enum = slices.DeleteFunc(s.Enum, func(value any) bool { return value == nil })
}
