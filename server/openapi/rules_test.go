package openapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/servertest"
	"kontor/store/testenv"
)

// jsonBody returns the schema and the example of an operation's JSON body, nil without one.
func jsonBody(operation *openapi3.Operation) (*openapi3.Schema, map[string]any) {
	if operation.RequestBody == nil {
		return nil, nil
	}
	content := operation.RequestBody.Value.Content.Get("application/json")
	if content == nil {
		return nil, nil
	}
	example, _ := content.Example.(map[string]any)
	return content.Schema.Value, example
}

// noon is the time at which the rules of inputs apply to the examples.
func noon() context.Context {
	return endpoint.With(context.Background(), &endpoint.Info{Now: time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)})
}

func problemsOf(t *testing.T, row endpoint.Endpoint, body map[string]any) map[string]string {
	t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for field, problem := range row.Handle.Problems(noon(), string(text)).All {
		found[field] = problem.Key
	}
	return found
}

// Each example of a body is one that the rules of the operation accept.
func TestDocument_HasExamplesThatTheRulesAccept(t *testing.T) {
	loaded := load(t)
	for _, row := range servertest.Start(t).Table() {
		if _, example := jsonBody(loaded.Paths.Value(row.Path).GetOperation(row.Method)); example != nil {
			if found := problemsOf(t, row, example); len(found) > 0 {
				t.Errorf("%s: the rules reject the example %v: %v", row.Name, example, found)
			}
		}
	}
}

// A member that rejects letters other than those of ASCII says so by its pattern, its format or its values.
func TestDocument_HasPatternsForMembersOfASCII(t *testing.T) {
	loaded := load(t)
	for _, row := range servertest.Start(t).Table() {
		schema, example := jsonBody(loaded.Paths.Value(row.Path).GetOperation(row.Method))
		if schema == nil {
			continue
		}
		for name, member := range schema.Properties {
			s := member.Value
			if !s.Type.Includes("string") || s.Pattern != "" || len(s.Enum) > 0 || slices.Contains([]string{"uuid", "date", "date-time", "email"}, s.Format) {
				continue
			}
			plain, _ := example[name].(string)
			body := map[string]any{}
			for other, value := range example {
				body[other] = value
			}
			body[name] = plain + "é"
			if found := problemsOf(t, row, body)[name]; found != "" && found != "invalid.uuid" { // an id of one record type, any text of another
				t.Errorf("%s: %s rejects %q (%s) and has no pattern", row.Name, name, body[name], found)
			}
		}
	}
}

// A required text that rejects a blank one says so by its pattern, whatever the rule calls it.
func TestDocument_HasPatternsForMembersThatMustNotBeBlank(t *testing.T) {
	loaded := load(t)
	for _, row := range servertest.Start(t).Table() {
		schema, example := jsonBody(loaded.Paths.Value(row.Path).GetOperation(row.Method))
		if schema == nil {
			continue
		}
		for _, name := range schema.Required {
			s := schema.Properties[name].Value
			if !s.Type.Includes("string") || s.Pattern != "" || len(s.Enum) > 0 || s.Format != "" {
				continue
			}
			body := maps.Clone(example)
			body[name] = " "
			if found := problemsOf(t, row, body)[name]; strings.HasSuffix(found, "required") {
				t.Errorf("%s: %s rejects a blank (%s) and has no pattern", row.Name, name, found)
			}
		}
	}
}

// A text with white space at its ends, which a rule accepts because it removes it, fits the pattern, too.
func TestDocument_PatternsFitWhatTheRulesTrim(t *testing.T) {
	loaded := load(t)
	trimmed := 0
	for _, row := range servertest.Start(t).Table() {
		schema, example := jsonBody(loaded.Paths.Value(row.Path).GetOperation(row.Method))
		if schema == nil {
			continue
		}
		for name, member := range schema.Properties {
			plain, given := example[name].(string)
			if member.Value.Pattern == "" || !given {
				continue
			}
			body := maps.Clone(example)
			body[name] = "\n" + plain + "\n"
			if problemsOf(t, row, body)[name] != "" {
				continue
			}
			trimmed++
			if !goPattern(member.Value.Pattern).MatchString("\n" + plain + "\n") {
				t.Errorf("%s: %s accepts %q, which does not fit %s", row.Name, name, body[name], member.Value.Pattern)
			}
		}
	}
	if trimmed == 0 {
		t.Error("no member is trimmed")
	}
}

