// Package openapi makes the OpenAPI 3.1 document of the API from the table of endpoints: from the types that the
// handlers read and write, from the rules, the rate classes and the faults of the rows.
//
// What reflection cannot see is said near it: by tags on the members of inputs and records ([endpoint.Doc] lists them),
// by methods of types that write themselves in another form, and by the field Doc of a row. Which members a request
// needs is asked of the input's own rules: what an empty input is told is required is required.
//
// The document is written by hand here, not with a reflection library: members keep the order in which they are
// declared, null follows our encoder, and inputs and answers of the same type differ.
package openapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/endpoint"
)

// Options are what a document is made of.
type Options struct {
	Table   []endpoint.Endpoint
	BaseURL string                  // where the service is reached; empty: where the document was
	Health  any                     // a value of the type that answers while the service shuts down; its name is Health
	Text    func(key string) string // English texts, for the messages of the errors
}

// builder makes a document.
type builder struct {
	Options
	*types
	document *Document
	used     map[string]bool // components that are referred to, by kind and name
	failures Map[failure]    // error responses, by component
	statuses map[int]int     // how many of them a status has
}

// failure is an error response with its text, by which it is found again.
type failure struct {
	text     string
	response *Response
}

// Build makes the document. The error names everything that a row or a type leaves unsaid.
func Build(o Options) (*Document, error) {
	b := &builder{Options: o, types: newTypes(), used: map[string]bool{}, statuses: map[int]int{}, document: &Document{OpenAPI: "3.1.0", Info: info(o.BaseURL)}}
	b.document.Servers = []Server{{URL: cmp.Or(o.BaseURL, "/"), Description: "This service"}}
	for _, row := range o.Table {
		b.add(row)
	}
	b.document.Tags = b.tags()
	b.document.Components = b.components()
	return b.document, errors.Join(b.problems...)
}

// JSON writes the document.
func (d *Document) JSON() ([]byte, error) {
	return json.Marshal(d, json.Deterministic(true), jsontext.EscapeForHTML(true))
}

func (b *builder) add(row endpoint.Endpoint) {
	item, known := b.document.Paths.Get(row.Path)
	if !known {
		item = &PathItem{}
		b.document.Paths.Set(row.Path, item)
	}
	operation := b.operation(row)
	switch row.Method {
	case http.MethodGet:
		item.Get = operation
	case http.MethodPost:
		item.Post = operation
	case http.MethodPut:
		item.Put = operation
	case http.MethodPatch:
		item.Patch = operation
	case http.MethodDelete:
		item.Delete = operation
	}
}

// tags lists the groups that have operations, in the order of the specification.
func (b *builder) tags() []Tag {
	var tags []Tag
	for _, tag := range allTags {
		if slices.ContainsFunc(b.Table, func(e endpoint.Endpoint) bool { return e.Tag == tag.Name }) {
			tags = append(tags, tag)
		}
	}
	for _, row := range b.Table {
		if !slices.ContainsFunc(allTags, func(t Tag) bool { return t.Name == row.Tag }) {
			b.complain("the tag %q of %s has no description", row.Tag, row.Name)
		}
	}
	return tags
}

// refer notes that a component is used and gives the reference to it.
func (b *builder) refer(kind, name string) string {
	b.used[kind+"/"+name] = true
	return "#/components/" + kind + "/" + name
}

func (b *builder) schemaRef(name string) *Schema {
	return &Schema{Ref: fmt.Sprintf("#/components/schemas/%s", name)}
}
