package audittrail

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FieldChange is the value of one field before and after a change, as JSON; null for none.
type FieldChange struct {
	Field  string         `json:"field"` // members of an object are separated by a point
	Before jsontext.Value `json:"before"`
	After  jsontext.Value `json:"after"`
	Cut    bool           `json:"cut,omitzero"` // a value is the beginning of a longer text, or of the JSON of a longer value
}

// Changed returns the change of a field with texts. An empty text stands for no value.
func Changed(field, before, after string) FieldChange {
	return FieldChange{Field: field, Before: quote(before), After: quote(after)}
}

func quote(text string) jsontext.Value {
	if text == "" {
		return null()
	}
	quoted, err := jsontext.AppendQuote(nil, text)
	if err != nil { // invalid UTF-8 was replaced
		return null()
	}
	return quoted
}

func null() jsontext.Value { return jsontext.Value("null") }

// The bounds of the changed fields of one entry.
const (
	maxChanges     = 100
	maxValueLength = 500 // bytes of JSON; longer values are cut
	maxDepth       = 3   // members of members are compared one by one up to here
	more           = "…" // the field of a change that stands for those beyond maxChanges
)

// ChangeRule says which members of a record type are no changed fields.
type ChangeRule struct {
	// Omit are members that the service derives, or that the entry has anyway, such as the time of the change. Those of an object
	// are named with a point: metadata.logs.
	Omit []string
	// Forget deletes the changed fields of a record when it is deleted, because they may hold personal data that no later
	// erasure finds.
	Forget bool
}

// Compare returns what differs between two answers, which are JSON objects. It returns nil for others.
func (r ChangeRule) Compare(before, after []byte) []FieldChange {
	var changes []FieldChange
	if before == nil || after == nil || bytes.Equal(before, after) {
		return nil
	}
	r.compareObjects("", before, after, 1, &changes)
	if len(changes) > maxChanges {
		changes = append(changes[:maxChanges], FieldChange{Field: more, Before: null(), After: null(), Cut: true})
	}
	return changes
}

func (r ChangeRule) compareObjects(at string, before, after jsontext.Value, depth int, changes *[]FieldChange) {
	was, ok := membersOf(before)
	is, also := membersOf(after)
	if !ok || !also {
		return
	}
	for i, m := range was {
		other := jsontext.Value(nil)
		if i < len(is) && is[i].name == m.name { // the same struct has the same order
			other = is[i].value
		} else if j := slices.IndexFunc(is, func(o member) bool { return o.name == m.name }); j >= 0 {
			other = is[j].value
		}
		r.compareMember(at, m.name, m.value, other, depth, changes)
	}
	for i, m := range is {
		if i < len(was) && was[i].name == m.name || slices.ContainsFunc(was, func(o member) bool { return o.name == m.name }) {
			continue
		}
		r.compareMember(at, m.name, nil, m.value, depth, changes)
	}
}

func (r ChangeRule) compareMember(at, name string, before, after jsontext.Value, depth int, changes *[]FieldChange) {
	if bytes.Equal(before, after) || slices.Contains(r.Omit, at+name) {
		return
	}
	field := at + name
	if depth < maxDepth && before.Kind() == '{' && after.Kind() == '{' {
		r.compareObjects(field+".", before, after, depth+1, changes)
		return
	}
	c := FieldChange{Field: cutText(field)}
	var cutBefore, cutAfter bool
	c.Before, cutBefore = bounded(before)
	c.After, cutAfter = bounded(after)
	c.Cut = cutBefore || cutAfter
	*changes = append(*changes, c)
}

type member struct {
	name  string
	value jsontext.Value
}

// membersOf returns the members of a JSON object. Values are parts of it.
func membersOf(object jsontext.Value) (members []member, ok bool) {
	in := jsontext.NewDecoder(bytes.NewBuffer(object))
	if token, err := in.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, false
	}
	members = make([]member, 0, 24)
	for in.PeekKind() != '}' {
		token, err := in.ReadToken()
		if err != nil {
			return nil, false
		}
		name := token.String()
		value, err := in.ReadValue()
		if err != nil {
			return nil, false
		}
		end := in.InputOffset() // the decoder may reuse the memory of value
		members = append(members, member{name, object[end-int64(len(value)) : end]})
	}
	return members, true
}

// bounded returns a value of bounded length: of a longer text the beginning, and of another longer value the beginning of its
// JSON as a text.
func bounded(v jsontext.Value) (shown jsontext.Value, cut bool) {
	switch {
	case v == nil:
		return null(), false
	case len(v) <= maxValueLength:
		return v, false
	}
	text := string(v)
	if v.Kind() == '"' {
		if err := json.Unmarshal(v, &text); err != nil {
			return null(), true
		}
	}
	return quote(cutText(text)), true
}

// cutText returns the beginning of a text, without a part of a character.
func cutText(text string) string {
	if len(text) <= maxValueLength {
		return text
	}
	end := maxValueLength
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// encodeChanges returns the bytes that are sealed and digested: random bytes, so that a guess about deleted values cannot be
// confirmed, and the JSON of the changes.
func encodeChanges(salt, changes []byte) []byte { return append(salt, changes...) }

// decodeChanges is the inverse of encodeChanges.
func decodeChanges(plain []byte) (changes []FieldChange, err error) {
	if len(plain) < saltBytes {
		return nil, fmt.Errorf("changed fields of %d bytes", len(plain))
	}
	return changes, json.Unmarshal(plain[saltBytes:], &changes)
}