// No operation documents null for a member that rejects it, nor another length than that of its rule.
func TestDocument_SaysWhatTheRulesSay(t *testing.T) {
	loaded := load(t)
	for _, c := range []struct {
		path, method, member string
		null                 bool
		maxLength            uint64
	}{
		{"/v1/customers/{id}", "PUT", "last_name", false, 100},
		{"/v1/customers/{id}", "PUT", "email", false, 0},
		{"/v1/customers/{id}", "PUT", "phone", true, 0},
		{"/v1/customers/{customer_id}/tasks/{id}", "PUT", "title", false, 200},
		{"/v1/customers/{customer_id}/tasks/{id}", "PUT", "category", false, 0},
		{"/v1/users/{id}/reauthenticate", "POST", "token", false, 128},
	} {
		operation := loaded.Paths.Value(c.path).GetOperation(c.method)
		if operation == nil {
			t.Errorf("there is no operation %s %s", c.method, c.path)
			continue
		}
		schema, _ := jsonBody(operation)
		member := schema.Properties[c.member].Value
		null := member.PermitsNull() || member.Type.Includes("null") || len(member.AnyOf) > 0
		if null != c.null {
			t.Errorf("%s %s: %s allows null: %v", c.method, c.path, c.member, null)
		}
		if c.maxLength > 0 && (member.MaxLength == nil || *member.MaxLength != c.maxLength) {
			t.Errorf("%s %s: %s has the length %v, want %d", c.method, c.path, c.member, member.MaxLength, c.maxLength)
		}
	}
}

// Each code belongs to an operation, or a sentence says when it is returned.
func TestDocument_ExplainsEveryCode(t *testing.T) {
	loaded := load(t)
	var described strings.Builder
	described.WriteString(loaded.Info.Description)
	listed := map[string]bool{}
	for _, item := range loaded.Paths.Map() {
		for _, operation := range item.Operations() {
			described.WriteString(operation.Description)
			codes, _ := operation.Extensions["x-kontor-errors"].(map[string]any)
			for _, ofStatus := range codes {
				for _, code := range ofStatus.([]any) {
					listed[code.(string)] = true
				}
			}
		}
	}
	for _, kind := range apierr.All() {
		sandbox := strings.HasPrefix(kind.Code, "sandbox.") // the description says so
		if !sandbox && !listed[kind.Code] && !strings.Contains(described.String(), "`"+kind.Code+"`") {
			t.Errorf("the code %s belongs to no operation and to no sentence", kind.Code)
		}
	}
}

// The frames in the examples of streams are whole.
func TestDocument_HasWholeFramesInItsExamples(t *testing.T) {
	loaded := load(t)
	frames := 0
	for path, item := range loaded.Paths.Map() {
		for method, operation := range item.Operations() {
			answer := operation.Responses.Status(200)
			if answer == nil || answer.Value.Content.Get("text/event-stream") == nil {
				continue
			}
			content := answer.Value.Content.Get("text/event-stream")
			schemas, _ := content.Extensions["x-kontor-frames"].(map[string]any)
			for frame := range strings.SplitSeq(content.Example.(string), "\n\n") {
				event, data := fieldOf(frame, "event"), fieldOf(frame, "data")
				if event == "" {
					continue
				}
				frames++
				reference, known := schemas[event].(map[string]any)
				if !known {
					t.Errorf("%s %s: the example has the unknown frame %s", method, path, event)
					continue
				}
				var value any
				if err := json.Unmarshal([]byte(data), &value); err != nil {
					t.Errorf("%s %s: %s: %v", method, path, event, err)
					continue
				}
				schema := loaded.Components.Schemas[strings.TrimPrefix(reference["$ref"].(string), "#/components/schemas/")].Value
				if err := schema.VisitJSON(value, openapi3.MultiErrors(), formats); err != nil {
					t.Errorf("%s %s: the frame %s of the example: %v", method, path, event, err)
				}
			}
		}
	}
	if frames < 4 {
		t.Errorf("found %d frames in the examples", frames)
	}
}

// fieldOf returns a field of a frame.
func fieldOf(frame, name string) string {
	for line := range strings.SplitSeq(frame, "\n") {
		if value, found := strings.CutPrefix(line, name+": "); found {
			return value
		}
	}
	return ""
}

// goPattern compiles a pattern, whose escapes are those of ECMAScript.
func goPattern(pattern string) *regexp.Regexp {
	return regexp.MustCompile(regexp.MustCompile(`\\u([0-9A-F]{4})`).ReplaceAllString(pattern, `\x{$1}`))
}

