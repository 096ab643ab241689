package generate_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/server/client/generate"
	"kontor/server/openapi"
	"kontor/server/servertest"
)

var update = flag.Bool("update", false, "write the generated files")

// TestClients_AreGenerated compares the generated files of both clients with the API document of the server.
func TestClients_AreGenerated(t *testing.T) {
	document, err := servertest.Start(t).Document()
	if err != nil {
		t.Fatal(err)
	}
	for directory, write := range map[string]func(*openapi.Document) (map[string][]byte, error){
		"..": generate.Go, "../../../web/client/dist": generate.TypeScript,
	} {
		files, err := write(document)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			name = filepath.Join(directory, name)
			if *update {
				if err := os.WriteFile(name, want, 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s differs from what the API document says (%v): run make clients", name, err)
			}
		}
	}
}

// small returns a document with one operation that a case changes, and with a schema of its own.
func small(change func(o *openapi.Operation), bad *openapi.Schema) *openapi.Document {
	thing := &openapi.Schema{Type: "object", Properties: openapi.Map[*openapi.Schema]{{Name: "id", Value: &openapi.Schema{Type: "string"}}}, Required: []string{"id"}}
	reference := &openapi.MediaType{Schema: &openapi.Schema{Ref: "#/components/schemas/Thing"}}
	make := &openapi.Operation{OperationID: "things.make", Summary: "Make a thing.", Responses: openapi.Map[*openapi.Response]{
		{Name: "200", Value: &openapi.Response{Content: openapi.Map[*openapi.MediaType]{{Name: "application/json", Value: reference}}}},
	}}
	d := &openapi.Document{Paths: openapi.Map[*openapi.PathItem]{{Name: "/v1/things/{id}", Value: &openapi.PathItem{Post: make}}}}
	d.Components.Schemas = openapi.Map[*openapi.Schema]{{Name: "Thing", Value: thing}, {Name: "ErrorCode", Value: &openapi.Schema{Type: "string", Enum: []any{"things.thing_not_found"}}}}
	if change != nil {
		change(make)
	}
	if bad != nil {
		d.Components.Schemas.Set("Bad", bad)
	}
	return d
}

// Unsupported constructs must not become code that does something else.
func TestGenerators_RejectWhatTheyDoNotSupport(t *testing.T) {
	text := &openapi.Schema{Type: "string"}
	parameter := func(in string, s *openapi.Schema) func(o *openapi.Operation) {
		return func(o *openapi.Operation) { o.Parameters = []*openapi.Parameter{{Name: "x", In: in, Schema: s}} }
	}
	answers := func(status string) func(o *openapi.Operation) {
		return func(o *openapi.Operation) {
			o.Responses = openapi.Map[*openapi.Response]{{Name: status, Value: &openapi.Response{}}}
		}
	}
	body := func(o *openapi.Operation) {
		o.RequestBody = &openapi.RequestBody{Content: openapi.Map[*openapi.MediaType]{{Name: "application/json", Value: &openapi.MediaType{Schema: text}}}}
	}
	member := func(s *openapi.Schema) *openapi.Schema {
		return &openapi.Schema{Type: "object", Properties: openapi.Map[*openapi.Schema]{{Name: "x", Value: s}}}
	}
	twice := &openapi.Schema{Type: "object", Properties: openapi.Map[*openapi.Schema]{{Name: "user_id", Value: text}, {Name: "userId", Value: text}}}
	for name, c := range map[string]struct {
		change func(o *openapi.Operation)
		bad    *openapi.Schema
		want   string
	}{
		"good":                     {nil, nil, ""},
		"a union":                  {nil, member(&openapi.Schema{AnyOf: []*openapi.Schema{text, {Type: "integer"}}}), "schema Bad: x: an unsupported union"},
		"an object without a name": {nil, member(&openapi.Schema{Type: "object"}), "an object without a name"},
		"a named number":           {nil, &openapi.Schema{Type: "integer"}, "neither an object nor an enumeration"},
		"an object in a query":     {parameter("query", &openapi.Schema{Type: "object", AdditionalProperties: true}), nil, "parameter x"},
		"a cookie":                 {parameter("cookie", text), nil, "unsupported place cookie"},
		"a body without a schema":  {body, nil, "no named schema"},
		"no answer":                {answers("default"), nil, "no successful answer"},
		"an empty answer":          {answers("204"), nil, "neither a body nor a redirect"},
		"two members of one name":  {nil, twice, "have the same name in Go"},
	} {
		_, err := generate.Go(small(c.change, c.bad))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
