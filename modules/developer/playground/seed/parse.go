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
	steps, line, err := p.head(value, root.Line)
	if err != nil {
		return nil, err
	}
	if len(steps.entries) == 0 {
		return nil, &Problem{Line: max(line, 1), Key: "invalid.seed_empty"}
	}
	if len(steps.entries) > MaxSteps {
		return nil, &Problem{Line: steps.lines[MaxSteps], Key: "invalid.seed_steps", Args: map[string]any{"Max": MaxSteps}}
	}
	for i, entry := range steps.entries {
		if err := p.addStep(entry, steps.lines[i]); err != nil {
			return nil, err
		}
	}
	return p.file, nil
}

// head reads what stands before the steps. A file may be the list of its steps alone.
func (p *parser) head(value any, line int) (steps list, at int, err error) {
	if all, ok := value.(list); ok {
		return all, line, nil
	}
	m, ok := value.(mapping)
	if !ok {
		return list{}, 0, &Problem{Line: max(line, 1), Key: "invalid.seed_form"}
	}
	known := fileMembers
	if p.part != nil {
		known = append(slices.Clone(known), "uses")
	}
	if err := p.checkMembers(m, known); err != nil {
		return list{}, 0, err
	}
	if start, given := m.values["start"]; given {
		source, _ := start.(string)
		at, err := time.Parse(time.RFC3339, source)
		if err != nil {
			return list{}, 0, p.wrong(m.lines["start"], "start", "invalid.datetime", nil)
		}
		at = at.UTC()
		p.file.Start = &at
	}
	if err := p.values(m); err != nil {
		return list{}, 0, err
	}
	steps, ok = m.values["steps"].(list)
	if _, given := m.values["steps"]; given && !ok {
		return list{}, 0, p.wrong(m.lines["steps"], "steps", "invalid.seed_type", nil)
	}
	steps, err = p.withParts(m, steps)
	return steps, m.line, err
}

// withParts puts the steps of parts before others.
func (p *parser) withParts(m mapping, steps list) (list, error) {
	var all list
	uses, _ := m.values["uses"].(list)
	for _, entry := range uses.entries {
		name, _ := entry.(string)
		data, err := p.part(name)
		if err != nil {
			return steps, err
		}
		root, err := decode(data)
		if err != nil {
			return steps, err
		}
		value, err := p.value(root, 0)
		if err != nil {
			return steps, err
		}
		more, _ := value.(list)
		all.entries, all.lines = append(all.entries, more.entries...), append(all.lines, more.lines...)
	}
	all.entries, all.lines = append(all.entries, steps.entries...), append(all.lines, steps.lines...)
	return all, nil
}

func (p *parser) values(m mapping) error {
	given, ok := m.values["values"]
	if !ok {
		return nil
	}
	values, ok := given.(mapping)
	if !ok {
		return p.wrong(m.lines["values"], "values", "invalid.seed_type", nil)
	}
	for _, name := range values.names {
		switch values.values[name].(type) {
		case string, bool, int64, float64:
		default:
			return p.wrong(values.lines[name], "values."+name, "invalid.seed_type", nil)
		}
		if !refPattern.MatchString(name) || reserved(name) {
			return p.wrong(values.lines[name], "values."+name, "invalid.seed_name", nil)
		}
		p.file.Values[name] = values.values[name]
	}
	return nil
}

func reserved(name string) bool { return slices.Contains([]string{today, now, run, Anonymous}, name) }

func (p *parser) wrong(line int, name, key string, args map[string]any) *Problem {
	if args == nil {
		args = map[string]any{}
	}
	args["Member"] = name
	return &Problem{Line: max(line, 1), Step: p.step, Key: key, Args: args}
}

func (p *parser) checkMembers(m mapping, known []string) error {
	for _, name := range m.names {
		if !slices.Contains(known, name) {
			return p.wrong(m.lines[name], name, "invalid.seed_unknown", map[string]any{"Known": strings.Join(known, ", ")})
		}
	}
	return nil
}

