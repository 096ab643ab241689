package generate_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kontor/server/client/generate"
	"kontor/server/servertest"
)

var update = flag.Bool("update", false, "write the generated files")

// TestClients_AreGenerated compares the generated files of both clients with the API document of the server.
func TestClients_AreGenerated(t *testing.T) {
	document := apiDocument(t)
	for directory, write := range map[string]func([]byte) (map[string][]byte, error){
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

// apiDocument returns the document of /openapi.json.
func apiDocument(t *testing.T) []byte {
	t.Helper()
	document, err := servertest.Start(t).Document()
	if err != nil {
		t.Fatal(err)
	}
	data, err := document.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// small returns a document with one operation and further schemas.
func small(operation, schemas string) []byte {
	return []byte(`{"paths":{"/v1/things/{id}":{"post":{"operationId":"things.make","summary":"Make a thing.","description":"",` + operation +
		`}}},"components":{"schemas":{"Thing":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]},` + schemas +
		`"ErrorCode":{"type":"string","enum":["things.thing_not_found"]}}}}`)
}

const done = `"responses":{"200":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Thing"}}}}}`

// Unsupported constructs must not become code that does something else.
func TestGenerators_RejectWhatTheyDoNotSupport(t *testing.T) {
	union := `"anyOf":[{"type":"string"},{"type":"integer"}]`
	for name, c := range map[string]struct{ operation, schemas, want string }{
		"good":                     {done, "", ""},
		"a union":                  {done, `"Bad":{"type":"object","properties":{"x":{` + union + `}}},`, "schema Bad: x: an unsupported union"},
		"an object without a name": {done, `"Bad":{"type":"object","properties":{"x":{"type":"object","properties":{}}}},`, "an object without a name"},
		"a named number":           {done, `"Bad":{"type":"integer"},`, "neither an object nor an enumeration"},
		"an object in a query":     {done + `,"parameters":[{"name":"x","in":"query","schema":{"type":"object","additionalProperties":true}}]`, "", "parameter x"},
		"a cookie":                 {done + `,"parameters":[{"name":"x","in":"cookie","schema":{"type":"string"}}]`, "", "unsupported place cookie"},
		"a body without a schema":  {done + `,"requestBody":{"content":{"application/json":{"schema":{"type":"string"}}}}`, "", "no named schema"},
		"no answer":                {`"responses":{"default":{}}`, "", "no successful answer"},
		"an empty answer":          {`"responses":{"204":{}}`, "", "neither a body nor a redirect"},
		"two members of one name":  {done, `"Bad":{"type":"object","properties":{"user_id":{"type":"string"},"userId":{"type":"string"}}},`, "have the same name in Go"},
	} {
		_, err := generate.Go(small(c.operation, c.schemas))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	for _, broken := range []string{"", "[]", `{"paths":[]}`, `{"paths":{"/":{"get":7}}}`} {
		if _, err := generate.TypeScript([]byte(broken)); err == nil {
			t.Errorf("%q was accepted", broken)
		}
	}
}
