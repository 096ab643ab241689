package generate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// document is the part of the API document that the clients need.
type document struct {
	Paths      members[members[json.RawMessage]] `json:"paths"`
	Tags       []struct{ Name, Description string }
	Components struct {
		Schemas    members[schema]      `json:"schemas"`
		Parameters map[string]parameter `json:"parameters"`
		Responses  map[string]response  `json:"responses"`
	} `json:"components"`
}

// members are the members of a JSON object in their order.
type members[T any] []member[T]

type member[T any] struct {
	Name  string
	Value T
}

func (m *members[T]) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return fmt.Errorf("got %v, want an object: %w", token, err)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		next := member[T]{Name: name.(string)} // the names of an object are texts
		if err := decoder.Decode(&next.Value); err != nil {
			return fmt.Errorf("%s: %w", next.Name, err)
		}
		*m = append(*m, next)
	}
	return nil
}

// get returns the member with a name, or the zero value.
func (m members[T]) get(name string) T {
	for _, member := range m {
		if member.Name == name {
			return member.Value
		}
	}
	var none T
	return none
}

// schema is a JSON schema, as far as the API document uses them.
type schema struct {
	Ref         string          `json:"$ref"`
	Type        typeNames       `json:"type"`
	Format      string          `json:"format"`
	Description string          `json:"description"`
	Enum        []string        `json:"enum"`
	Properties  members[schema] `json:"properties"`
	Required    []string        `json:"required"`
	Items       *schema         `json:"items"`
	Additional  *additional     `json:"additionalProperties"`
	AnyOf       []schema        `json:"anyOf"`
}

// typeNames is one type, or a list such as ["string", "null"].
type typeNames []string

func (t *typeNames) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte("[")) {
		return json.Unmarshal(data, (*[]string)(t))
	}
	*t = make([]string, 1)
	return json.Unmarshal(data, &(*t)[0])
}

// additional is the schema of further members; true and {} stand for any value.
type additional struct{ schema }

func (a *additional) UnmarshalJSON(data []byte) error {
	if string(data) == "true" {
		return nil
	}
	return json.Unmarshal(data, &a.schema)
}

// endpoint is an operation of the document.
type endpoint struct {
	ID          string                `json:"operationId"`
	Summary     string                `json:"summary"`
	Description string                `json:"description"`
	Parameters  []parameter           `json:"parameters"`
	Body        *body                 `json:"requestBody"`
	Responses   members[response]     `json:"responses"`
	Security    []map[string][]string `json:"security"`
	Stacked     schema                `json:"x-kontor-stacked"`
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name        string `json:"name"`
	In          string `json:"in"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Schema      schema `json:"schema"`
}

type body struct {
	Content members[media] `json:"content"`
}

type response struct {
	Ref     string                     `json:"$ref"`
	Headers map[string]json.RawMessage `json:"headers"`
	Content members[media]             `json:"content"`
}

type media struct {
	Schema schema          `json:"schema"`
	Frames members[schema] `json:"x-kontor-frames"`
}

// target returns the name to which a reference points.
func target(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }
