// Package openapi builds the OpenAPI 3.1 document of the API from the table of endpoints: from the types that handlers read
// and write, and from the rules, rate classes and errors of the rows.
//
// Facts that reflection cannot see are declared beside the code. Members of inputs and records have tags ([endpoint.Doc]
// lists them), types with a JSON form of their own have methods, and a row has the field Doc. The required members of a request
// are those that the rules of the input report as missing in an empty input.
//
// The package does not use a reflection library, because members keep the order of their declaration, null follows the
// project's encoder, and inputs and answers of the same type differ.
package openapi

import (
	"cmp"
	"errors"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/endpoint"
)

// Options configure a document.
type Options struct {
	Table   []endpoint.Endpoint
	BaseURL string                  // address of the service; empty: the address of the document
	Health  any                     // a value of the answer's type during shutdown; its component is named Health
	Text    func(key string) string // English texts, for the messages of the errors
}

// builder builds a document.
type builder struct {
	Options
	*types
	document *Document
	used     map[string]bool // referenced components, by kind and name
}

// Build builds the document. The error lists all missing descriptions of rows and types.
func Build(o Options) (*Document, error) {
	b := &builder{Options: o, types: newTypes(), used: map[string]bool{}, document: &Document{OpenAPI: "3.1.0", Info: info(o.BaseURL)}}
	b.document.Servers = []Server{{URL: cmp.Or(o.BaseURL, "/"), Description: "This service"}}
	for _, row := range o.Table {
		b.add(row)
	}
	b.document.Tags = b.tags()
	b.document.Components = b.components()
	return b.document, errors.Join(b.problems...)
}

// JSON returns the document as JSON.
func (d *Document) JSON() ([]byte, error) {
	return json.Marshal(d, json.Deterministic(true), jsontext.EscapeForHTML(true))
}

func (b *builder) add(row endpoint.Endpoint) {
	item, known := b.document.Paths.Get(row.Path)
	if !known {
		item = &PathItem{}
		b.document.Paths.Set(row.Path, item)
	}
	methods := map[string]**Operation{http.MethodGet: &item.Get, http.MethodPost: &item.Post, http.MethodPut: &item.Put, http.MethodPatch: &item.Patch,
		http.MethodDelete: &item.Delete}
	*methods[row.Method] = b.operation(row)
}

// tags returns the groups with operations, in the order of the specification.
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

// refer returns a reference to a component and marks the component as used.
func (b *builder) refer(kind, name string) string {
	b.used[kind+"/"+name] = true
	return "#/components/" + kind + "/" + name
}

func schemaRef(name string) *Schema { return &Schema{Ref: schemaPrefix + name} }
