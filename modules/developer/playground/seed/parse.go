package seed

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The members of a file and of a step, in the order of the documentation.
var (
	fileMembers = []string{"start", "values", "steps"}
	stepMembers = []string{"id", "as", "request", "query", "headers", "body", "file", "expect", "match"}
)

// Headers are those that a step may send. All others are the player's own.
var Headers = []string{"Accept-Language", "Content-Disposition", "Content-Type", "Idempotency-Key", "If-Match", "If-None-Match", "X-API-Key", "X-Device-ID"}

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// parser checks a file.
type parser struct {
	reader
	file  *File
	known map[string]bool // ids of the steps so far
	part  func(name string) ([]byte, error)
}

// Parse reads a file. It returns a *[Problem] for a mistake.
func Parse(data []byte) (*File, error) { return parse(data, nil) }

// parse is [Parse] for files that may begin with the steps of parts, which only scenarios do.
func parse(data []byte, part func(name string) ([]byte, error)) (*File, error) {
	if len(data) > MaxBytes {
		return nil, &Problem{Line: 1, Key: "invalid.seed_bytes", Args: map[string]any{"Max": MaxBytes}}
	}
	root, err := decode(data)
	if err != nil {
		return nil, err
	}
	p := parser{reader: reader{open: map[*yaml.Node]bool{}}, file: &File{Values: map[string]any{}, used: map[string]bool{}}, known: map[string]bool{}, part: part}
	value, err := p.value(root, 0)
	if err != nil {
		return nil, err
	}
	steps, err := p.head(node{line: root.Line, value: value})
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, &Problem{Line: max(root.Line, 1), Key: "invalid.seed_empty"}
	}
	if len(steps) > MaxSteps {
		return nil, &Problem{Line: steps[MaxSteps].line, Key: "invalid.seed_steps", Args: map[string]any{"Max": MaxSteps}}
	}
	for _, entry := range steps {
		if err := p.addStep(entry); err != nil {
			return nil, err
		}
	}
	return p.file, nil
}

// head reads what stands before the steps. A file may be the list of its steps alone.
func (p *parser) head(root node) (steps list, err error) {
	if all, ok := root.value.(list); ok {
		return all, nil
	}
	m, ok := root.value.(mapping)
	if !ok {
		return nil, &Problem{Line: max(root.line, 1), Key: "invalid.seed_form"}
	}
	known := fileMembers
	if p.part != nil {
		known = append(slices.Clone(known), "uses")
	}
	if err := p.checkMembers(m, known); err != nil {
		return nil, err
	}
	if start, given := m.get("start"); given {
		source, _ := start.value.(string)
		at, err := time.Parse(time.RFC3339, source)
		if err != nil {
			return nil, p.wrong(start, "invalid.datetime", nil)
		}
		at = at.UTC()
		p.file.Start = &at
	}
	if err := p.values(m); err != nil {
		return nil, err
	}
	own, given := m.get("steps")
	if steps, ok = own.value.(list); given && !ok {
		return nil, p.wrong(own, "invalid.seed_type", nil)
	}
	return p.withParts(m, steps)
}

// withParts puts the steps of parts before others.
func (p *parser) withParts(m mapping, steps list) (all list, err error) {
	uses, _ := m.get("uses")
	parts, _ := uses.value.(list)
	for _, entry := range parts {
		name, _ := entry.value.(string)
		data, err := p.part(name)
		if err != nil {
			return nil, err
		}
		root, err := decode(data)
		if err != nil {
			return nil, err
		}
		value, err := p.value(root, 0)
		if err != nil {
			return nil, err
		}
		more, _ := value.(list)
		all = append(all, more...)
	}
	return append(all, steps...), nil
}

func (p *parser) values(m mapping) error {
	given, ok := m.get("values")
	if !ok {
		return nil
	}
	values, ok := given.value.(mapping)
	if !ok {
		return p.wrong(given, "invalid.seed_type", nil)
	}
	for _, one := range values {
		_, scalar := scalarText(one.value)
		switch {
		case !scalar:
			return p.wrong(one.below("values"), "invalid.seed_type", nil)
		case !refPattern.MatchString(one.name) || reserved(one.name):
			return p.wrong(one.below("values"), "invalid.seed_name", nil)
		}
		p.file.Values[one.name] = one.value
	}
	return nil
}

func reserved(name string) bool { return slices.Contains([]string{today, now, run, Anonymous}, name) }

// wrong returns a mistake in a member.
func (p *parser) wrong(in node, key string, args map[string]any) *Problem {
	if args == nil {
		args = map[string]any{}
	}
	args["Member"] = in.name
	return &Problem{Line: max(in.line, 1), Step: p.step, Key: key, Args: args}
}