// formats are the forms of texts in examples.
var formats = openapi3.WithStringFormatValidators(map[string]openapi3.StringFormatValidator{
	"uuid":      openapi3.NewRegexpFormatValidator(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`),
	"date":      openapi3.NewRegexpFormatValidator(`^\d{4}-\d\d-\d\d$`),
	"date-time": openapi3.NewRegexpFormatValidator(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`),
	"email":     openapi3.NewRegexpFormatValidator(`^[^@]+@[^@]+$`),
})

// Each example is a value of its schema: of bodies, answers, parameters and members.
func TestDocument_HasExamplesOfTheirSchemas(t *testing.T) {
	loaded := load(t)
	loaded.OpenAPI = "3.0.3" // see openapitest
	checked := 0
	check := func(what string, schema *openapi3.SchemaRef, example any) {
		if example == nil || schema == nil {
			return
		}
		checked++
		if err := schema.Value.VisitJSON(plain(t, example), openapi3.MultiErrors(), formats); err != nil {
			t.Errorf("%s: the example %v: %v", what, example, err)
		}
	}
	for path, item := range loaded.Paths.Map() {
		for method, operation := range item.Operations() {
			at := method + " " + path
			for _, p := range operation.Parameters {
				check(at+" "+p.Value.Name, p.Value.Schema, p.Value.Example)
			}
			contents := map[string]openapi3.Content{}
			if operation.RequestBody != nil {
				contents["body"] = operation.RequestBody.Value.Content
			}
			for status, answer := range operation.Responses.Map() {
				contents[status] = answer.Value.Content
			}
			for where, content := range contents {
				for media, c := range content {
					if strings.HasPrefix(media, "application/json") {
						check(at+" "+where, c.Schema, c.Example)
					}
				}
			}
		}
	}
	for name, schema := range loaded.Components.Schemas {
		for member, of := range schema.Value.Properties {
			for _, example := range of.Value.Examples {
				check(name+"."+member, of, example)
			}
		}
	}
	if checked < 1000 {
		t.Errorf("only %d examples were checked", checked)
	}
}

// plain returns a value as JSON has it.
func plain(t *testing.T, value any) (decoded any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &decoded)
	}
	if err != nil {
		t.Fatal(err)
	}
	return decoded
}

// Ids in paths are described as ids, also those that a Raw handler reads. Other parameters of paths have an example of their own.
func TestDocument_DescribesTheIDsInPaths(t *testing.T) {
	for path, item := range load(t).Paths.Map() {
		for method, operation := range item.Operations() {
			for _, p := range operation.Parameters {
				if p.Value.In != openapi3.ParameterInPath {
					continue
				}
				isID := p.Value.Name == "id" || strings.HasSuffix(p.Value.Name, "_id")
				if format := p.Value.Schema.Value.Format; isID && format != "uuid" || format == "" && p.Value.Example == "name" {
					t.Errorf("%s %s: {%s} has the format %q and the example %v", method, path, p.Value.Name, format, p.Value.Example)
				}
			}
		}
	}
}

// patternsOf returns all patterns of the document.
func patternsOf(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	var search func(value any)
	search = func(value any) {
		switch v := value.(type) {
		case map[string]any:
			if text, ok := v["pattern"].(string); ok {
				found[text] = true
			}
			for _, member := range v {
				search(member)
			}
		case []any:
			for _, entry := range v {
				search(entry)
			}
		}
	}
	var whole any
	if err := json.Unmarshal(document(t), &whole); err != nil {
		t.Fatal(err)
	}
	search(whole)
	return found
}

// Generators copy texts of the document into source code, where U+2028 and U+2029 end a line.
func TestDocument_HasPatternsInASCII(t *testing.T) {
	patterns := patternsOf(t)
	if len(patterns) < 10 {
		t.Fatalf("found %d patterns", len(patterns))
	}
	for pattern := range patterns {
		if strings.ContainsFunc(pattern, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Errorf("%q is not in ASCII", pattern)
		}
	}
	for _, r := range string(document(t)) {
		if r == '\u2028' || r == '\u2029' || r == '\ufeff' {
			t.Fatalf("the document contains %U", r)
		}
	}
}

