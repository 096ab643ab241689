package generate

import (
	"fmt"
	"slices"
	"strings"
)

// group is a group of operations, such as users.credentials.
type group struct {
	path   []string
	groups []*group
	all    []operation
}

func (g *group) typeName() string {
	if len(g.path) == 0 {
		return "API"
	}
	return exported(strings.Join(g.path, "_")) + "API"
}

func (g *group) child(name string) *group {
	for _, c := range g.groups {
		if c.path[len(c.path)-1] == name {
			return c
		}
	}
	g.groups = append(g.groups, &group{path: append(slices.Clone(g.path), name)})
	return g.groups[len(g.groups)-1]
}

// tree returns the operations in their groups.
func (m *model) tree() *group {
	root := &group{}
	for _, o := range m.operations {
		path, _ := o.group()
		g := root
		for _, name := range path {
			g = g.child(name)
		}
		g.all = append(g.all, o)
	}
	return root
}

// operations writes the groups and their methods.
func (w *goWriter) operations() {
	w.group(w.model.tree())
}

func (w *goWriter) group(g *group) {
	if len(g.path) == 0 {
		w.line("// API has all operations of the service, in groups.")
	} else {
		w.line("// %s has the operations %s.*.", g.typeName(), strings.Join(g.path, "."))
	}
	w.line("type %s struct {", g.typeName())
	for _, c := range g.groups {
		w.line("\t%s %s", exported(c.path[len(c.path)-1]), c.typeName())
	}
	if len(g.path) > 0 {
		w.line("\tclient *Client")
	}
	w.line("}\n")
	w.line("func (a *%s) bind(c *Client) {", g.typeName())
	if len(g.path) > 0 {
		w.line("a.client = c")
	}
	for _, c := range g.groups {
		w.line("a.%s.bind(c)", exported(c.path[len(c.path)-1]))
	}
	w.line("}\n")
	for _, o := range g.all {
		w.operation(g, o)
	}
	for _, c := range g.groups {
		w.group(c)
	}
}

// operation writes the methods of one operation.
func (w *goWriter) operation(g *group, o operation) {
	_, name := o.group()
	method := exported(name)
	if o.frames != nil && len(o.answers) == 0 {
		w.stream(g, o, method, exported(o.id)+"Frame")
		return
	}
	w.methodComment(o, method, "")
	result, call := w.result(o)
	w.line("func (a *%s) %s(%s) (%s, error) {", g.typeName(), method, o.goParams(""), result)
	w.line("return %s(ctx, a.client, %s, %s, options)", call, w.literal(o), o.goInput("params"))
	w.line("}\n")
	if o.stacked != "" {
		w.methodComment(o, method+"Stacked", "The rows are grouped by a field.")
		w.line("func (a *%s) %sStacked(%s) (*%s, error) {", g.typeName(), method, o.goParams("stack string, "), w.named(o.stacked))
		w.line("return fetch[%s](ctx, a.client, %s, %s, options)", w.named(o.stacked), w.literal(o), o.goInput("stacked{stack, params}"))
		w.line("}\n")
	}
	if o.page != nil {
		w.pages(g, o, method)
	}
	if o.frames != nil {
		w.stream(g, o, strings.TrimPrefix(method, "List")+"Stream", exported(o.id)+"StreamFrame")
	}
}

// methodComment writes the documentation of a method.
func (w *goWriter) methodComment(o operation, method, more string) {
	w.comment("", fmt.Sprintf("%s calls %s %s: %s %s", method, o.method, o.path, lowerFirst(o.summary), more))
	if o.notes != "" {
		w.line("//")
		w.comment("", o.notes)
	}
}

// pages writes the method that returns the rows of all pages.
func (w *goWriter) pages(g *group, o operation, method string) {
	all := "All"
	if method != "List" {
		all += method
	}
	row := w.goType(o.page.elem)
	w.comment("", fmt.Sprintf("%s returns the rows of all pages of [%s.%s].", all, g.typeName(), method))
	w.line("func (a *%s) %s(%s) iter.Seq2[%s, error] {", g.typeName(), all, o.goParams(""), row)
	args := strings.Join(append([]string{"ctx"}, o.goArguments()...), ", ")
	if o.link {
		w.line("return linked(func(before string, options []CallOption) ([]%s, error) {", row)
		w.line("if before != \"\" { params.Before = before }")
		w.line("return a.%s(%s, options...)\n}, options)\n}\n", method, args)
		return
	}
	if o.page.next != "" {
		w.line("return after(params.After, func(next string) ([]%s, string, bool, error) {", row)
		w.line("params.After = next")
		w.line("page, err := a.%s(%s, options...)", method, args)
		w.line("if err != nil { return nil, \"\", false, err }")
		w.line("return page.%s, page.Next, page.HasMore, nil\n})\n}\n", exported(o.page.rows))
		return
	}
	w.line("return rows(params.Limit, params.Offset, func(limit, offset int) ([]%s, bool, error) {", row)
	w.line("params.Limit, params.Offset = limit, offset")
	w.line("page, err := a.%s(%s, options...)", method, args)
	w.line("if err != nil { return nil, false, err }")
	w.line("return page.%s, page.HasMore, nil\n})\n}\n", exported(o.page.rows))
}

// stream writes the type of the frames of an event stream, and the method that reads them.
func (w *goWriter) stream(g *group, o operation, method, frame string) {
	o.answers = []answer{{media: []string{eventStream}}}
	w.comment("", frame+" is one frame of the stream. The member of its Event is set, the others are nil.")
	w.line("type %s struct {", frame)
	w.line("ID string // for [After]; empty for frames that cannot be resumed from\nEvent string // the name of the frame")
	for _, f := range o.frames {
		w.line("%s *%s", exported(f.Name), target(f.Value.Ref))
	}
	w.line("}\n")
	w.methodComment(o, method, "It reconnects and resumes after the last frame until the context ends or the service rejects the caller.")
	w.line("func (a *%s) %s(%s) iter.Seq2[%s, error] {", g.typeName(), method, o.goParams(""), frame)
	w.line("return follow(ctx, a.client, %s, %s, options, func(f *%s, e streamEvent) error {", w.literal(o), o.goInput("params"), frame)
	w.line("f.ID, f.Event = e.id, e.name\nswitch e.name {")
	for _, f := range o.frames {
		w.line("case %q:\nreturn e.into(&f.%s)", f.Name, exported(f.Name))
	}
	w.line("}")
	w.line("return nil\n})\n}\n")
}

// result returns the type of an operation's result and the function that fetches it.
func (w *goWriter) result(o operation) (typ, call string) {
	first := o.answers[0]
	if len(o.answers) == 2 && o.answers[1].typ.name != first.typ.name {
		a, b := w.named(first.typ.name), w.named(o.answers[1].typ.name)
		return "*" + a + ", *" + b, fmt.Sprintf("fetchEither[%s, %s]", a, b)
	}
	switch {
	case len(first.media) == 0: // a redirect
		return "string", "fetchLocation"
	case strings.HasPrefix(first.media[0], "text/"):
		return "string", "fetchText"
	case first.typ.kind == anything:
		return "json.RawMessage", "fetchRaw"
	case first.typ.kind == binary:
		return "*File", "fetchFile"
	case first.typ.kind == named && first.typ.nullable:
		return "*" + w.named(first.typ.name), "fetchNullable[" + w.named(first.typ.name) + "]"
	case first.typ.kind == named:
		return "*" + w.named(first.typ.name), "fetch[" + w.named(first.typ.name) + "]"
	}
	return w.goType(first.typ), "fetchList[" + w.goType(*first.typ.elem) + "]"
}
