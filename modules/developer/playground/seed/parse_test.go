package seed_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kontor/modules/developer/playground/seed"
)

func TestParse_NamesTheMistake(t *testing.T) {
	laughs := "values: {a: 1}\nx0: &x0 [1,1,1,1,1,1,1,1,1,1]\n"
	for i := 1; i < 12; i++ {
		laughs += fmt.Sprintf("x%d: &x%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*x%d,", i-1), 10), ","))
	}
	for name, c := range map[string]struct {
		file, key string
		line      int
	}{
		"nothing":              {"", "empty", 1},
		"a comment":            {"# nothing", "empty", 1},
		"no steps":             {"steps: []", "empty", 1},
		"a text":               {"hello", "form", 1},
		"two documents":        {"- request: GET /v1/users\n---\n- request: GET /v1/users", "documents", 2},
		"no YAML":              {"steps:\n  - request: 'GET", "syntax", 2},
		"unknown member":       {"steps:\n  - request: GET /v1/users\n    bodi: {}", "unknown", 3},
		"the same member":      {"steps:\n  - request: GET /v1/users\n    request: GET /v1/users", "twice", 3},
		"the same id":          {"- {id: a, request: GET /v1/users}\n- {id: a, request: GET /v1/users}", "twice", 2},
		"a taken id":           {"- {id: now, request: GET /v1/users}", "name", 1},
		"an id with a dot":     {"- {id: a.b, request: GET /v1/users}", "name", 1},
		"no request":           {"- {id: a}", "request", 1},
		"a strange method":     {"- {request: TRACE /v1/users}", "request", 1},
		"lower case":           {"- {request: get /v1/users}", "request", 1},
		"another host":         {"- {request: GET http://bank.example/v1/users}", "path", 1},
		"another host, too":    {"- {request: GET //bank.example/v1/users}", "path", 1},
		"upwards":              {"- {request: GET /v1/users/../sandbox/clock}", "path", 1},
		"encoded":              {"- {request: GET /v1/%73andbox/clock}", "path", 1},
		"a second line":        {`- {request: "GET /v1/users\r\nX-Evil: 1"}`, "path", 1},
		"the sandbox":          {"- {request: POST /v1/sandbox/seed}", "path", 1},
		"the sandbox, too":     {"- {request: POST /V1/Sandbox/reset}", "path", 1},
		"a stream":             {"- {request: GET /v1/notifications/sse}", "path", 1},
		"a query":              {"- request: GET /v1/users?limit=1", "query", 1},
		"a later step":         {"- {request: 'GET /v1/users/${b.id}'}\n- {id: b, request: GET /v1/users}", "unknown_reference", 1},
		"itself":               {"- {id: b, request: 'GET /v1/users/${b.id}'}", "unknown_reference", 1},
		"unknown in body":      {"- request: POST /v1/users\n  body:\n    name:\n      - ok\n      - '${nobody.id}'", "unknown_reference", 5},
		"unknown in query":     {"- request: GET /v1/users\n  query: {limit: '${x}'}", "unknown_reference", 2},
		"unknown in expect":    {"- request: GET /v1/users\n  expect: {body: {id: '${x.id}'}}", "unknown_reference", 2},
		"malformed":            {"- request: GET /v1/users\n  body: '${today+30y}'", "reference", 2},
		"open":                 {"- request: GET /v1/users\n  body: '${today'", "reference", 2},
		"a header":             {"- request: GET /v1/users\n  headers: {Authorization: x}", "header", 2},
		"host":                 {"- request: GET /v1/users\n  headers: {Host: x}", "header", 2},
		"body and file":        {"- {request: POST /v1/files, body: 1, file: {name: a, content: aGk=}}", "body", 1},
		"no base64":            {"- {request: POST /v1/files, file: {name: a, content: '%'}}", "file", 1},
		"a status":             {"- {request: GET /v1/users, expect: 1000}", "expect", 1},
		"a pattern":            {"- {request: GET /v1/users, match: {code: '['}}", "match", 1},
		"a tag":                {"- {request: GET /v1/users, body: !!python/object x}", "type", 1},
		"billion laughs":       {laughs, "too_large", 0},
		"an alias in itself":   {"- {request: GET /v1/users, body: &a [*a]}", "depth", 0},
		"a merge":              {"- &a {request: GET /v1/users}\n- <<: *a", "member", 2},
		"depth":                {"- {request: GET /v1/users, body: " + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}", "depth", 1},
		"too many steps":       {strings.Repeat("- {request: GET /v1/users}\n", seed.MaxSteps+1), "steps", seed.MaxSteps + 1},
		"too large":            {"# " + strings.Repeat("x", seed.MaxBytes), "bytes", 1},
		"a date that is none":  {"start: tomorrow\nsteps: [{request: GET /v1/users}]", "invalid.datetime", 1},
		"a value of two parts": {"values: {a: [1]}\nsteps: [{request: GET /v1/users}]", "type", 1},
	} {
		file, err := seed.Parse([]byte(c.file))
		p, ok := errors.AsType[*seed.Problem](err)
		if !ok {
			t.Errorf("%s: got %v and error %v", name, file, err)
			continue
		}
		if key := strings.TrimPrefix(p.Key, "invalid.seed_"); key != c.key || c.line > 0 && p.Line != c.line {
			t.Errorf("%s: got %v, want %s in line %d", name, p, c.key, c.line)
		}
	}
}

func TestParse_ReadsYAMLAndJSON(t *testing.T) {
	for _, file := range []string{
		"- {id: a, request: GET /v1/users}\n- {request: 'GET /v1/users/${a.data.0.id}', query: {limit: 2}, expect: 200}",
		`[{"id":"a","request":"GET /v1/users"},{"request":"GET /v1/users/${a.data.0.id}","query":{"limit":2},"expect":200}]`,
		"{\"steps\":\t[{\"id\":\"a\",\"request\":\"GET /v1/users\"},\n{\"request\":\"GET /v1/users/${a.data.0.id}\",\"query\":{\"limit\":2},\"expect\":200}]}",
	} {
		found, err := seed.Parse([]byte(file))
		if err != nil || len(found.Steps) != 2 || found.Steps[1].ID != "step2" || found.Steps[1].Request() != "GET /v1/users/${a.data.0.id}" || found.Steps[1].Expect.Status != 200 {
			t.Errorf("%s: got %+v, error %v", file, found, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(bank))
	f.Add([]byte(`[{"request":"GET /v1/users/${now-2h}","body":{"a":"$${x}"},"match":{"a":"[0-9]{6}"}}]`))
	f.Add([]byte("a: &a [*a, *a]\nsteps: [{<<: *a}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := seed.Parse(data)
		if err != nil {
			p, ok := errors.AsType[*seed.Problem](err)
			if !ok || p.Line < 1 || p.Key == "" {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}
		if len(file.Steps) == 0 || len(file.Steps) > seed.MaxSteps {
			t.Fatalf("%q: %d steps", data, len(file.Steps))
		}
	})
}
