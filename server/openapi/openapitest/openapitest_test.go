package openapitest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/openapi"
	"kontor/server/ratelimit"
)

type thing struct {
	ID   string  `json:"id"`
	Note *string `json:"note"`
}

type input struct {
	ID string `path:"id"`
}

// note names its author.
type note struct {
	Author string `json:"author"`
}

func (n note) EachUser(add func(id string)) { add(n.Author) }

// health is what answers while the service shuts down.
type health struct {
	OverallStatus string `json:"overall_status"`
}

var table = []endpoint.Endpoint{{Name: "things.get", Method: "GET", Path: "/v1/things/{id}", Access: access.Public, Limit: ratelimit.None, Tag: "Things", Summary: "Test.",
	Faults: []apierr.Kind{apierr.TaskNotFound},
	Handle: endpoint.JSON(http.StatusOK, func(context.Context, input) (thing, error) { return thing{}, nil })},
	{Name: "notes.get", Method: "GET", Path: "/v1/notes/{id}", Access: access.Public, Limit: ratelimit.None, Tag: "Things", Summary: "Test.",
		Handle: endpoint.JSON(http.StatusOK, func(context.Context, input) (note, error) { return note{}, nil })}}

type served struct{}

func (served) Table() []endpoint.Endpoint { return table }

func (served) Document() (*openapi.Document, error) {
	document, err := openapi.Build(openapi.Options{Table: table, Health: health{}, Text: func(key string) string { return key }})
	// The types of this test have names of their own package.
	document.Components.Schemas.Set("Health", &openapi.Schema{Type: "object", Required: []string{"overall_status"},
		Properties: openapi.Map[*openapi.Schema]{{Name: "overall_status", Value: &openapi.Schema{Type: "string"}}}})
	return document, err
}

func TestCheck_FindsWhatTheDocumentDoesNotSay(t *testing.T) {
	c, err := newContract(served{})
	if err != nil {
		t.Fatal(err)
	}
	const id = "0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10"
	const envelope = `{"status":404,"message":"m","class":"business","code":"`
	for _, test := range []struct {
		name, path, media, body string
		status                  int
		want                    string // part of the complaint; empty: none
	}{
		{"as documented", "/v1/things/" + id, "application/json", `{"id":"` + id + `","note":null}`, 200, ""},
		{"a further member", "/v1/things/" + id, "application/json", `{"id":"` + id + `","note":null,"secret":1}`, 200, "secret"},
		{"a missing member", "/v1/things/" + id, "application/json", `{"id":"` + id + `"}`, 200, "note"},
		{"null where it may not be", "/v1/things/" + id, "application/json", `{"id":null,"note":null}`, 200, "id"},
		{"no id", "/v1/things/" + id, "application/json", `{"id":"7","note":"x"}`, 200, "uuid"},
		{"people of a record that names none", "/v1/things/" + id, "application/json", `{"id":"` + id + `","note":null,"people":{}}`, 200, "people"},
		{"people of a record that names some", "/v1/notes/" + id, "application/json", `{"author":"x","people":{"` + id + `":{"display_name":"A","staff":true}}}`, 200, ""},
		{"no people", "/v1/notes/" + id, "application/json", `{"author":"x"}`, 200, ""},
		{"a person without a name", "/v1/notes/" + id, "application/json", `{"author":"x","people":{"` + id + `":{"staff":true}}}`, 200, "display_name"},
		{"another status", "/v1/things/" + id, "application/json", `{}`, 202, "status 202"},
		{"another type", "/v1/things/" + id, "text/plain", `hello`, 200, "text/plain"},
		{"a known code", "/v1/things/" + id, "application/json", envelope + `tasks.task_not_found"}`, 404, ""},
		{"an unknown code", "/v1/things/" + id, "application/json", envelope + `payers.payer_not_found"}`, 404, "payers.payer_not_found"},
		{"an error that is no envelope", "/v1/nothing", "application/json", `{"error":"x"}`, 404, "error"},
		{"an error at an unknown address", "/v1/nothing", "application/json", envelope + `common.not_found"}`, 404, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			answer := &http.Response{StatusCode: test.status, Header: http.Header{"Content-Type": {test.media}}}
			err := c.check(table, httptest.NewRequest("GET", test.path, nil), answer, test.body)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want it to name %q", err, test.want)
			}
		})
	}
}
