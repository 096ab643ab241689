package endpoint

import "github.com/go-json-experiment/json"

// Optional is a member of a body that tells absent, null and a value apart, for updates that keep what is not given.
type Optional[T any] struct {
	Given bool // the member stands in the body
	Null  bool // and is null
	Value T
}

// UnmarshalJSON is called only for a member that stands in the body.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	o.Given = true
	if string(data) == "null" {
		o.Null = true
		return nil
	}
	return json.Unmarshal(data, &o.Value)
}

// Or gives the value, or what it is now where none was given. A null gives the zero value.
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
