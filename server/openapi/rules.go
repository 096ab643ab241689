package openapi

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// Characters that no text may have, and those that one of a single line may not have in addition, as in modules/kit/types.
const (
	controls = `\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202E\u2066-\u2069\uFEFF\uFFF9-\uFFFB`
	breaks   = `\x09\x0a\x0d`
)

// patterns contains the pattern of the texts that a rule accepts, by the key of its message. Patterns are in the syntax of ECMAScript, and in
// ASCII: generators copy them into source code, where a line separator ends a line.
var patterns = map[string]string{
	"invalid.country":        `^[A-Z]{2,3}$`,
	"invalid.country_alpha3": `^[A-Z]{3}$`,
	"invalid.phone":          `^[-+0-9 ()./\u00A0\u2011]*$`,
	"invalid.subject":        `^[\x20-\x7e]*$`,
	"invalid.external_name":  `^[A-Za-z][A-Za-z0-9_.:/-]*$`,
	"invalid.console_path":   `^/([^/]|$)`,
	"invalid.receiver_url":   `^ *[Hh][Tt][Tt][Pp][Ss]?://[!-~]+ *$`,
}

// member is a member of a body, with its place as errors name it: "address.city", "documents.0.type".
type member struct {
	place    string
	schema   *Schema
	required bool
}

// probe returns the message about a member with a value, nil if the rules accept it.
type probe func(value any) *apierr.Text

// applyRules completes the schema of a body by what the rules of the input say: which members reject null, which texts they accept, and how
// many entries or how large numbers may be. So the document cannot differ from the rules.
func (b *builder) applyRules(row endpoint.Endpoint, body *Schema) {
	for _, m := range b.membersOf(body, "", 0) {
		ask := func(value any) *apierr.Text {
			return found(row.Handle.Problems(context.Background(), bodyWith(m.place, value)), m.place)
		}
		// Whether such a member may be missing, and so null or empty, depends on others.
		_, missing := row.Handle.Problems(context.Background(), bodyWith(parentOf(m.place), map[string]any{})).Get(m.place)
		required := m.required || !missing
		if required && m.schema.AllowsNull() && ask(nil) != nil {
			m.schema.rejectNull()
		}
		b.applyLimits(row.Name+": "+m.place, m.schema, required, ask)
	}
}

// applyQueryRules does the same for a parameter of the query.
func (b *builder) applyQueryRules(row endpoint.Endpoint, name string, s *Schema) {
	b.applyLimits(row.Name+": "+name, s, true, func(value any) *apierr.Text {
		return found(row.Handle.QueryProblems(context.Background(), name, fmt.Sprint(value)), name)
	})
}

func found(problems *apierr.Fields, place string) *apierr.Text {
	if text, wrong := problems.Get(place); wrong {
		return &text
	}
	return nil
}

// applyLimits completes a schema. Only a required text or array can be one that must not be empty.
func (b *builder) applyLimits(what string, s *Schema, required bool, ask probe) {
	switch s.withoutNull().Kind() {
	case "string":
		if len(s.Enum) == 0 && s.Format != "uuid" {
			b.applyText(what, s, required, ask)
		}
	case "array":
		if text := ask([]any{}); required && text != nil && (text.Key == "invalid.required" || text.Key == "invalid.min_items") {
			s.MinItems = new(int64(1))
		}
		b.applyLimit(what, &s.MaxItems, ask(make([]any, manyEntries)), "invalid.max_items", "Max")
	case "integer":
		for _, key := range []string{"invalid.range", "invalid.min", "invalid.max"} {
			b.applyLimit(what, &s.Minimum, ask(-farNumber), key, "Min")
			b.applyLimit(what, &s.Maximum, ask(farNumber), key, "Max")
		}
	}
}

const (
	manyEntries = 3000
	farNumber   = 1 << 50
)

// longText is longer than all texts that have a limit.
var longText = strings.Repeat("a", 33_000)

