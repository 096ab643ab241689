package generate

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"kontor/server/openapi"
)

// read builds the model of a document.
func read(d *openapi.Document) (*model, error) {
	m := &model{}
	for _, s := range d.Components.Schemas {
		if err := m.addType(d, s.Name, s.Value); err != nil {
			return nil, fmt.Errorf("schema %s: %w", s.Name, err)
		}
	}
	for _, path := range d.Paths {
		for _, one := range []struct {
			method string
			*openapi.Operation
		}{
			{http.MethodGet, path.Value.Get}, {http.MethodPost, path.Value.Post}, {http.MethodPut, path.Value.Put},
			{http.MethodPatch, path.Value.Patch}, {http.MethodDelete, path.Value.Delete},
		} {
			if one.Operation == nil {
				continue
			}
			if err := m.addOperation(d, one.method, path.Name, one.Operation); err != nil {
				return nil, fmt.Errorf("operation %s: %w", one.OperationID, err)
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

func (m *model) addType(d *openapi.Document, name string, s *openapi.Schema) error {
	switch {
	case name == "Error":
		return nil // each client has a type of its own for errors
	case name == "ErrorCode":
		m.codes = texts(s.Enum)
		return nil
	case len(s.Enum) > 0:
		m.types = append(m.types, namedType{name: name, doc: s.Description, enum: texts(s.Enum)})
		return nil
	case s.Type != "object":
		return fmt.Errorf("is neither an object nor an enumeration: %v", s.Type)
	}
	t := namedType{name: name, doc: s.Description}
	for _, p := range s.Properties {
		typ, err := typeIn(d, p.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
		t.fields = append(t.fields, field{p.Name, p.Value.Description, typ, slices.Contains(s.Required, p.Name)})
	}
	m.types = append(m.types, t)
	return nil
}

// texts returns the values of an enumeration, without null.
func texts(values []any) (all []string) {
	for _, value := range values {
		if text, ok := value.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// typeIn returns the type that a schema of a document describes.
func typeIn(d *openapi.Document, s *openapi.Schema) (typeOf, error) {
	if s.Ref != "" {
		name := target(s.Ref)
		other, _ := d.Components.Schemas.Get(name)
		return typeOf{kind: named, name: name, enum: other != nil && len(other.Enum) > 0}, nil
	}
	if len(s.AnyOf) == 2 && s.AnyOf[1].Type == "null" {
		t, err := typeIn(d, s.AnyOf[0])
		t.nullable = true
		return t, err
	}
	if len(s.AnyOf) > 0 {
		return typeOf{}, fmt.Errorf("an unsupported union of %d schemas", len(s.AnyOf))
	}
	if s.Type == nil {
		return typeOf{kind: anything}, nil
	}
	t := typeOf{nullable: s.AllowsNull()}
	switch s.Kind() {
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
		return t, t.addElement(d, s.Items)
	case "object":
		t.kind = object
		if s.AdditionalProperties == nil {
			return t, errors.New("an object without a name")
		}
		values, _ := s.AdditionalProperties.(*openapi.Schema) // otherwise true: any value
		return t, t.addElement(d, cmp.Or(values, &openapi.Schema{}))
	default:
		return t, fmt.Errorf("unsupported type %v", s.Type)
	}
	return t, nil
}

func (t *typeOf) addElement(d *openapi.Document, s *openapi.Schema) error {
	elem, err := typeIn(d, s)
	t.elem = &elem
	return err
}

func (m *model) addOperation(d *openapi.Document, method, path string, e *openapi.Operation) error {
	notes, _, _ := strings.Cut(e.Description, "**Access:**")
	o := operation{id: e.OperationID, method: method, path: path, summary: e.Summary, notes: strings.TrimSpace(notes)}
	if e.Stacked != nil {
		o.stacked = target(e.Stacked.Ref)
	}
	for _, way := range e.Security {
		_, bearer := way["bearerAuth"]
		_, key := way["apiKeyAuth"]
		o.bearer, o.apiKey = o.bearer || bearer, o.apiKey || key
	}
	for _, p := range e.Parameters {
		if p.Ref != "" {
			p, _ = d.Components.Parameters.Get(target(p.Ref))
		}
		if err := o.addParameter(d, p); err != nil {
			return fmt.Errorf("parameter %s: %w", p.Name, err)
		}
	}
	if e.RequestBody != nil {
		content := e.RequestBody.Content[0]
		o.input, o.form = target(content.Value.Schema.Ref), content.Name == "multipart/form-data"
		if o.input == "" || len(e.RequestBody.Content) > 1 && !o.form { // a file may also be sent without a form
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
	switch {
	case len(o.answers) > 0:
		m.describe(&o)
	case o.frames == nil:
		return fmt.Errorf("has no successful answer")
	}
	m.operations = append(m.operations, o)
	return nil
}

func (o *operation) addParameter(d *openapi.Document, p *openapi.Parameter) error {
	typ, err := typeIn(d, p.Schema)
	if err != nil {
		return err
	}
	switch p.In {
	case "path":
		o.params = append(o.params, p.Name)
	case "query":
		if typ.kind == list && !plainKind(typ.elem.kind) || typ.kind != list && !plainKind(typ.kind) {
			return fmt.Errorf("only plain values and lists of them can be sent in a query")
		}
		o.query = append(o.query, queryParam{p.Name, p.Description, typ})
	case "header":
		o.headers = append(o.headers, p.Name)
	default:
		return fmt.Errorf("unsupported place %s", p.In)
	}
	return nil
}

// plainKind reports whether a value of a kind can be part of an address.
func plainKind(k kind) bool { return k != list && k != object && k != anything && k != binary }

// addAnswer adds a successful answer. All errors have the same shape; 304 is an error of both clients.
func (o *operation) addAnswer(d *openapi.Document, status string, r *openapi.Response) error {
	if status == "default" || status >= "304" {
		return nil
	}
	if r.Ref != "" {
		return fmt.Errorf("is a reference")
	}
	_, tagged := r.Headers.Get("ETag")
	_, linked := r.Headers.Get("Link")
	o.etag, o.link = o.etag || tagged, o.link || linked
	a := answer{status: status}
	for _, content := range r.Content {
		if content.Name == eventStream {
			o.frames = content.Value.Frames
			continue
		}
		typ, err := typeIn(d, content.Value.Schema)
		if err != nil {
			return err
		}
		a.media, a.typ = append(a.media, content.Name), typ
	}
	if o.frames != nil && len(a.media) == 0 {
		return nil // Only the stream, which is no answer with a body.
	}
	if len(a.media) == 0 && status != "303" {
		return fmt.Errorf("is neither a body nor a redirect")
	}
	o.answers = append(o.answers, a)
	return nil
}

// describe completes an operation by what its answer is.
func (m *model) describe(o *operation) {
	first := o.answers[0].typ
	if t := m.typeNamed(first.name); first.kind == named && t != nil {
		t.tagged = t.tagged || o.etag
		if rows := t.rows(); rows != nil && o.method == http.MethodGet {
			o.page = &page{rows: rows.wire, elem: *rows.typ.elem}
			if o.queries("after") {
				o.page.next = "next"
			} else if !o.queries("offset") {
				o.page = nil
			}
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
