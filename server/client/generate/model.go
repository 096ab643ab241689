// Package generate writes the generated parts of the Go client and of the TypeScript client from the API document.
//
// The document has one shape for errors, one for pages, named enumerations and no unions besides null, so that the package
// covers exactly what the document uses. It fails on anything else. The test of the package compares the generated files with
// the repository; "make clients" writes them.
package generate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// model is what both languages are written from.
type model struct {
	types      []namedType
	operations []operation
	codes      []string // of errors
	tags       map[string]string
}

// namedType is an object or an enumeration.
type namedType struct {
	name   string
	doc    string
	enum   []string
	fields []field
	input  bool // part of a request
	tagged bool // an answer with an ETag
	form   bool // sent as multipart/form-data

	generics bool // has a parameter T, the type of its rows
}

type field struct {
	wire     string
	doc      string
	typ      typeOf
	required bool
}

// eventStream is the media type of event streams.
const eventStream = "text/event-stream"

// kind is the kind of a type.
type kind int

const (
	anything kind = iota
	text
	integer
	number
	boolean
	moment
	date
	binary
	named
	list
	object
)

// typeOf is the type of a member, a parameter or an answer.
type typeOf struct {
	kind     kind
	name     string  // of a named type
	enum     bool    // the named type is an enumeration
	elem     *typeOf // of lists and objects
	nullable bool
}

// operation is one operation of the API.
type operation struct {
	id      string // such as users.credentials.list
	method  string
	path    string
	summary string
	notes   string
	bearer  bool
	apiKey  bool
	params  []string // of the path
	query   []queryParam
	headers []string // header parameters
	input   string   // named type of the body
	form    bool     // the body is multipart/form-data
	answers []answer
	etag    bool // the answer has an ETag
	link    bool // the answer has the header Link
	stacked string
	frames  members[schema]
	page    *page
}

// queryParam is a parameter of the query.
type queryParam struct {
	wire, doc string
	typ       typeOf
}

// search reports whether a parameter filters a list.
func (p queryParam) search() bool { return strings.HasPrefix(p.wire, "search.") }

// answer is a successful answer.
type answer struct {
	status string
	media  []string
	typ    typeOf
}

// page describes an answer that is a page of a list. The next page follows an offset, a cursor in the header Link, or a cursor in a
// member.
type page struct {
	rows string // its member with the rows; "" if the answer is an array
	next string // its member with the cursor for the parameter "after"
	elem typeOf
}

// group returns the path of an operation's group, and its own name.
func (o operation) group() (path []string, name string) {
	parts := strings.Split(o.id, ".")
	return parts[:len(parts)-1], parts[len(parts)-1]
}

// queries reports whether an operation has a parameter in the query.
func (o operation) queries(name string) bool {
	return slices.ContainsFunc(o.query, func(p queryParam) bool { return p.wire == name })
}

func (o operation) accepts(header string) bool { return slices.Contains(o.headers, header) }

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
