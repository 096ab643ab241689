package openapi_test

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/openapi"
	"kontor/server/ratelimit"
	"kontor/server/servertest"
)

var (
	update = flag.Bool("update", false, "write the golden file anew")
	output = flag.String("document", "", "write the document to this file, for other linters")
)

const golden = "../../testdata/operations.golden"

// document returns the document of the whole API.
func document(t *testing.T) []byte {
	t.Helper()
	built, err := servertest.Start(t).Document()
	if err != nil {
		t.Errorf("the document is incomplete: %v", err)
	}
	text, err := built.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// load parses and validates the document with an independent library.
func load(t *testing.T) *openapi3.T {
	t.Helper()
	loaded, err := openapi3.NewLoader().LoadFromData(document(t))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func TestDocument_IsValidAndReproducible(t *testing.T) {
	text := document(t)
	if *output != "" {
		if err := os.WriteFile(*output, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(document(t)) != string(text) {
		t.Error("two documents of the same table differ")
	}
	if err := load(t).Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
}

func TestDocument_HasTheGoldenOperations(t *testing.T) {
	var b strings.Builder
	loaded := load(t)
	for _, e := range servertest.Start(t).Table() {
		operation := loaded.Paths.Value(e.Path).GetOperation(e.Method)
		if operation == nil {
			t.Fatalf("%s is not in the document", e.Key())
		}
		fmt.Fprintf(&b, "%-32s %-6s %-58s %-18s %s\n", operation.OperationID, e.Method, e.Path, strings.Join(operation.Tags, ","),
			strings.Join(statuses(operation), " "))
	}
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the operations have changed; look at the difference and run the test with -update:\n%s", b.String())
	}
}

// statuses returns the documented statuses of an operation, those of errors from its list of codes.
func statuses(operation *openapi3.Operation) []string {
	var all []string
	for status := range operation.Responses.Map() {
		if status != "default" {
			all = append(all, status)
		}
	}
	listed, _ := operation.Extensions["x-kontor-errors"].(map[string]any)
	all = slices.AppendSeq(all, maps.Keys(listed))
	slices.Sort(all)
	return slices.Compact(all)
}

func TestDocument_DescribesEveryOperation(t *testing.T) {
	loaded := load(t)
	for path, item := range loaded.Paths.Map() {
		for method, operation := range item.Operations() {
			t.Run(method+" "+path, func(t *testing.T) {
				if operation.OperationID == "" || operation.Summary == "" || operation.Description == "" || len(operation.Tags) != 1 || operation.Security == nil {
					t.Error("a name, a summary, a description, a tag or the security is missing")
				}
				for _, p := range operation.Parameters {
					if p.Value.Description == "" || p.Value.Schema == nil || p.Value.Example == nil {
						t.Errorf("parameter %s lacks a description, a schema or an example", p.Value.Name)
					}
				}
				if body := operation.RequestBody; body != nil {
					complete(t, "request", body.Value.Content)
				}
				for status, response := range operation.Responses.Map() {
					if status != "304" && status != "303" {
						complete(t, status, response.Value.Content)
					}
				}
				if listed := statuses(operation); !slices.Contains(listed, "500") {
					t.Errorf("the statuses %v lack that of errors in the service", listed)
				}
			})
		}
	}
}

// complete checks that every media type has a schema and an example. Files have no example.
func complete(t *testing.T, what string, content openapi3.Content) {
	t.Helper()
	if len(content) == 0 {
		t.Errorf("%s has no content", what)
	}
	for media, body := range content {
		if body.Schema == nil {
			t.Errorf("%s has no schema for %s", what, media)
		}
		text := media == "application/json" || strings.HasPrefix(media, "text/")
		if text && body.Example == nil && len(body.Examples) == 0 {
			t.Errorf("%s has no example for %s", what, media)
		}
	}
}

func TestDocument_NamesTheHeadersOfAnswers(t *testing.T) {
	loaded := load(t)
	for _, c := range []struct {
		method, path string
		status       int
		header       string
	}{
		{"GET", "/v1/payers/{id}", 200, "ETag"},
		{"GET", "/v1/avatars/{file}", 200, "ETag"},
		{"POST", "/v1/payers", 201, "Idempotency-Replayed"},
	} {
		answer := loaded.Paths.Value(c.path).GetOperation(c.method).Responses.Status(c.status)
		if answer == nil || answer.Value.Headers[c.header] == nil {
			t.Errorf("%s %s: %d has no %s", c.method, c.path, c.status, c.header)
		}
	}
}

func TestDocument_RequiresOnlyMandatoryMembers(t *testing.T) {
	loaded := load(t)
	for path, method := range map[string]string{
		"/v1/customers/{customer_id}/tasks/{id}/assignees/{assignee_id}": "PATCH",
		"/v1/chats/{id}/participants":                                    "POST",
	} {
		if needed := loaded.Paths.Value(path).GetOperation(method).RequestBody.Value.Content["application/json"].Schema.Value.Required; len(needed) > 0 {
			t.Errorf("%s %s requires %v", method, path, needed)
		}
	}
}

// Generated clients name their types after the schemas.
func TestDocument_NamesSchemasOfUsersAfterThem(t *testing.T) {
	schemas := load(t).Components.Schemas
	for _, name := range []string{"User", "UserCredential", "UserPage", "UserRegisterInput"} {
		if schemas[name] == nil {
			t.Errorf("there is no schema %s", name)
		}
	}
	for name := range schemas {
		if strings.HasPrefix(name, "Directory") {
			t.Errorf("the schema %s has the name of a package", name)
		}
	}
}

// Generators make a type of each component, and a field of each member: names that differ in case or in underscores only would
// be the same.
func TestDocument_HasNamesForGenerators(t *testing.T) {
	plain := func(name string) string {
		return strings.ToLower(strings.NewReplacer("_", "", ".", "", "-", "").Replace(name))
	}
	types := map[string]string{}
	for name, schema := range load(t).Components.Schemas {
		if other, twice := types[plain(name)]; twice {
			t.Errorf("the schemas %s and %s have one name", name, other)
		}
		types[plain(name)] = name
		members := map[string]string{}
		for member, value := range schema.Value.Properties {
			if other, twice := members[plain(member)]; twice {
				t.Errorf("the members %s and %s of %s have one name", member, other, name)
			}
			members[plain(member)] = member
			for _, part := range append(openapi3.SchemaRefs{value, value.Value.Items}, value.Value.AnyOf...) {
				if part != nil && part.Ref == "" && len(part.Value.Enum) > 0 {
					t.Errorf("the values of %s in %s have no name", member, name)
				}
			}
		}
	}
}

// A client needs one case for all errors, and an array for the rows of a list.
func TestDocument_HasOneErrorAndPlainPages(t *testing.T) {
	loaded := load(t)
	if got := slices.Sorted(maps.Keys(loaded.Components.Responses)); !slices.Equal(got, []string{"Error", "NotModified"}) {
		t.Errorf("the responses are %v, want Error and NotModified", got)
	}
	for path, item := range loaded.Paths.Map() {
		for method, operation := range item.Operations() {
			ofStandard := slices.Contains(operation.Tags, "AuthZEN") // which has a message for an error
			if got := operation.Responses.Default(); got == nil || !ofStandard && got.Ref != "#/components/responses/Error" {
				t.Errorf("%s %s: the default response is not Error", method, path)
			}
		}
	}
	stacked := 0
	for name, schema := range loaded.Components.Schemas {
		data := schema.Value.Properties["data"]
		switch {
		case strings.HasSuffix(name, "StackedPage"):
			stacked++
			if !data.Value.Type.Is("object") {
				t.Errorf("data of %s is no object", name)
			}
		case strings.HasSuffix(name, "Page") && data != nil && !data.Value.Type.Is("array"):
			t.Errorf("data of %s is no array", name)
		}
	}
	if codes := loaded.Components.Schemas["ErrorCode"]; stacked == 0 || len(codes.Value.Enum) < 50 {
		t.Errorf("%d schemas of stacked pages, %d codes", stacked, len(codes.Value.Enum))
	}
}

func TestServeDocument_IsCompressedAndConditional(t *testing.T) {
	s := servertest.Start(t)
	plain := s.Anonymous().Do("GET", "/openapi.json", nil).Expect(t, http.StatusOK)
	packed := s.Anonymous().With("Accept-Encoding", "gzip").Do("GET", "/openapi.json", nil).Expect(t, http.StatusOK)
	if packed.Header.Get("Content-Encoding") != "gzip" || len(packed.Body) > len(plain.Body)/4 {
		t.Errorf("compressed: %q, %d of %d bytes", packed.Header.Get("Content-Encoding"), len(packed.Body), len(plain.Body))
	}
	again := s.Anonymous().With("If-None-Match", plain.Header.Get("ETag")).Do("GET", "/openapi.json", nil)
	if again.Status != http.StatusNotModified || again.Body != "" {
		t.Errorf("got %d and %d bytes, want 304 without a body", again.Status, len(again.Body))
	}
}

// silent has a JSON form of its own and does not describe it.
type silent struct{}

// MarshalJSON returns a number.
func (silent) MarshalJSON() ([]byte, error) { return []byte("1"), nil }

// misleading has an example that is no object.
type misleading struct {
	Options jsontext.Value `json:"options" type:"object" example:"kontor.example"`
}

func TestBuild_ReportsIncompleteRows(t *testing.T) {
	row := func(name, path string, h endpoint.Handler) endpoint.Endpoint {
		return endpoint.Endpoint{Name: name, Method: "GET", Path: path, Access: access.Public, Limit: ratelimit.None, Tag: "Things", Summary: "Test.", Handle: h}
	}
	_, err := openapi.Build(openapi.Options{Text: func(key string) string { return key }, Health: struct{}{}, Table: []endpoint.Endpoint{
		row("a", "/a/{thing}", endpoint.Raw([]string{"text/plain"}, nil)),
		{Name: "b", Method: "POST", Path: "/b", Access: access.Public, Tag: "Things", Handle: endpoint.Handler{Status: 200}, Doc: endpoint.Doc{Headers: []string{"X-Nothing"},
			Answers: []endpoint.Answer{{Status: 200, Body: silent{}}, {Status: 202, Body: misleading{}}}}},
	}})
	for _, gap := range []string{`tag "Things"`, "path parameter thing", "a reads a body", "do not describe its answer", "writes itself", "X-Nothing", "no JSON object"} {
		if err == nil || !strings.Contains(err.Error(), gap) {
			t.Errorf("got %v, want it to name %s", err, gap)
		}
	}
}