func (p *parser) checkMembers(m mapping, known []string) error {
	for _, one := range m {
		if !slices.Contains(known, one.name) {
			return p.wrong(one, "invalid.seed_unknown", map[string]any{"Known": strings.Join(known, ", ")})
		}
	}
	return nil
}

func (p *parser) addStep(entry node) error {
	m, ok := entry.value.(mapping)
	p.step = "step" + strconv.Itoa(len(p.file.Steps)+1)
	if !ok {
		return p.wrong(entry.called(p.step), "invalid.seed_type", nil)
	}
	s := Step{ID: p.step, Line: max(entry.line, 1)}
	if id, given := m.get("id"); given {
		if s.ID, _ = id.value.(string); !stepID.MatchString(s.ID) || reserved(s.ID) {
			return p.wrong(id, "invalid.seed_name", nil)
		}
	}
	p.step = s.ID
	if p.known[s.ID] {
		return p.wrong(entry.called("id"), "invalid.seed_twice", map[string]any{"Name": s.ID})
	}
	if err := p.checkMembers(m, stepMembers); err != nil {
		return err
	}
	for _, read := range []func(*Step, mapping) error{p.readRequest, p.readAs, p.readQuery, p.readBody, p.readExpect, p.readMatch} {
		if err := read(&s, m); err != nil {
			return err
		}
	}
	p.known[s.ID] = true
	p.file.Steps = append(p.file.Steps, s)
	return nil
}

// onePath admits the paths of the API: no other host, no way upwards, nothing encoded, no query.
var onePath = regexp.MustCompile(`^/[A-Za-z0-9._~/-]*$`)

// closed are paths that no step may use: those of the sandbox, and streams.
var closed = []string{"/v1/sandbox", "/v1/notifications/sse"}

func (p *parser) readRequest(s *Step, m mapping) error {
	request, given := m.get("request")
	if !given {
		request = node{name: "request", line: s.Line}
	}
	source, _ := request.value.(string)
	method, path, _ := strings.Cut(strings.TrimSpace(source), " ")
	if path = strings.TrimSpace(path); !slices.Contains(methods, method) || path == "" {
		return p.wrong(request, "invalid.seed_request", nil)
	}
	t, err := p.text(path, request)
	if err != nil {
		return err
	}
	if strings.ContainsAny(path, "?#") {
		return p.wrong(request, "invalid.seed_query", nil)
	}
	var filled strings.Builder // as if each reference were an ordinary segment
	for _, one := range t.parts {
		if one.ref != nil {
			filled.WriteByte('0')
		}
		filled.WriteString(one.literal)
	}
	if !ValidPath(filled.String()) {
		return p.wrong(request, "invalid.seed_path", nil)
	}
	s.Method, s.Path = method, t
	return nil
}

// ValidPath reports whether a step may send a request to a path.
func ValidPath(path string) bool {
	return onePath.MatchString(path) && !strings.Contains(path, "//") && !leadsAway(path)
}

// leadsAway reports whether a path leads upwards, or to one that no step may use.
func leadsAway(path string) bool {
	lower := strings.ToLower(path)
	isClosed := func(prefix string) bool { return lower == prefix || strings.HasPrefix(lower, prefix+"/") }
	isUpwards := func(segment string) bool { return segment == "." || segment == ".." }
	return slices.ContainsFunc(closed, isClosed) || slices.ContainsFunc(strings.Split(path, "/"), isUpwards)
}

func (p *parser) readAs(s *Step, m mapping) (err error) {
	given, _ := m.get("as")
	if given.value == nil {
		return nil
	}
	source, ok := given.value.(string)
	if !ok || strings.TrimSpace(source) == "" {
		return p.wrong(given, "invalid.seed_type", nil)
	}
	s.As, err = p.text(source, given)
	p.file.used[source] = true // if it is the id of a step
	return err
}

// readQuery reads the query and the headers.
func (p *parser) readQuery(s *Step, m mapping) (err error) {
	if s.Query, err = p.texts(m, "query"); err != nil {
		return err
	}
	s.Headers, err = p.texts(m, "headers")
	return err
}

// texts reads a mapping of texts.
func (p *parser) texts(m mapping, name string) (mapping, error) {
	given, ok := m.get(name)
	if !ok {
		return nil, nil
	}
	members, ok := given.value.(mapping)
	if !ok {
		return nil, p.wrong(given, "invalid.seed_type", nil)
	}
	texts := slices.Clone(members)
	for i, one := range members {
		isKnown := func(known string) bool { return strings.EqualFold(known, one.name) }
		if name == "headers" && !slices.ContainsFunc(Headers, isKnown) {
			return nil, p.wrong(one.called("headers"), "invalid.seed_header", map[string]any{"Known": strings.Join(Headers, ", ")})
		}
		source, ok := scalarText(one.value)
		if !ok {
			return nil, p.wrong(one.below(name), "invalid.seed_type", nil)
		}
		t, err := p.text(source, one.below(name))
		if err != nil {
			return nil, err
		}
		texts[i].value = t
	}
	return texts, nil
}

