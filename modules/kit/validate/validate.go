// Package validate checks the members of a request with the types of package types and says what is wrong with each, for
// the Validate methods of all modules. What comes back may be stored; where something was wrong it is the zero value
// and the fault is noted.
package validate

import (
	"bytes"
	"errors"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/modules/kit/types"
	"kontor/server/apierr"
)

// MaxMetadata is the size in bytes that free-form metadata may have.
const MaxMetadata = 16 << 10

// Line checks an optional line of text of at most limit characters.
func Line(v *apierr.Fields, field, text string, limit int) string {
	return note(v, field, limit)(types.Line(text, limit))
}

// Required checks a line of text that must not be empty.
func Required(v *apierr.Fields, field, text string, limit int) string {
	return note(v, field, limit)(types.Required(text, limit))
}

// Text checks an optional text of several lines.
func Text(v *apierr.Fields, field, text string, limit int) string {
	return note(v, field, limit)(types.Text(text, limit))
}

// RequiredText checks a text of several lines that must not be empty.
func RequiredText(v *apierr.Fields, field, text string, limit int) string {
	checked := Text(v, field, text, limit)
	if strings.TrimSpace(checked) == "" {
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

// Note adds the refusal of a parser of package types. A nil error adds nothing.
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

// Parsed runs a parser of package types over a member that may be empty.
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

// OneOf checks that a text is one of the values.
func OneOf(v *apierr.Fields, field, text string, values ...string) string {
	for _, allowed := range values {
		if text == allowed {
			return text
		}
	}
	v.Add(field, "invalid.one_of", apierr.Args{"Values": strings.Join(values, ", ")})
	return ""
}

// Metadata checks a free-form object of at most [MaxMetadata] and returns it in a compact form, "{}" for none.
func Metadata(v *apierr.Fields, field string, raw jsontext.Value) string {
	return MetadataUpTo(v, field, raw, MaxMetadata)
}

// MetadataUpTo is [Metadata] with another limit in bytes.
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