// Patterns are those of ECMAScript, as JSON Schema says, with the flag u.
func TestDocument_HasPatternsOfECMAScript(t *testing.T) {
	testenv.Need(t, testenv.Full)
	text, err := json.Marshal(slices.Sorted(maps.Keys(patternsOf(t))))
	if err != nil {
		t.Fatal(err)
	}
	script := exec.Command(testenv.Tool(t, "node"), "-e", `
		for (const pattern of JSON.parse(process.argv[1])) {
			try { new RegExp(pattern, 'u'); new Function('return /' + pattern.replaceAll('/', '\\/') + '/u'); } catch (error) { console.log(pattern, error.message); }
		}
		const pattern = new RegExp(JSON.parse(process.argv[1]).find((text) => text.startsWith('^') && text.includes('u2028')), 'u');
		if (!pattern.test('Zoë') || pattern.test('a\u2028b') || pattern.test('a\u202eb') || pattern.test('\ufeff')) console.log(pattern, 'does not reject line separators');`, string(text))
	if out, err := script.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// Each array of a body says how many entries it may have, and each object with free names how many members. The decoder rejects more.
func TestDocument_SaysHowManyEntriesAreAllowed(t *testing.T) {
	loaded, checked := load(t), 0
	for _, row := range servertest.Start(t).Table() {
		schema, _ := jsonBody(loaded.Paths.Value(row.Path).GetOperation(row.Method))
		if schema == nil || row.Handle.In == nil {
			continue
		}
		check := func(place, begin, end string) {
			checked++
			problems := row.Handle.Problems(noon(), begin+end)
			if text, wrong := problems.Get(place); !wrong || text.Key != "invalid.max_items" && text.Key != "invalid.max_properties" {
				t.Errorf("%s: %s takes more than the document says: %v", row.Name, place, text)
			}
		}
		eachLimit(t, row.Name, schema, "", "", "", 0, check)
	}
	if checked < 15 {
		t.Errorf("only %d limits were checked", checked)
	}
}

// eachLimit passes a body with one entry too many for each array and each object with free names: its place, and its two parts.
func eachLimit(t *testing.T, row string, s *openapi3.Schema, place, begin, end string, depth int, check func(place, begin, end string)) {
	t.Helper()
	if depth > 4 {
		return
	}
	for _, form := range slices.Concat(s.AnyOf, s.OneOf) {
		eachLimit(t, row, form.Value, place, begin, end, depth, check)
	}
	switch {
	case s.Items != nil && s.MaxItems == nil:
		t.Errorf("%s: the array %s has no maxItems", row, place)
	case s.Items != nil:
		check(place, begin+"[null"+strings.Repeat(",null", int(*s.MaxItems)), "]"+end)
		eachLimit(t, row, s.Items.Value, place+".0", begin+"[", "]"+end, depth+1, check)
	case s.AdditionalProperties.Schema != nil && s.MaxProps == nil:
		t.Errorf("%s: the object %s has no maxProperties", row, place)
	case s.AdditionalProperties.Schema != nil:
		names := ""
		for i := range *s.MaxProps + 1 {
			names += fmt.Sprintf(`,"n%d":null`, i)
		}
		check(place, begin+"{"+names[1:], "}"+end)
	}
	for name, member := range s.Properties {
		eachLimit(t, row, member.Value, strings.TrimPrefix(place+"."+name, "."), begin+`{"`+name+`":`, "}"+end, depth+1, check)
	}
}

// checkedByServices are texts whose length depends on more than the body, so that the rules of the input do not check it.
var checkedByServices = []string{
	"users.register password", "users.register display_name", "users.complete_recovery credential_value", "users.complete_recovery password",
	"users.password password", "users.invitations.accept password", "rbac.grants.create rec_id",
}

// A text that is longer than the document says is rejected, and the error names it.
func TestDocument_SaysHowLongTextsMayBe(t *testing.T) {
	loaded, checked := load(t), 0
	for _, row := range servertest.Start(t).Table() {
		schema, _ := jsonBody(loaded.Paths.Value(row.Path).GetOperation(row.Method))
		if schema == nil || row.Handle.In == nil {
			continue
		}
		for name, member := range schema.Properties {
			limit := member.Value.MaxLength
			if limit == nil || slices.Contains(checkedByServices, row.Name+" "+name) {
				continue
			}
			checked++
			if _, wrong := problemsOf(t, row, map[string]any{name: strings.Repeat("a", int(*limit)+1)})[name]; !wrong {
				t.Errorf("%s: %s takes more than the %d characters of the document", row.Name, name, *limit)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d texts were checked", checked)
	}
}
