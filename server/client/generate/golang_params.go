package generate

import (
	"fmt"
	"slices"
	"strings"
)

// params writes the types of the parameters of queries.
func (w *goWriter) params() {
	for _, o := range w.model.operations {
		if len(o.query) == 0 {
			continue
		}
		w.comment("", fmt.Sprintf("%s are the parameters of %s %s. Zero values are not sent.", o.paramsType(), o.method, o.path))
		w.line("type %s struct {", o.paramsType())
		for _, p := range o.query {
			if p.wire == "stack" {
				continue // The list that is stacked has a method of its own.
			}
			if !p.search() {
				w.comment("\t", p.doc)
			}
			w.line("\t%s %s `query:%q`", exported(p.wire), queryType(p), p.wire)
		}
		w.line("}\n")
	}
}

func (o operation) paramsType() string { return exported(o.id) + "Params" }

// queryType returns the type of a parameter. false is a value of its own.
func queryType(p queryParam) string {
	switch {
	case p.search():
		return "Filter"
	case p.typ.kind == list:
		return "[]" + queryType(queryParam{p.wire, p.doc, *p.typ.elem})
	case p.typ.kind == integer:
		return "int"
	case p.typ.kind == boolean:
		return "*bool"
	case p.typ.kind == named:
		return p.typ.name
	case p.typ.kind == moment:
		return "time.Time"
	}
	return "string"
}

// goParams returns the parameters of a method.
func (o operation) goParams(more string) string {
	var b strings.Builder
	b.WriteString("ctx context.Context, ")
	if len(o.params) > 0 {
		names := make([]string, len(o.params))
		for i, p := range o.params {
			names[i] = goParameter(p)
		}
		b.WriteString(strings.Join(names, ", ") + " string, ")
	}
	b.WriteString(more)
	if o.input != "" {
		b.WriteString("in " + o.input + ", ")
	}
	if len(o.query) > 0 {
		b.WriteString("params " + o.paramsType() + ", ")
	}
	return b.String() + "options ...CallOption"
}

// goArguments returns the arguments with which one method of an operation calls another.
func (o operation) goArguments() []string {
	var names []string
	for _, p := range o.params {
		names = append(names, goParameter(p))
	}
	if o.input != "" {
		names = append(names, "in")
	}
	if len(o.query) > 0 {
		names = append(names, "params")
	}
	return names
}

// goInput returns the literal of what a call sends.
func (o operation) goInput(query string) string {
	var parts []string
	if len(o.params) > 0 {
		names := make([]string, len(o.params))
		for i, p := range o.params {
			names[i] = goParameter(p)
		}
		parts = append(parts, "path: []string{"+strings.Join(names, ", ")+"}")
	}
	if o.input != "" {
		parts = append(parts, "body: in")
	}
	if len(o.query) > 0 {
		parts = append(parts, "query: "+query)
	}
	return "input{" + strings.Join(parts, ", ") + "}"
}

// literal returns the literal of the operation.
func (w *goWriter) literal(o operation) string {
	parts := []string{fmt.Sprintf("name: %q, method: %q, path: %q", o.id, o.method, o.path)}
	if o.bearer {
		parts = append(parts, "bearer: true")
	}
	if o.apiKey {
		parts = append(parts, "apiKey: true")
	}
	if o.form {
		parts = append(parts, "form: true")
	}
	if o.accepts("Idempotency-Key") {
		parts = append(parts, "keyed: true")
	}
	if o.accepts("X-Device-ID") {
		parts = append(parts, "device: true")
	}
	if media := o.answers[0].media; len(media) > 0 && (o.frames != nil || !slices.Equal(media, []string{"application/json"})) {
		parts = append(parts, fmt.Sprintf("accept: %q", strings.Join(media, ", ")))
	}
	return "operation{" + strings.Join(parts, ", ") + "}"
}
