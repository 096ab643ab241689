package endpoint

import (
	"reflect"

	"github.com/go-json-experiment/json"
)

// Optional is a member of a body that distinguishes absent, null and a value. Updates keep absent members unchanged.
type Optional[T any] struct {
	Given bool // the member is in the body
	Null  bool // its value is null
	Value T
}

// UnmarshalJSON decodes the value. It is not called for an absent member.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	o.Given = true
	if string(data) == "null" {
		o.Null = true
		return nil
	}
	return json.Unmarshal(data, &o.Value)
}

func (o *Optional[T]) value() reflect.Value { return reflect.ValueOf(&o.Value).Elem() }

// Or returns the value if the member was given, the zero value for null, and otherwise now.
func (o Optional[T]) Or(now T) T {
	if !o.Given {
		return now
	}
	return o.Value
}

// NonEmpty returns a pointer to a text, or nil for an empty one: members that are null when they have no value.
func NonEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
