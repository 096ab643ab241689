package openapi

import (
	"fmt"
	"slices"
	"strings"
)

// sharedEnums names enumerations that records of several modules have, by their values.
var sharedEnums = map[string]string{
	"en de fr it":                        "Language",
	"create read update delete read_all": "Permission",
	"email phone username":               "CredentialType",
	"Bearer":                             "TokenType",
	"pending active disabled":            "UserStatus",
	"direct group support":               "ChatType",
	"text system":                        "ChatMessageType",
	"not_started pending in_review verified rejected action_required expired": "KYCStatus",
	"none basic standard enhanced":                                            "VerificationLevel",
}

// operations are what the names of inputs have after the name of the record. The enumerations of a record and of its inputs have
// one name.
var operations = []string{"Create", "Update", "Add", "Register", "Decide", "Submit", "Change", "Status"}

// named moves the values of a member to a component with a name, for which generators make a type with a name. It returns a
// reference to the component.
func (t *types) named(owner, member string, s *Schema) *Schema {
	if s.Kind() == "array" && s.Items != nil {
		items := *s
		items.Items = t.named(owner, member, s.Items)
		return &items
	}
	if s.PropertyNames != nil && len(s.PropertyNames.Enum) > 0 {
		s.PropertyNames = t.named(owner, member+"Key", s.PropertyNames)
	}
	if len(s.Enum) == 0 || owner == "" {
		return s
	}
	values := slices.DeleteFunc(slices.Clone(s.Enum), func(v any) bool { return v == nil })
	ref := schemaRef(t.enum(owner, member, values))
	_, orNull := s.Type.([]string)
	if orNull {
		ref = nullable(ref)
	}
	ref.Description, ref.Default, ref.Examples, ref.unusual = s.Description, s.Default, s.Examples, s.unusual
	return ref
}

// enum returns the component of an enumeration. Equal enumerations of a record and of its inputs share one.
func (t *types) enum(owner, member string, values []any) string {
	record := strings.TrimSuffix(owner, "Input")
	for _, operation := range operations {
		if short := strings.TrimSuffix(record, operation); short != "" {
			record = short
		}
	}
	suffix := camel(member)
	for _, name := range []string{sharedEnums[list(values)], record + suffix, owner + suffix} {
		if name == "" {
			continue
		}
		known, taken := t.components.Get(name)
		if taken && !slices.Equal(known.Enum, values) {
			continue
		}
		if !taken {
			t.components.Set(name, &Schema{Type: "string", Enum: values})
		}
		return name
	}
	t.complain("the enumeration %s of %s has no free name", member, owner)
	return owner
}

// list returns the values as words.
func list(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = fmt.Sprint(v)
	}
	return strings.Join(words, " ")
}

// camel returns a member's name in the form of type names: "kyc_status" is "KycStatus".
func camel(member string) string {
	var name strings.Builder
	for word := range strings.FieldsFuncSeq(member, func(r rune) bool { return r == '_' || r == '-' || r == '.' }) {
		name.WriteString(title(word))
	}
	return name.String()
}
