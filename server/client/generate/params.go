package generate

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
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

// mapped returns what f makes of each text.
func mapped(texts []string, f func(string) string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = f(text)
	}
	return all
}

// goParams returns the parameters of a method.
func (o operation) goParams(more string) string {
	var b strings.Builder
	b.WriteString("ctx context.Context, ")
	if len(o.params) > 0 {
		b.WriteString(strings.Join(mapped(o.params, goParameter), ", ") + " string, ")
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
	names := mapped(o.params, goParameter)
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
		parts = append(parts, "path: []string{"+strings.Join(mapped(o.params, goParameter), ", ")+"}")
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
	parts := append([]string{fmt.Sprintf("name: %q, method: %q, path: %q", o.id, o.method, o.path)}, o.flags()...)
	if media := o.accept(); media != "" {
		parts = append(parts, fmt.Sprintf("accept: %q", media))
	}
	return "operation{" + strings.Join(parts, ", ") + "}"
}

// flags returns the members of an operation's literal that are true.
func (o operation) flags() (all []string) {
	for _, flag := range []struct {
		on   bool
		name string
	}{{o.bearer, "bearer"}, {o.apiKey, "apiKey"}, {o.form, "form"}, {o.accepts("Idempotency-Key"), "keyed"}, {o.accepts("X-Device-ID"), "device"}} {
		if flag.on {
			all = append(all, flag.name+": true")
		}
	}
	return all
}

// accept returns the media types that a call asks for; empty for JSON alone.
func (o operation) accept() string {
	if media := strings.Join(o.answers[0].media, ", "); o.frames != nil || media != "application/json" {
		return media
	}
	return ""
}

// pageMembers are the members of the pages of lists. Rows of a page that is stacked are grouped by keys. Not every list has people.
var pageMembers = []string{"data", "keys", "metadata", "total", "total_unfiltered", "has_more", "next_cursor", "people"}

// generic returns the name of the generic type that a page is an instance of, and the type of its rows; "" for other types.
func (t *namedType) generic() (name string, row typeOf) {
	data, cursor := t.field("data"), t.field("next_cursor")
	foreign := func(f field) bool { return !slices.Contains(pageMembers, f.wire) }
	if data == nil || cursor == nil || slices.ContainsFunc(t.fields, foreign) {
		return "", typeOf{}
	}
	if data.typ.kind == object {
		return "StackedPage", *data.typ.elem.elem
	}
	return "Page", *data.typ.elem
}

func (t *namedType) field(wire string) *field {
	for i := range t.fields {
		if t.fields[i].wire == wire {
			return &t.fields[i]
		}
	}
	return nil
}

// instance returns the generic type that a name of the document stands for, and the type of its rows; "" for other names.
func (m *model) instance(name string) (generic string, row typeOf) {
	if t := m.typeNamed(name); t != nil {
		return t.generic()
	}
	return "", typeOf{}
}

// declared returns the types that a client declares: all but the pages, and a generic type for each form of page. Its rows have the
// type T, and it has each member that one of the pages has.
func (m *model) declared() []namedType {
	var all []namedType
	at := map[string]int{}
	for _, t := range m.types {
		name, _ := t.generic()
		if name == "" {
			all = append(all, t)
			continue
		}
		i, found := at[name]
		if !found {
			i = len(all)
			at[name] = i
			doc := map[string]string{"Page": "A page of a list.", "StackedPage": "A page of a list whose rows are grouped."}[name]
			all = append(all, namedType{name: name, doc: doc, generics: true})
		}
		if len(t.fields) > len(all[i].fields) {
			all[i].fields = slices.Clone(t.fields)
			all[i].field("data").typ = withRows(all[i].field("data").typ, typeOf{kind: named, name: "T"})
		}
	}
	return all
}

// withRows returns the type of the rows of a page, with another type of each row.
func withRows(data, row typeOf) typeOf {
	if data.kind == object { // the rows of each group
		grouped := withRows(*data.elem, row)
		data.elem = &grouped
		return data
	}
	data.elem = &row
	return data
}

// initialisms are words that Go writes in capital letters.
var initialisms = map[string]string{
	"acr": "ACR", "amr": "AMR", "api": "API", "http": "HTTP", "iban": "IBAN", "id": "ID", "ids": "IDs", "ip": "IP", "json": "JSON",
	"jwks": "JWKS", "kyc": "KYC", "oidc": "OIDC", "openapi": "OpenAPI", "otp": "OTP", "qr": "QR", "rbac": "RBAC", "svg": "SVG",
	"totp": "TOTP", "uri": "URI", "url": "URL", "urls": "URLs", "uuid": "UUID",
}

// words splits a name of the API, such as user_id, userId or If-Match, into lower-case words.
func words(name string) []string {
	var found []string
	begin := true
	for i, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			begin = true
			continue
		case unicode.IsUpper(r) && i > 0 && unicode.IsLower(rune(name[i-1])):
			begin = true
		}
		if begin {
			found = append(found, "")
		}
		begin = false
		found[len(found)-1] += string(unicode.ToLower(r))
	}
	return found
}

// exported returns a name of the API as an exported name of Go.
func exported(name string) string {
	var b strings.Builder
	for _, word := range words(name) {
		if capitals, ok := initialisms[word]; ok {
			b.WriteString(capitals)
			continue
		}
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// camel returns a name of the API in camel case that begins with a small letter, as in TypeScript.
func camel(name string) string {
	parts := words(name)
	for i := 1; i < len(parts); i++ {
		parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
	}
	return strings.Join(parts, "")
}

// goParameter returns a name of the API as a parameter of a Go function.
func goParameter(name string) string {
	parts := words(name)
	first := parts[0]
	rest := exported(strings.Join(parts[1:], "_"))
	if first == "type" || first == "range" || first == "func" {
		first += "Of"
	}
	return first + rest
}

// wrap breaks a text into lines of at most width characters. Line breaks of the text stay.
func wrap(text string, width int) []string {
	var lines []string
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line := ""
		for word := range strings.FieldsSeq(paragraph) {
			if line != "" && len(line)+1+len(word) > width {
				lines = append(lines, line)
				line = ""
			}
			if line != "" {
				line += " "
			}
			line += word
		}
		lines = append(lines, line)
	}
	return lines
}

// lowerFirst starts a sentence with a small letter, unless its first word is an abbreviation.
func lowerFirst(s string) string {
	if len(s) > 1 && unicode.IsLower(rune(s[1])) || strings.HasPrefix(s, "A ") {
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}