func scalarText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	}
	return "", false
}

func (p *parser) readBody(s *Step, m mapping) (err error) {
	body, given := m.get("body")
	file, uploads := m.get("file")
	switch {
	case given && uploads:
		return p.wrong(file, "invalid.seed_body", nil)
	case given:
		s.HasBody = true
		s.Body, err = p.template(body)
		return err
	case !uploads:
		return nil
	}
	members, ok := file.value.(mapping)
	if !ok {
		return p.wrong(file, "invalid.seed_type", nil)
	}
	if err := p.checkMembers(members, []string{"name", "content"}); err != nil {
		return err
	}
	name, _ := members.get("name")
	content, _ := members.get("content")
	source, named := name.value.(string)
	decoded, ok := contentOf(content.value)
	if !named || !ok {
		return p.wrong(file, "invalid.seed_file", nil)
	}
	t, err := p.text(source, file.called("file.name"))
	s.Upload = &upload{Name: t, Content: decoded}
	return err
}

func (p *parser) readExpect(s *Step, m mapping) (err error) {
	expect, ok := m.get("expect")
	if !ok {
		return nil
	}
	status := expect
	if members, ok := expect.value.(mapping); ok {
		if err := p.checkMembers(members, []string{"status", "body"}); err != nil {
			return err
		}
		if body, ok := members.get("body"); ok {
			s.Expect.HasAny = true
			if s.Expect.Body, err = p.template(node{"expect.body", expect.line, body.value}); err != nil {
				return err
			}
		}
		if status, ok = members.get("status"); !ok {
			return nil
		}
	}
	n, ok := status.value.(int64)
	if !ok || n < 100 || n > 599 {
		return p.wrong(expect, "invalid.seed_expect", nil)
	}
	s.Expect.Status = int(n)
	return nil
}

// match is a pattern that finds a text in an answer, such as a code in a message.
type match struct {
	name    string
	pattern *regexp.Regexp
}

func (p *parser) readMatch(s *Step, m mapping) error {
	given, ok := m.get("match")
	if !ok {
		return nil
	}
	members, ok := given.value.(mapping)
	if !ok || len(members) > maxMatches {
		return p.wrong(given, "invalid.seed_match", nil)
	}
	for _, one := range members {
		source, ok := one.value.(string)
		pattern, err := regexp.Compile(source)
		if !ok || err != nil || len(source) > maxPattern || !stepID.MatchString(one.name) {
			return p.wrong(one.called("match"), "invalid.seed_match", nil)
		}
		s.Match = append(s.Match, match{one.name, pattern})
	}
	return nil
}

// text parses a text, and checks that its references name something known. in is the member that has it.
func (p *parser) text(source string, in node) (text, error) {
	t, bad, ok := parseText(source)
	if !ok {
		return t, p.wrong(in, "invalid.seed_reference", map[string]any{"Reference": bad})
	}
	for _, ref := range t.references() {
		_, value := p.file.Values[ref.name()]
		if !value && !p.known[ref.root] && !slices.Contains([]string{today, now}, ref.root) && ref.name() != run {
			return t, p.wrong(in, "invalid.seed_unknown_reference", map[string]any{"Reference": ref.source})
		}
		if !value {
			p.file.used[ref.root] = true
		}
	}
	return t, nil
}

// template returns the value of a member, with the parsed form of each text in it.
func (p *parser) template(n node) (filled any, err error) {
	switch v := n.value.(type) {
	case string:
		return p.text(v, n)
	case list:
		all := make([]any, len(v))
		for i, entry := range v {
			if all[i], err = p.template(entry.called(n.name)); err != nil {
				return nil, err
			}
		}
		return all, nil
	case mapping:
		all := slices.Clone(v)
		for i, one := range v {
			if all[i].value, err = p.template(one.called(n.name)); err != nil {
				return nil, err
			}
		}
		return all, nil
	case []byte:
		return nil, p.wrong(n, "invalid.seed_type", nil)
	}
	return n.value, nil
}

// escape returns a value for a segment of a path. ok is false for what would change the path's shape.
func escape(value string) (segment string, ok bool) {
	if value == "" || value == "." || value == ".." || strings.ContainsAny(value, "/\\\x00\r\n") {
		return "", false
	}
	return url.PathEscape(value), true
}
