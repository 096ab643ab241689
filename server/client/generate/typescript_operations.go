package generate

import (
	"fmt"
	"slices"
	"strings"
)

// operations writes the types of queries and frames, and the groups with their methods.
func (w *scriptWriter) operations() {
	w.line("import { Group, type CallOptions, type Connection } from './call.js';")
	w.line("import type { Filter } from './lists.js';")
	w.line("import type { StreamOptions } from './stream.js';")
	w.line("import type * as t from './types.js';\n")
	w.code("import { Group, segment } from './call.js';")
	w.code("import { cursors, linked, pages } from './lists.js';")
	w.code("import { follow } from './stream.js';\n")
	for _, o := range w.model.operations {
		w.query(o)
		w.frames(o)
	}
	w.group(w.model.tree())
}

func (o operation) queryType() string { return exported(o.id) + "Query" }

// query writes the type of the parameters of a query.
func (w *scriptWriter) query(o operation) {
	if len(o.query) == 0 {
		return
	}
	w.line("/** Parameters of %s %s. */", o.method, o.path)
	w.line("export interface %s {", o.queryType())
	var filters []string
	for _, p := range o.query {
		switch {
		case p.wire == "stack": // The list that is stacked has a method of its own.
		case p.search():
			filters = append(filters, strings.TrimPrefix(p.wire, "search."))
		default:
			w.comment("  ", p.doc)
			w.line("  %s?: %s;", p.wire, w.scriptType("t.", p.typ))
		}
	}
	if len(filters) > 0 {
		w.line("  search?: {")
		for _, name := range filters {
			w.line("    %s?: Filter;", name)
		}
		w.line("  };")
	}
	w.line("}\n")
}

// frames writes the type of the frames of an event stream.
func (w *scriptWriter) frames(o operation) {
	if o.frames == nil {
		return
	}
	w.line("/** A frame of the stream. An id is a position for the option after; frames without one have none. */")
	w.line("export type %sFrame =", o.streamType())
	for i, f := range o.frames {
		end, name := "", scriptText(f.Name)
		if i == len(o.frames)-1 {
			end = ";\n"
		}
		if strings.Contains(f.Name, "*") {
			name = "`" + strings.ReplaceAll(f.Name, "*", "${string}") + "`"
		}
		w.line("  | { event: %s; id: string; data: t.%s }%s", name, target(f.Value.Ref), end)
	}
}

// streamType returns the start of the name of a stream's frames.
func (o operation) streamType() string {
	if len(o.answers) > 0 {
		return exported(o.id) + "Stream"
	}
	return exported(o.id)
}

func (w *scriptWriter) group(g *group) {
	for _, c := range g.groups {
		w.group(c)
	}
	name := strings.TrimSuffix(g.typeName(), "API") + "Operations"
	w.line("export declare class %s extends Group {", name)
	w.code("export class %s extends Group {", name)
	for _, c := range g.groups {
		w.line("  readonly %s: %sOperations;", camel(c.path[len(c.path)-1]), strings.TrimSuffix(c.typeName(), "API"))
	}
	if len(g.groups) > 0 {
		w.line("\n  constructor(connection: Connection);")
		w.code("  constructor(connection) {\n    super(connection);")
		for _, c := range g.groups {
			w.code("    this.%s = new %sOperations(connection);", camel(c.path[len(c.path)-1]), strings.TrimSuffix(c.typeName(), "API"))
		}
		w.code("  }")
	}
	for i, o := range g.all {
		if i > 0 || len(g.groups) > 0 {
			w.line("")
			w.code("")
		}
		w.operation(o)
	}
	w.line("}\n")
	w.code("}\n")
}

// operation writes the methods of one operation.
func (w *scriptWriter) operation(o operation) {
	_, name := o.group()
	method := camel(name)
	about := fmt.Sprintf("%s %s: %s", o.method, o.path, lowerFirst(o.summary))
	if o.notes != "" {
		about += "\n\n" + o.notes
	}
	w.comment("  ", about)
	if o.frames != nil && len(o.answers) == 0 {
		w.stream(o, method)
		return
	}
	result, call := w.result(o)
	w.line("  %s(%s): Promise<%s>;", method, o.scriptParams("", "CallOptions"), result)
	w.code("  async %s(%s) {", method, o.scriptNames(""))
	w.code("    return this.connection.%s(%s, %s, options);\n  }", call, w.literal(o), o.scriptGiven(""))
	if o.stacked != "" {
		w.line("\n  /** The rows of {@link %s}, grouped by a field. */", method)
		w.line("  %sStacked(%s): Promise<%s>;", method, o.scriptParams("stack: string, ", "CallOptions"), w.named("t.", o.stacked))
		w.code("\n  async %sStacked(%s) {", method, o.scriptNames("stack, "))
		w.code("    return this.connection.json(%s, %s, options);\n  }", w.literal(o), o.scriptGiven("{ ...query, stack }"))
	}
	if o.page != nil {
		w.pages(o, method)
	}
	if o.frames != nil {
		name := "stream"
		if method != "list" {
			name = method + "Stream"
		}
		w.code("")
		w.line("\n  /** The same as an event stream. It reconnects, and continues after the last frame. */")
		w.stream(o, name)
	}
}

