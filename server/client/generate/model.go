// Package generate writes the generated parts of the Go client and of the TypeScript client from the API document.
//
// The document has one shape for errors, one for pages, named enumerations and no unions besides null, so that the package
// covers exactly what the document uses. It fails on anything else. The test of the package compares the generated files with
// the repository; "make clients" writes them.
package generate

import (
	"encoding/json"
	"fmt"
	"net/http"
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
}

type field struct {
	wire     string
	doc      string
	typ      typeOf
	required bool
}

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
	stream  *operation // the same address as an event stream, beside JSON
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

// page describes an answer that is a page of a list.
type page struct {
	rows string // its member with the rows
	elem typeOf
}

// group returns the path of an operation's group, and its own name.
func (o operation) group() (path []string, name string) {
	parts := strings.Split(o.id, ".")
	return parts[:len(parts)-1], parts[len(parts)-1]
}

func (o operation) accepts(header string) bool { return slices.Contains(o.headers, header) }

// read builds the model of a document.
func read(data []byte) (*model, error) {
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("read the API document: %w", err)
	}
	m := &model{tags: map[string]string{}}
	for _, tag := range d.Tags {
		m.tags[tag.Name] = tag.Description
	}
	for _, s := range d.Components.Schemas {
		if err := m.addType(&d, s.Name, s.Value); err != nil {
			return nil, fmt.Errorf("schema %s: %w", s.Name, err)
		}
	}
	for _, path := range d.Paths {
		for _, method := range path.Value {
			var e endpoint
			if err := json.Unmarshal(method.Value, &e); err != nil {
				return nil, fmt.Errorf("%s %s: %w", method.Name, path.Name, err)
			}
			if err := m.addOperation(&d, strings.ToUpper(method.Name), path.Name, e); err != nil {
				return nil, fmt.Errorf("operation %s: %w", e.ID, err)
			}
		}
	}
	return m, nil
}

// typeNamed returns a type of the model.
func (m *model) typeNamed(name string) *namedType {
	for i := range m.types {
		if m.types[i].name == name {
			return &m.types[i]
		}
	}
	return nil
}

func (m *model) addType(d *document, name string, s schema) error {
	switch {
	case name == "Error":
		return nil // each client has a type of its own for errors
	case name == "ErrorCode":
		m.codes = s.Enum
		return nil
	case len(s.Enum) > 0:
		m.types = append(m.types, namedType{name: name, doc: s.Description, enum: s.Enum})
		return nil
	case !slices.Equal(s.Type, []string{"object"}):
		return fmt.Errorf("is neither an object nor an enumeration: %v", s.Type)
	}
	t := namedType{name: name, doc: s.Description}
	for _, p := range s.Properties {
		typ, err := d.typeOf(p.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		t.fields = append(t.fields, field{p.Name, p.Value.Description, typ, slices.Contains(s.Required, p.Name)})
	}
	m.types = append(m.types, t)
	return nil
}

// typeOf returns the type that a schema describes.
func (d *document) typeOf(s schema) (typeOf, error) {
	if s.Ref != "" {
		name := target(s.Ref)
		return typeOf{kind: named, name: name, enum: len(d.Components.Schemas.get(name).Enum) > 0}, nil
	}
	if len(s.AnyOf) == 2 && slices.Equal(s.AnyOf[1].Type, []string{"null"}) {
		t, err := d.typeOf(s.AnyOf[0])
		t.nullable = true
		return t, err
	}
	if len(s.AnyOf) > 0 {
		return typeOf{}, fmt.Errorf("an unsupported union of %d schemas", len(s.AnyOf))
	}
	if len(s.Type) == 0 {
		return typeOf{kind: anything}, nil
	}
	t := typeOf{nullable: slices.Contains(s.Type, "null")}
	switch s.Type[0] {
	case "string":
		t.kind = map[string]kind{"date-time": moment, "date": date, "binary": binary}[s.Format]
		if t.kind == anything {
			t.kind = text
		}
	case "integer":
		t.kind = integer
	case "number":
		t.kind = number
	case "boolean":
		t.kind = boolean
	case "array":
		t.kind = list
		return t, d.element(&t, s.Items)
	case "object":
		t.kind = object
		if s.Additional == nil {
			return t, fmt.Errorf("an object without a name")
		}
		return t, d.element(&t, &s.Additional.schema)
	default:
		return t, fmt.Errorf("unsupported type %v", s.Type)
	}
	return t, nil
}

func (d *document) element(t *typeOf, s *schema) error {
	elem, err := d.typeOf(*s)
	t.elem = &elem
	return err
}

func (m *model) addOperation(d *document, method, path string, e endpoint) error {
	notes, _, _ := strings.Cut(e.Description, "**Access:**")
	o := operation{id: e.ID, method: method, path: path, summary: e.Summary, notes: strings.TrimSpace(notes), stacked: target(e.Stacked.Ref)}
	for _, way := range e.Security {
		_, bearer := way["bearerAuth"]
		_, key := way["apiKeyAuth"]
		o.bearer, o.apiKey = o.bearer || bearer, o.apiKey || key
	}
	for _, p := range e.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters[target(p.Ref)]
		}
		if err := o.addParameter(d, p); err != nil {
			return fmt.Errorf("parameter %s: %w", p.Name, err)
		}
	}
	if e.Body != nil {
		content := e.Body.Content[0]
		o.input, o.form = target(content.Value.Schema.Ref), content.Name == "multipart/form-data"
		if o.input == "" || len(e.Body.Content) > 1 {
			return fmt.Errorf("the body has no named schema, or several media types")
		}
		m.markInput(o.input)
		m.typeNamed(o.input).form = o.form
	}
	for _, r := range e.Responses {
		if err := o.addAnswer(d, r.Name, r.Value); err != nil {
			return fmt.Errorf("answer %s: %w", r.Name, err)
		}
	}
	if len(o.answers) == 0 {
		return fmt.Errorf("has no successful answer")
	}
	m.describe(&o)
	m.operations = append(m.operations, o)
	if o.stream != nil {
		follow := o
		path, _ := o.group()
		follow.id, follow.frames, follow.answers, follow.page, follow.stream = strings.Join(append(path, "follow"), "."), o.stream.frames, o.stream.answers, nil, nil
		m.operations = append(m.operations, follow)
	}
	return nil
}