func (b *builder) applyText(what string, s *Schema, required bool, ask probe) {
	b.applyLimit(what, &s.MaxLength, ask(longText), "invalid.max_length", "Max")
	empty := required && isMissing(ask(""))
	if empty && s.MinLength == nil {
		s.MinLength = new(int64(1))
	}
	if s.Pattern != "" {
		s.Pattern = aroundTrimmed(s, ask)
		return
	}
	for _, text := range []string{"é", "é\a"} {
		if wrong := ask(text); wrong != nil && s.Pattern == "" {
			s.Pattern = patterns[wrong.Key]
		}
	}
	blank := empty && isMissing(ask(" "))
	const control = "invalid.control_characters"
	switch {
	case s.Pattern != "":
		s.Pattern = aroundTrimmed(s, ask)
		return
	case !isKey(ask("é\a"), control):
		if blank && isMissing(ask("\u202e")) {
			s.Pattern = "[^\\s" + controls + "]"
		} else if blank {
			s.Pattern = "[^\\s]"
		}
		return
	}
	denied := controls
	if isKey(ask("a\nb"), control) {
		denied += breaks
	}
	s.Pattern = "^[^" + denied + "]*$"
	if blank {
		s.Pattern = "^[^" + denied + "]*[^\\s" + denied + "][^" + denied + "]*$"
	}
	s.Pattern = aroundTrimmed(s, ask)
}

// spaces is the white space that rules remove at both ends of a text.
const spaces = "[\\x09-\\x0d\\x20\\x85]*"

// aroundTrimmed returns the pattern of a schema. It begins and ends with the white space that the rule removes before it looks at the
// text, if it does.
func aroundTrimmed(s *Schema, ask probe) string {
	sample := "a"
	if len(s.Examples) > 0 {
		sample, _ = s.Examples[0].(string)
	}
	inner, begins := strings.CutPrefix(s.Pattern, "^")
	if !begins || strings.HasPrefix(inner, spaces) || ask(sample) != nil || ask("\n\v"+sample+"\n") != nil {
		return s.Pattern
	}
	if all, ends := strings.CutSuffix(inner, "$"); ends {
		inner = all + spaces + "$"
	}
	return "^" + spaces + inner
}

// isMissing reports whether a message says that a member is required.
func isMissing(text *apierr.Text) bool {
	return isKey(text, "invalid.required") || isKey(text, "customers.reason_required")
}

func isKey(text *apierr.Text, key string) bool { return text != nil && text.Key == key }

// applyLimit sets a limit to the one that a message names.
func (b *builder) applyLimit(what string, limit **int64, text *apierr.Text, key, arg string) {
	if !isKey(text, key) {
		return
	}
	says, known := text.Args[arg].(int)
	if !known {
		return
	}
	if now := *limit; now != nil && *now != int64(says) {
		b.complain("%s: its tag says %d, and its rule says %d", what, *now, says)
	}
	*limit = new(int64(says))
}

// membersOf returns the members of a body and of the objects in it.
func (b *builder) membersOf(body *Schema, prefix string, depth int) []member {
	var all []member
	if depth > maxDepth {
		return nil
	}
	object := b.resolve(body)
	for _, property := range object.Properties {
		place, schema := prefix+property.Name, property.Value
		all = append(all, member{place, schema, slices.Contains(object.Required, property.Name)})
		if inner := schema.withoutNull(); inner.Kind() == "array" && inner.Items != nil {
			place += ".0"
			all = append(all, member{place, inner.Items, true})
			schema = inner.Items
		}
		all = append(all, b.membersOf(schema.withoutNull(), place+".", depth+1)...)
	}
	return all
}

// parentOf returns the place of the object that has a member, or an empty text for a member of the body.
func parentOf(place string) string { return place[:max(strings.LastIndex(place, "."), 0)] }

// bodyWith returns a body with one member. Without a place, the value is the body.
func bodyWith(place string, value any) string {
	var names []string
	if place != "" {
		names = strings.Split(place, ".")
	}
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

// AllowsNull reports whether null is one of the values.
func (s *Schema) AllowsNull() bool {
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
	s.Type = s.Kind()
	s.Enum = slices.DeleteFunc(s.Enum, func(value any) bool { return value == nil })
}