// stream writes the method that reads an event stream.
func (w *scriptWriter) stream(o operation, method string) {
	name := o.streamType()
	o.answers = []answer{{media: []string{eventStream}}}
	w.line("  %s(%s): AsyncGenerator<%sFrame, void, undefined>;", method, o.scriptParams("", "StreamOptions"), name)
	w.code("  %s(%s) {", method, o.scriptNames(""))
	w.code("    return follow(this.connection, %s, %s, options);\n  }", w.literal(o), o.scriptGiven(""))
}

// pages writes the method that returns the rows of all pages.
func (w *scriptWriter) pages(o operation, method string) {
	all := "all"
	if method != "list" {
		all += strings.ToUpper(method[:1]) + method[1:]
	}
	w.line("\n  /** The rows of all pages of {@link %s}. */", method)
	w.line("  %s(%s): AsyncGenerator<%s, void, undefined>;", all, o.scriptParams("", "CallOptions"), w.scriptType("t.", o.page.elem))
	w.code("\n  %s(%s) {", all, o.scriptNames(""))
	names := make([]string, len(o.params))
	for i, p := range o.params {
		names[i] = camel(p)
	}
	args := strings.Join(append(names, "next"), ", ")
	if o.page.next != "" {
		w.code("    return cursors(query, (next) => this.%s(%s, options), (page) => page.%s);\n  }", method, args, o.page.rows)
		return
	}
	if o.link {
		w.code("    return linked(query, options, (next, more) => this.%s(%s, more));\n  }", method, args)
		return
	}
	w.code("    return pages(query, (next) => this.%s(%s, options), (page) => page.%s);\n  }", method, args, o.page.rows)
}

// result returns the type of an operation's result and the method that requests it.
func (w *scriptWriter) result(o operation) (typ, call string) {
	first := o.answers[0]
	if len(o.answers) == 2 && o.answers[1].typ.name != first.typ.name {
		a, b := w.named("t.", first.typ.name), w.named("t.", o.answers[1].typ.name)
		return fmt.Sprintf("{ status: 200; data: %s } | { status: 202; data: %s }", a, b), "either"
	}
	switch {
	case len(first.media) == 0: // a redirect
		return "string", "location"
	case strings.HasPrefix(first.media[0], "text/"):
		return "string", "text"
	case first.typ.kind == binary:
		return "Blob", "blob"
	}
	return w.scriptType("t.", first.typ), "json"
}

// scriptParams returns the parameters of a method.
func (o operation) scriptParams(more, options string) string {
	var b strings.Builder
	for _, p := range o.params {
		b.WriteString(camel(p) + ": string, ")
	}
	b.WriteString(more)
	if o.input != "" {
		b.WriteString("input: t." + o.input + ", ")
	}
	if len(o.query) > 0 {
		b.WriteString("query?: " + o.queryType() + ", ")
	}
	return b.String() + "options?: " + options
}

// scriptNames returns the names of the parameters of a method, with their defaults.
func (o operation) scriptNames(more string) string {
	var b strings.Builder
	for _, p := range o.params {
		b.WriteString(camel(p) + ", ")
	}
	b.WriteString(more)
	if o.input != "" {
		b.WriteString("input, ")
	}
	if len(o.query) > 0 {
		b.WriteString("query = {}, ")
	}
	return b.String() + "options = {}"
}

// scriptGiven returns the literal of what a call sends.
func (o operation) scriptGiven(query string) string {
	var parts []string
	if o.input != "" {
		parts = append(parts, "input")
	}
	if len(o.query) > 0 {
		if query == "" {
			parts = append(parts, "query")
		} else {
			parts = append(parts, "query: "+query)
		}
	}
	if len(parts) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}

// literal returns the literal of the operation. Its path holds the values of the parameters.
func (w *scriptWriter) literal(o operation) string {
	path := scriptText(o.path)
	if len(o.params) > 0 {
		filled := o.path
		for _, p := range o.params {
			filled = strings.Replace(filled, "{"+p+"}", "${segment("+camel(p)+")}", 1)
		}
		path = "`" + filled + "`"
	}
	parts := []string{"name: " + scriptText(o.id), "method: " + scriptText(o.method), "path: " + path}
	flags := []struct {
		on   bool
		name string
	}{{o.bearer, "bearer"}, {o.apiKey, "apiKey"}, {o.form, "form"}, {o.accepts("Idempotency-Key"), "keyed"}, {o.accepts("X-Device-ID"), "device"}}
	for _, flag := range flags {
		if flag.on {
			parts = append(parts, flag.name+": true")
		}
	}
	if media := o.answers[0].media; len(media) > 0 && (o.frames != nil || !slices.Equal(media, []string{"application/json"})) {
		parts = append(parts, "accept: "+scriptText(strings.Join(media, ", ")))
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
