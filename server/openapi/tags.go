package openapi

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// applyTags applies the tags of a field to its schema.
func applyTags(s *Schema, tag reflect.StructTag) error {
	target := s
	if s.Kind() == "array" && s.Items != nil && s.Items.Ref == "" {
		target = s.Items // tags for texts apply to the entries
	}
	if values := tag.Get("enum"); values != "" {
		separator := ","
		if strings.Contains(values, "|") {
			separator = "|"
		}
		target.Enum = nil // a member may have fewer values than its type
		for value := range strings.SplitSeq(values, separator) {
			target.Enum = append(target.Enum, value)
		}
		if _, orNull := target.Type.([]string); orNull {
			target.Enum = append(target.Enum, nil)
		}
	}
	if format := tag.Get("items"); format != "" {
		target.Format = format
	}
	if format := tag.Get("format"); format != "" {
		target.Format = format
	}
	if pattern := tag.Get("pattern"); pattern != "" {
		target.Pattern = pattern
	}
	if text := tag.Get("doc"); text != "" {
		s.Description = text
	}
	if tag.Get("nullable") == "false" {
		s.Type = s.Kind()
	}
	for name, bound := range map[string]**int64{
		"minLength": &target.MinLength, "maxLength": &target.MaxLength, "minimum": &s.Minimum, "maximum": &s.Maximum,
		"minItems": &s.MinItems, "maxItems": &s.MaxItems, "maxProperties": &s.MaxProperties,
	} {
		if err := readBound(tag, name, bound); err != nil {
			return err
		}
	}
	return applyValues(s, tag)
}

// applyValues applies the tags with a value of the field's own type.
func applyValues(s *Schema, tag reflect.StructTag) error {
	for name, set := range map[string]func(any){
		"default": func(v any) { s.Default = v },
		"example": func(v any) { s.Examples = []any{v} },
	} {
		text, given := tag.Lookup(name)
		if !given {
			continue
		}
		if text == "-" {
			s.unusual = true
			continue
		}
		value, err := parseAs(s.Kind(), text)
		if err != nil {
			return fmt.Errorf("tag %s: %w", name, err)
		}
		set(value)
	}
	return nil
}

func readBound(tag reflect.StructTag, name string, bound **int64) error {
	text := tag.Get(name)
	if text == "" {
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return fmt.Errorf("tag %s: %w", name, err)
	}
	*bound = &n
	return nil
}

// parseAs parses the text of a tag as a value of a JSON type. Commas separate the entries of an array; an object is JSON.
func parseAs(kind, text string) (any, error) {
	switch kind {
	case "integer":
		return strconv.ParseInt(text, 10, 64)
	case "number":
		return strconv.ParseFloat(text, 64)
	case "boolean":
		return strconv.ParseBool(text)
	case "object":
		if value := jsontext.Value(text); value.IsValid() && value.Kind() == '{' {
			return value, nil
		}
		return nil, fmt.Errorf("%q is no JSON object", text)
	case "array":
		entries := []any{}
		if text == "" {
			return entries, nil
		}
		for entry := range strings.SplitSeq(text, ",") {
			entries = append(entries, entry)
		}
		return entries, nil
	}
	return text, nil
}
