package endpoint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"kontor/server/apierr"
)

// QueryBinder is implemented by types that decode the whole query string, such as the parameters of lists.
type QueryBinder interface {
	// BindQuery decodes the parameters and adds the wrong ones to problems.
	BindQuery(query map[string][]string, problems *apierr.Fields)
}

// plan describes how an input is filled. It is made once for each type at start.
type plan struct {
	input  reflect.Type
	path   []pathField
	query  []queryField
	binder int              // index of the QueryBinder, or -1
	body   map[string][]int // member name → field index, with that of the embedded struct
	limits *limits          // of the body

	undeclared []string // fields without a limit, see [Endpoint.Check]
}

type pathField struct {
	name     string
	index    int
	position int // among the path's names
	text     bool
}

type queryField struct {
	name  string
	index int
	items int // of a parameter that may be repeated
}

// newPlan reads the tags of a struct. It panics for a field without exactly one source, which is a programming error.
func newPlan(t reflect.Type) *plan {
	p := &plan{input: t, binder: -1, body: map[string][]int{}}
	l := limiter{known: map[reflect.Type]*limits{}}
	p.limits = l.ofStruct(t)
	for i := range t.NumField() {
		field := t.Field(i)
		if !field.IsExported() {
			continue // Validate may set it for the service
		}
		if field.Anonymous && field.Tag == "" && field.Type.Kind() == reflect.Struct {
			for name, index := range newPlan(field.Type).body { // several inputs share its members
				p.body[name] = append([]int{i}, index...)
			}
			continue
		}
		path, query, body := field.Tag.Get("path"), field.Tag.Get("query"), field.Tag.Get("json")
		switch {
		case path != "" && query == "" && body == "":
			name, option, _ := strings.Cut(path, ",")
			p.path = append(p.path, pathField{name: name, index: i, position: len(p.path), text: option == "text"})
		case query == "*" && path == "" && body == "":
			p.binder = i
		case query != "" && path == "" && body == "":
			p.query = append(p.query, queryField{name: query, index: i, items: l.ofQuery(field, t)})
		case body != "" && path == "" && query == "":
			name, _, _ := strings.Cut(body, ",")
			p.body[name] = []int{i}
		default:
			panic("endpoint: field " + t.String() + "." + field.Name + " needs exactly one of the tags path, query, json")
		}
	}
	p.undeclared = l.undeclared
	return p
}

func (p *plan) hasBody() bool { return len(p.body) > 0 }

// bind fills the input and adds wrong values to problems. It returns an error for a body that is no JSON object.
func (p *plan) bind(r *Request, in reflect.Value, problems *apierr.Fields) error {
	for _, field := range p.path {
		value := r.Params[field.position]
		if !field.text {
			id, err := uuid.Parse(value)
			if err != nil || len(value) != 36 {
				problems.Add(field.name, "invalid.uuid")
				continue
			}
			value = id.String()
		}
		in.Field(field.index).SetString(value)
	}
	if len(p.query) > 0 || p.binder >= 0 {
		p.bindQuery(r, in, problems)
	}
	if !p.hasBody() {
		return nil
	}
	return p.bindBody(r.Fiber.Request().Body(), in, problems)
}

func (p *plan) bindQuery(r *Request, in reflect.Value, problems *apierr.Fields) {
	query := map[string][]string{}
	for key, value := range r.Fiber.Request().URI().QueryArgs().All() {
		query[string(key)] = append(query[string(key)], string(value))
	}
	for _, field := range p.query {
		if values, given := query[field.name]; given {
			setQuery(in.Field(field.index), field, values, problems)
		}
	}
	if p.binder >= 0 {
		in.Field(p.binder).Addr().Interface().(QueryBinder).BindQuery(query, problems)
	}
}

// setQuery parses one query parameter into its field. The last value of a repeated parameter counts, except for lists.
func setQuery(field reflect.Value, of queryField, values []string, problems *apierr.Fields) {
	name := of.name
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	last := values[len(values)-1]
	switch field.Kind() {
	case reflect.String:
		field.SetString(last)
	case reflect.Slice:
		if len(values) > of.items {
			problems.Add(name, "invalid.max_items", apierr.Args{"Max": of.items})
			return
		}
		field.Set(reflect.ValueOf(values))
	case reflect.Bool:
		switch last {
		case "true", "1":
			field.SetBool(true)
		case "false", "0":
			field.SetBool(false)
		default:
			problems.Add(name, "invalid.boolean")
		}
	case reflect.Int, reflect.Int64:
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil {
			problems.Add(name, "invalid.integer")
			return
		}
		field.SetInt(n)
	default:
		panic("endpoint: query parameter " + name + " has an unsupported type")
	}
}

