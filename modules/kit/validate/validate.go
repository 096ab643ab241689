// Package validate checks the fields of a request, for the Validate methods of all modules. Its functions return a value
// that may be stored. For an invalid field they add an error to the fields of the request, and return the zero value.
package validate

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/types"
	"kontor/server/apierr"
)

// MaxMetadata is the maximum size of free-form metadata in bytes.
const MaxMetadata = 16 << 10

// Line checks an optional single-line text of at most limit characters.
func Line(v *apierr.Fields, field, text string, limit int) string {
	return note(v, field, limit)(types.Line(text, limit))
}

// Required checks a single-line text that must not be empty.
func Required(v *apierr.Fields, field, text string, limit int) string {
	return note(v, field, limit)(types.Required(text, limit))
}

// Text checks an optional multi-line text.
func Text(v *apierr.Fields, field, text string, limit int) string {
	return note(v, field, limit)(types.Text(text, limit))
}

// RequiredText checks a multi-line text that must not be empty.
func RequiredText(v *apierr.Fields, field, text string, limit int) string {
	checked := Text(v, field, text, limit)
	if types.Blank(checked) {
		v.Add(field, "invalid.required")
	}
	return checked
}

func note(v *apierr.Fields, field string, limit int) func(string, error) string {
	return func(text string, err error) string {
		if errors.Is(err, types.RuleTooLong) {
			v.Add(field, "invalid.max_length", apierr.Args{"Max": limit})
			return ""
		}
		Note(v, field, err)
		return text
	}
}

// Note adds the error of a parser in package types to a field. A nil error adds nothing.
func Note(v *apierr.Fields, field string, err error) {
	if err == nil {
		return
	}
	key := "invalid.type"
	if rule, ok := errors.AsType[types.Rule](err); ok {
		key, _ = rule.Text()
	}
	v.Add(field, key)
}

// Given adds the problems of the members that an update has. An update checks its members before it reads the record, so
// that one answer reports all wrong ones; it checks them again with those of the record.
func Given(v, problems *apierr.Fields, given map[string]bool) {
	for field, text := range problems.All {
		if member, _, _ := strings.Cut(field, "."); given[member] {
			v.Add(field, text.Key, text.Args)
		}
	}
}

// Parsed parses an optional field with a parser in package types.
func Parsed[T any](v *apierr.Fields, field, text string, parse func(string) (T, error)) T {
	var zero T
	if text == "" {
		return zero
	}
	parsed, err := parse(text)
	if err != nil {
		Note(v, field, err)
		return zero
	}
	return parsed
}

// IDs checks a required list of at most limit ids.
func IDs(v *apierr.Fields, field string, ids []string, limit int) []string {
	if len(ids) == 0 {
		v.Add(field, "invalid.required")
	}
	if len(ids) > limit {
		v.Add(field, "invalid.max_items", apierr.Args{"Max": limit})
		return nil
	}
	checked := make([]string, len(ids))
	for i, id := range ids {
		var err error
		checked[i], err = types.ParseID(id)
		Note(v, field+"."+strconv.Itoa(i), err)
	}
	return checked
}

// OneOf checks that a text is one of values. An empty text is a missing one.
func OneOf(v *apierr.Fields, field, text string, values ...string) string {
	for _, allowed := range values {
		if text == allowed {
			return text
		}
	}
	if text == "" {
		v.Add(field, "invalid.required")
		return ""
	}
	v.Add(field, "invalid.one_of", apierr.Args{"Values": strings.Join(values, ", ")})
	return ""
}

// Metadata checks a free-form JSON object of at most [MaxMetadata] and returns it without white space; "{}" if it is absent.
func Metadata(v *apierr.Fields, field string, raw jsontext.Value) string {
	return MetadataUpTo(v, field, raw, MaxMetadata)
}

// MetadataUpTo is like [Metadata] with another limit in bytes.
func MetadataUpTo(v *apierr.Fields, field string, raw jsontext.Value, limit int) string {
	if len(raw) == 0 || raw.Kind() == 'n' {
		return "{}"
	}
	if raw.Kind() != '{' {
		v.Add(field, "invalid.type")
		return "{}"
	}
	compact := jsontext.Value(bytes.Clone(raw))
	if err := compact.Compact(); err != nil {
		v.Add(field, "invalid.json")
		return "{}"
	}
	if len(compact) > limit {
		v.Add(field, "invalid.metadata_size", apierr.Args{"Max": limit})
		return "{}"
	}
	return string(compact)
}