func (p *parser) addStep(value any, line int) error {
	m, ok := value.(mapping)
	p.step = "step" + strconv.Itoa(len(p.file.Steps)+1)
	if !ok {
		return p.wrong(line, p.step, "invalid.seed_type", nil)
	}
	s := Step{ID: p.step, Line: max(line, 1)}
	if id, given := m.values["id"]; given {
		if s.ID, _ = id.(string); !stepID.MatchString(s.ID) || reserved(s.ID) {
			return p.wrong(m.lines["id"], "id", "invalid.seed_name", nil)
		}
	}
	p.step = s.ID
	if p.known[s.ID] {
		return p.wrong(line, "id", "invalid.seed_twice", map[string]any{"Name": s.ID})
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
	given, _ := m.values["request"].(string)
	line := m.lines["request"]
	if line == 0 {
		line = s.Line
	}
	method, path, _ := strings.Cut(strings.TrimSpace(given), " ")
	if path = strings.TrimSpace(path); !slices.Contains(methods, method) || path == "" {
		return p.wrong(line, "request", "invalid.seed_request", nil)
	}
	t, err := p.text(path, line, "request")
	if err != nil {
		return err
	}
	if strings.ContainsAny(path, "?#") {
		return p.wrong(line, "request", "invalid.seed_query", nil)
	}
	var filled strings.Builder // as if each reference were an ordinary segment
	for _, one := range t.parts {
		if one.ref != nil {
			filled.WriteByte('0')
		}
		filled.WriteString(one.literal)
	}
	if !ValidPath(filled.String()) {
		return p.wrong(line, "request", "invalid.seed_path", nil)
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

func (p *parser) readAs(s *Step, m mapping) error {
	given, ok := m.values["as"]
	if !ok || given == nil {
		return nil
	}
	source, ok := given.(string)
	if !ok || strings.TrimSpace(source) == "" {
		return p.wrong(m.lines["as"], "as", "invalid.seed_type", nil)
	}
	var err error
	s.As, err = p.text(source, m.lines["as"], "as")
	p.file.used[source] = true // if it is the id of a step
	return err
}

// readQuery reads the query and the headers.
func (p *parser) readQuery(s *Step, m mapping) error {
	for _, of := range []struct {
		name string
		to   *any
	}{{"query", &s.Query}, {"headers", &s.Headers}} {
		given, ok := m.values[of.name]
		if !ok {
			continue
		}
		members, ok := given.(mapping)
		if !ok {
			return p.wrong(m.lines[of.name], of.name, "invalid.seed_type", nil)
		}
		texts := mapping{values: map[string]any{}}
		for _, name := range members.names {
			if of.name == "headers" {
				at := slices.IndexFunc(Headers, func(known string) bool { return strings.EqualFold(known, name) })
				if at < 0 {
					return p.wrong(members.lines[name], "headers", "invalid.seed_header", map[string]any{"Known": strings.Join(Headers, ", ")})
				}
			}
			source, ok := scalarText(members.values[name])
			if !ok {
				return p.wrong(members.lines[name], of.name+"."+name, "invalid.seed_type", nil)
			}
			t, err := p.text(source, members.lines[name], of.name+"."+name)
			if err != nil {
				return err
			}
			texts.names = append(texts.names, name)
			texts.values[name] = t
		}
		*of.to = texts
	}
	return nil
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
	line := m.lines["body"]
	body, given := m.values["body"]
	file, uploads := m.values["file"]
	switch {
	case given && uploads:
		return p.wrong(m.lines["file"], "file", "invalid.seed_body", nil)
	case given:
		s.HasBody = true
		s.Body, err = p.template(body, line, "body")
		return err
	case !uploads:
		return nil
	}
	members, ok := file.(mapping)
	line = m.lines["file"]
	if !ok {
		return p.wrong(line, "file", "invalid.seed_type", nil)
	}
	if err := p.checkMembers(members, []string{"name", "content"}); err != nil {
		return err
	}
	name, named := members.values["name"].(string)
	content, ok := contentOf(members.values["content"])
	if !named || !ok {
		return p.wrong(line, "file", "invalid.seed_file", nil)
	}
	t, err := p.text(name, line, "file.name")
	s.Upload = &upload{Name: t, Content: content}
	return err
}

func (p *parser) readExpect(s *Step, m mapping) (err error) {
	given, ok := m.values["expect"]
	if !ok {
		return nil
	}
	line := m.lines["expect"]
	status := given
	if members, ok := given.(mapping); ok {
		if err := p.checkMembers(members, []string{"status", "body"}); err != nil {
			return err
		}
		if body, ok := members.values["body"]; ok {
			s.Expect.HasAny = true
			if s.Expect.Body, err = p.template(body, line, "expect.body"); err != nil {
				return err
			}
		}
		if status, ok = members.values["status"]; !ok {
			return nil
		}
	}
	n, ok := status.(int64)
	if !ok || n < 100 || n > 599 {
		return p.wrong(line, "expect", "invalid.seed_expect", nil)
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
	given, ok := m.values["match"]
	if !ok {
		return nil
	}
	line := m.lines["match"]
	members, ok := given.(mapping)
	if !ok || len(members.names) > maxMatches {
		return p.wrong(line, "match", "invalid.seed_match", nil)
	}
	for _, name := range members.names {
		source, ok := members.values[name].(string)
		pattern, err := regexp.Compile(source)
		if !ok || err != nil || len(source) > maxPattern || !stepID.MatchString(name) {
			return p.wrong(members.lines[name], "match", "invalid.seed_match", nil)
		}
		s.Match = append(s.Match, match{name, pattern})
	}
	return nil
}

// text parses a text, and checks that its references name something known.
func (p *parser) text(source string, line int, member string) (text, error) {
	t, bad, ok := parseText(source)
	if !ok {
		return t, p.wrong(line, member, "invalid.seed_reference", map[string]any{"Reference": bad})
	}
	for _, ref := range t.references() {
		_, value := p.file.Values[ref.name()]
		if !value && !p.known[ref.root] && !slices.Contains([]string{today, now}, ref.root) && ref.name() != run {
			return t, p.wrong(line, member, "invalid.seed_unknown_reference", map[string]any{"Reference": ref.source})
		}
		if !value {
			p.file.used[ref.root] = true
		}
	}
	return t, nil
}

// template replaces each text in a value by its parsed form.
func (p *parser) template(value any, line int, member string) (any, error) {
	switch v := value.(type) {
	case string:
		return p.text(v, line, member)
	case list:
		all := make([]any, len(v.entries))
		for i, entry := range v.entries {
			one, err := p.template(entry, v.lines[i], member)
			if err != nil {
				return nil, err
			}
			all[i] = one
		}
		return all, nil
	case mapping:
		all := mapping{names: v.names, values: make(map[string]any, len(v.values))}
		for _, name := range v.names {
			one, err := p.template(v.values[name], v.lines[name], member)
			if err != nil {
				return nil, err
			}
			all.values[name] = one
		}
		return all, nil
	case []byte:
		return nil, p.wrong(line, member, "invalid.seed_type", nil)
	}
	return value, nil
}

// escape returns a value for a segment of a path. ok is false for what would change the path's shape.
func escape(value string) (segment string, ok bool) {
	if value == "" || value == "." || value == ".." || strings.ContainsAny(value, "/\\\x00\r\n") {
		return "", false
	}
	return url.PathEscape(value), true
}