// bindBody decodes a JSON object member by member. An empty body counts as an empty object. Duplicate members, invalid
// UTF-8 and anything after the object are rejected: RFC 8259, section 4, leaves duplicates open, and two readers that disagree
// about them can be attacked.
func (p *plan) bindBody(body []byte, in reflect.Value, problems *apierr.Fields) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	decoder := decoders.Get().(*jsontext.Decoder)
	decoder.Reset(bytes.NewBuffer(body)) // parsed in place; of any other reader the decoder makes a copy
	defer func() {
		decoder.Reset(emptyBody{}) // forgets the body
		decoders.Put(decoder)
	}()
	w := walk{decoder, MaxValues}
	first, err := w.ReadToken()
	if err != nil {
		return brokenJSON(err)
	}
	if first.Kind() != '{' {
		return apierr.Invalid("body", "invalid.json_object")
	}
	for w.PeekKind() == '"' {
		name, err := w.ReadToken()
		if err != nil {
			return brokenJSON(err)
		}
		member, begin := name.String(), w.InputOffset()
		if err := w.value(p.limits.fields[member]); err != nil {
			return brokenJSON(err)
		}
		if index, known := p.body[member]; known {
			end := w.InputOffset()
			value := bytes.TrimLeft(body[begin:end:end], ": \t\r\n")
			setMember(in.FieldByIndex(index), member, value, problems)
		}
	}
	if _, err := w.ReadToken(); err != nil {
		return brokenJSON(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return brokenJSON(err)
	}
	return nil
}

// decoders are those of bodies, which keep their memory for further ones.
var decoders = sync.Pool{New: func() any { return jsontext.NewDecoder(emptyBody{}) }}

// emptyBody is a reader without content.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }

// InPlace is implemented by members that are too large to copy. SetInPlace receives the part of the body with the value.
// The member may keep and overwrite it until the handler returns.
type InPlace interface{ SetInPlace(value jsontext.Value) }

// setMember decodes one member of the body into its field.
func setMember(field reflect.Value, member string, value jsontext.Value, problems *apierr.Fields) {
	if large, ok := field.Addr().Interface().(InPlace); ok {
		large.SetInPlace(value)
		return
	}
	decode(field, member, value, problems)
}

// brokenJSON returns the error of a body that is no JSON, or that exceeds a limit.
func brokenJSON(err error) error {
	switch exceeded, ok := errors.AsType[*apierr.Error](err); {
	case ok:
		return exceeded
	case errors.Is(err, errValues):
		return tooMany("body", "invalid.max_values", MaxValues)
	case errors.Is(err, errDepth):
		return tooMany("body", "invalid.max_depth", MaxDepth)
	}
	var problems apierr.Fields
	if errors.Is(err, jsontext.ErrDuplicateName) {
		problems.Add("body", "invalid.json_duplicate")
	} else {
		problems.Add("body", "invalid.json")
	}
	return &apierr.Error{Kind: apierr.InvalidInput, Fields: &problems, Cause: err}
}

const (
	searchPrefix = "search."

	// maxShownName bounds the part of an unknown name that is repeated in an answer.
	maxShownName = 80
)

// listNames are the parameters of a list beside its searches.
var listNames = []string{"limit", "offset", "cursor", "sort", "stack", "distinct"}

// takes reports whether the handler reads a query parameter. An unknown field of a search is left to the list.
func (p *plan) takes(name string) bool {
	if p == nil {
		return false
	}
	if p.binder >= 0 && (slices.Contains(listNames, name) || strings.HasPrefix(name, searchPrefix)) {
		return true
	}
	return slices.ContainsFunc(p.query, func(f queryField) bool { return f.name == name })
}

// IgnoredHeader is the header of answers that names the query parameters without effect.
const IgnoredHeader = "Kontor-Ignored-Parameters"

// Bounds of the header, in bytes. Proxies have small buffers for the headers of an answer.
const (
	maxIgnored     = 400
	maxIgnoredName = 60
)

// Ignored returns the names of the query parameters that the handler does not read, as [IgnoredHeader] has them: each once, in their order,
// separated by commas, with all but letters, digits and _-.[] in percent-encoding. Dots at the end stand for names that do not fit.
func (h Handler) Ignored(query *fasthttp.Args) string {
	var value []byte
	var names []string
	for key := range query.All() {
		if len(key) == 0 || h.plan.takes(string(key)) {
			continue
		}
		name := encodeName(key)
		if slices.Contains(names, name) {
			continue
		}
		if len(value)+len(name) > maxIgnored {
			return string(append(value, ", ..."...))
		}
		names = append(names, name)
		if len(value) > 0 {
			value = append(value, ", "...)
		}
		value = append(value, name...)
	}
	return string(value)
}

// encodeName encodes the beginning of the name of a parameter.
func encodeName(name []byte) string {
	var b strings.Builder
	for _, c := range name {
		if b.Len() >= maxIgnoredName {
			b.WriteString("...")
			break
		}
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("_-.[]", c) >= 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Clip makes a name from the client safe for answers and for the log.
func Clip(name string) string {
	if len(name) > maxShownName {
		name = name[:maxShownName]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError || r == 0x7f {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(name, "?"))
}