func (o *operation) addParameter(d *document, p parameter) error {
	typ, err := d.typeOf(p.Schema)
	if err != nil {
		return err
	}
	switch p.In {
	case "path":
		o.params = append(o.params, p.Name)
	case "query":
		if typ.kind == list || typ.kind == object || typ.kind == anything {
			return fmt.Errorf("only plain values can be sent in a query")
		}
		o.query = append(o.query, queryParam{p.Name, p.Description, typ})
	case "header":
		o.headers = append(o.headers, p.Name)
	default:
		return fmt.Errorf("unsupported place %s", p.In)
	}
	return nil
}

// addAnswer adds a successful answer. All errors have the same shape; 304 is an error of both clients.
func (o *operation) addAnswer(d *document, status string, r response) error {
	if status == "default" || status >= "304" {
		return nil
	}
	if r.Ref != "" {
		return fmt.Errorf("is a reference")
	}
	o.etag = o.etag || r.Headers["ETag"] != nil
	o.link = o.link || r.Headers["Link"] != nil
	a := answer{status: status}
	for _, content := range r.Content {
		typ, err := d.typeOf(content.Value.Schema)
		if err != nil {
			return err
		}
		if content.Value.Frames != nil && len(r.Content) > 1 {
			o.stream = &operation{frames: content.Value.Frames, answers: []answer{{status, []string{content.Name}, typ}}}
			continue
		}
		a.media, a.typ = append(a.media, content.Name), typ
		o.frames = content.Value.Frames
	}
	o.answers = append(o.answers, a)
	return nil
}

// describe completes an operation by what its answer is.
func (m *model) describe(o *operation) {
	first := o.answers[0].typ
	if t := m.typeNamed(first.name); first.kind == named && t != nil {
		t.tagged = t.tagged || o.etag
		if rows := t.rows(); rows != nil && o.method == http.MethodGet && slices.ContainsFunc(o.query, func(p queryParam) bool { return p.wire == "offset" }) {
			o.page = &page{rows.wire, *rows.typ.elem}
		}
	}
	if first.kind == list && o.link {
		o.page = &page{elem: *first.elem}
	}
}

// rows returns the member with the rows of a page: the only list of objects beside has_more.
func (t *namedType) rows() *field {
	if !slices.ContainsFunc(t.fields, func(f field) bool { return f.wire == "has_more" }) {
		return nil
	}
	for i, f := range t.fields {
		if f.typ.kind == list && f.typ.elem.kind == named {
			return &t.fields[i]
		}
	}
	return nil
}

// markInput marks a type, and all types that it contains, as part of a request.
func (m *model) markInput(name string) {
	t := m.typeNamed(name)
	if t == nil || t.input {
		return
	}
	t.input = true
	for _, f := range t.fields {
		typ := f.typ
		for typ.elem != nil {
			typ = *typ.elem
		}
		if typ.kind == named {
			m.markInput(typ.name)
		}
	}
}
