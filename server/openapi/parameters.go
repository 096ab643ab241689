package openapi

import (
	"reflect"
	"slices"
	"strings"

	"kontor/server/endpoint"
)

// parameters returns the parameters of a row in path, query and headers.
func (b *builder) parameters(row endpoint.Endpoint) []*Parameter {
	var all []*Parameter
	given := map[string]bool{}
	if in := row.Handle.In; in != nil {
		for i := range in.NumField() {
			field := in.Field(i)
			if path := field.Tag.Get("path"); path != "" {
				name, option, _ := strings.Cut(path, ",")
				given[name] = true
				all = append(all, b.pathParameter(name, option == "text", field.Tag))
			}
			switch query := field.Tag.Get("query"); query {
			case "":
			case "*":
				all = append(all, b.listParameters(row)...)
			default:
				all = append(all, b.queryParameter(row, query, field))
			}
		}
	}
	for _, name := range endpoint.PathNames(row.Path) {
		if !given[name] { // a Raw handler reads its path itself
			all = append(all, b.pathParameter(name, !isID(name), ""))
		}
	}
	return append(all, b.headerParameters(row)...)
}

// pathExamples has an example of each text in a path that a Raw handler reads itself.
var pathExamples = map[string]string{"file": "3f9c7d1e.jpg"}

func (b *builder) pathParameter(name string, text bool, tag reflect.StructTag) *Parameter {
	p := &Parameter{Name: name, In: "path", Required: true, Description: tag.Get("doc"), Schema: &Schema{Type: "string"}, Example: exampleID}
	if p.Description == "" {
		p.Description = pathNames[name]
	}
	if text {
		p.Example = pathExamples[name]
	} else {
		p.Schema.Format = "uuid"
	}
	if example := tag.Get("example"); example != "" {
		p.Example = example
	}
	if p.Example == "" {
		b.complain("the path parameter %s has no example: add a tag example to its field, or a line to pathExamples", name)
	}
	if p.Description == "" {
		b.complain("the path parameter %s has no description: add a tag doc to its field, or a line to pathNames", name)
	}
	return p
}

func (b *builder) queryParameter(row endpoint.Endpoint, name string, field reflect.StructField) *Parameter {
	typ := field.Type
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	p := &Parameter{Name: name, In: "query", Description: field.Tag.Get("doc"), Schema: b.of(typ, true)}
	if err := applyTags(p.Schema, field.Tag); err != nil {
		b.complain("%s: %w", name, err)
	}
	suggest(p.Schema, name)
	b.applyQueryRules(row, name, p.Schema)
	p.Schema.Description = ""
	p.Example = b.exampleAt(p.Schema, 0)
	p.Schema.Examples = nil
	if p.Description == "" {
		p.Description = queryNames[name]
	}
	if p.Description == "" {
		b.complain("the query parameter %s has no description: add a tag doc to its field, or a line to queryNames", name)
	}
	return p
}

// listParameters returns the parameters of the shared query layer.
func (b *builder) listParameters(row endpoint.Endpoint) []*Parameter {
	if len(row.Doc.Search) == 0 {
		b.complain("%s is a list without fields in Doc.Search", row.Name)
	}
	var all []*Parameter
	for _, name := range []string{"limit", "offset", "cursor", "sort", "stack", "distinct"} {
		all = append(all, b.sharedParameter("list."+name))
	}
	for _, field := range row.Doc.Search {
		all = append(all, b.sharedParameter("search."+field.Name+"."+field.Type))
	}
	return all
}

// headerParameters returns the request headers that the row supports.
func (b *builder) headerParameters(row endpoint.Endpoint) []*Parameter {
	var names []string
	if creates(row) {
		names = append(names, "Idempotency-Key")
	}
	if conditional(row) {
		names = append(names, "If-Match")
	}
	if row.Method == "GET" && tagged(row.Handle.Out) {
		names = append(names, "If-None-Match")
	}
	var all []*Parameter
	for _, name := range append(names, row.Doc.Headers...) {
		all = append(all, b.sharedParameter(name))
	}
	return all
}

func (b *builder) sharedParameter(name string) *Parameter {
	return &Parameter{Ref: b.refer("parameters", name)}
}

// parameterComponents returns the shared parameters in use.
func (b *builder) parameterComponents() Map[*Parameter] {
	var all Map[*Parameter]
	for _, p := range sharedParameters {
		if b.used["parameters/"+p.Name] {
			all.Set(p.Name, p.Value)
		}
	}
	var searches []string
	for used := range b.used {
		if name, ok := strings.CutPrefix(used, "parameters/search."); ok {
			searches = append(searches, name)
		}
	}
	slices.Sort(searches)
	for _, name := range searches {
		dot := strings.LastIndex(name, ".")
		all.Set("search."+name, searchParameter(name[:dot], name[dot+1:]))
	}
	for used := range b.used {
		if name, ok := strings.CutPrefix(used, "parameters/"); ok {
			if _, known := all.Get(name); !known {
				b.complain("there is no shared parameter %s", name)
			}
		}
	}
	return all
}

// searchKinds describes searches by type of field, with an example.
var searchKinds = map[string]struct{ says, example string }{
	"text":      {"Compared without regard to case; `*` stands for any text.", "a*"},
	"uuid":      {"An id.", exampleID},
	"boolean":   {"`true` or `false`.", "true"},
	"number":    {"A number, or a range `a..b`, `a..`, `..b`.", "1..10"},
	"date":      {"A date.", "2026-01-31"},
	"date-time": {"A date-time, or a range `a..b`, `a..`, `..b`.", "2026-01-01T00:00:00Z.."},
}

func searchParameter(name, kind string) *Parameter {
	about, example := searchKinds[kind], searchKinds[kind].example
	if known, ok := byName[name].(string); ok && kind == "text" {
		example = known
	}
	return &Parameter{
		Name: "search." + name, In: "query",
		Description: "Only rows whose `" + name + "` is one of the values, separated by commas; a value with a comma is in quotation marks. " + about.says + " At most 100 values of 1000 bytes.",
		Schema:      &Schema{Type: "string"}, Example: example,
	}
}
