// Package openapitest validates answers of a running server against its API document, so that every test that makes a
// request also tests the document.
package openapitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"kontor/server/endpoint"
	"kontor/server/openapi"
)

// contract is the API document, prepared to validate answers.
type contract struct {
	document *openapi3.T
	errors   *openapi3.Schema
	draining *openapi3.Schema // what every operation may answer while the service shuts down
	formats  []openapi3.SchemaValidationOption
}

// contracts caches one contract for each table: nearly all servers of a process have the same one.
var contracts sync.Map // keys of the table → func() (*contract, error)

// Served is a running server: *server.Server.
type Served interface {
	Table() []endpoint.Endpoint
	Document() (*openapi.Document, error)
}

// Validate fails the test when an answer does not match the API document of the server: its status, media type, headers and
// body, and the code of an error. It may be called from any goroutine.
func Validate(t testing.TB, s Served, request *http.Request, answer *http.Response, body []byte) {
	t.Helper()
	document, err := contractOf(s)
	if err == nil {
		err = document.check(s.Table(), request, answer, string(body))
	}
	if err != nil {
		t.Errorf("%s %s: the answer does not match the API document: %v\n%d %s", request.Method, request.URL.Path, err, answer.StatusCode, body)
	}
}

// ValidateFrame fails the test when a frame of an event stream does not match the API document: its event, and its data.
func ValidateFrame(t testing.TB, s Served, method, path, event, data string) {
	t.Helper()
	document, err := contractOf(s)
	if err == nil {
		content := document.document.Paths.Value(path).GetOperation(method).Responses.Status(http.StatusOK).Value.Content.Get("text/event-stream")
		err = document.checkFrame(content, event, data)
	}
	if err != nil {
		t.Errorf("%s %s: the frame %s does not match the API document: %v\n%s", method, path, event, err, data)
	}
}

func (c *contract) checkFrame(content *openapi3.MediaType, event, data string) error {
	frames, _ := content.Extensions["x-kontor-frames"].(map[string]any)
	frame, known := frames[event].(map[string]any)
	if !known {
		return errors.New("the document does not list the event")
	}
	return c.visit(c.document.Components.Schemas[path.Base(frame["$ref"].(string))].Value, data)
}

func contractOf(s Served) (*contract, error) {
	var keys strings.Builder
	for _, e := range s.Table() {
		keys.WriteString(e.Key())
	}
	made, _ := contracts.LoadOrStore(keys.String(), sync.OnceValues(func() (*contract, error) { return newContract(s) }))
	return made.(func() (*contract, error))()
}

func newContract(s Served) (*contract, error) {
	// Another test checks that rows are described completely; rows of a test may be incomplete.
	built, _ := s.Document()
	text, err := built.JSON()
	if err != nil {
		return nil, err
	}
	return loadContract(text)
}

// loadContract reads a document, which the tests of package openapi validate, and makes it stricter: an answer may have no member that the document does not name. A
// document of version 3.1 is validated as 3.0.3 by the library's own validator, which supports everything that the document uses
// (lists of types with null, anyOf with null). The validator that the library takes for 3.1 compiles the schema for each
// answer, which would make the test suite many times slower.
func loadContract(text []byte) (*contract, error) {
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	document.OpenAPI = "3.0.3"
	for _, schema := range document.Components.Schemas {
		closeObjects(schema, map[*openapi3.Schema]bool{})
	}
	return &contract{
		document: document, errors: document.Components.Schemas["Error"].Value, draining: document.Components.Schemas["Health"].Value,
		formats: []openapi3.SchemaValidationOption{openapi3.WithStringFormatValidators(map[string]openapi3.StringFormatValidator{
			"uuid":      openapi3.NewRegexpFormatValidator(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`),
			"date":      openapi3.NewRegexpFormatValidator(`^\d{4}-\d\d-\d\d$`),
			"date-time": openapi3.NewRegexpFormatValidator(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`),
			"email":     openapi3.NewRegexpFormatValidator(`^[^@]+@[^@]+$`),
		})},
	}, nil
}

// closeObjects forbids members that objects do not name.
func closeObjects(ref *openapi3.SchemaRef, seen map[*openapi3.Schema]bool) {
	if ref == nil || ref.Value == nil || seen[ref.Value] {
		return
	}
	schema := ref.Value
	seen[schema] = true
	if len(schema.Properties) > 0 && schema.AdditionalProperties.Schema == nil && schema.AdditionalProperties.Has == nil {
		closed := false
		schema.AdditionalProperties.Has = &closed
	}
	for _, property := range schema.Properties {
		closeObjects(property, seen)
	}
	closeObjects(schema.Items, seen)
	closeObjects(schema.AdditionalProperties.Schema, seen)
	for _, part := range append(append(openapi3.SchemaRefs{}, schema.OneOf...), schema.AnyOf...) {
		closeObjects(part, seen)
	}
}

// check validates an answer: its status, headers, media type and body, and the code of an error.
func (c *contract) check(table []endpoint.Endpoint, request *http.Request, r *http.Response, body string) error {
	row := rowOf(table, request.Method, request.URL)
	if row == nil {
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/json") && r.StatusCode >= 400 && body != "" {
			return c.visit(c.errors, body)
		}
		return nil
	}
	item := c.document.Paths.Value(row.Path)
	operation := item.GetOperation(row.Method)
	documented := operation.Responses.Status(r.StatusCode)
	codes := errorCodes(operation)[strconv.Itoa(r.StatusCode)]
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch {
	case r.StatusCode == http.StatusServiceUnavailable && strings.HasPrefix(body, `{"overall_status":`):
		return c.visit(c.draining, body)
	case documented != nil:
	case len(codes) == 0:
		return fmt.Errorf("status %d is not documented for %s", r.StatusCode, row.Key())
	default:
		documented = operation.Responses.Default()
	}
	headers := documented.Value
	if success := operation.Responses.Status(http.StatusOK); r.StatusCode == http.StatusNotModified && success != nil {
		headers = success.Value // a 304 has the same (RFC 9110, section 15.4.5)
	}
	if err := c.checkHeaders(headers, r); err != nil {
		return fmt.Errorf("%s: %w", row.Key(), err)
	}
	if request.Method == http.MethodHead || r.StatusCode == http.StatusNotModified || r.StatusCode == http.StatusSeeOther {
		if body != "" {
			return fmt.Errorf("a body after %s %d", request.Method, r.StatusCode)
		}
		return nil
	}
	content := documented.Value.Content.Get(media)
	if content == nil && documented.Value.Extensions["x-kontor-table"] == media {
		return nil
	}
	if content == nil {
		return fmt.Errorf("media type %q of status %d is not documented for %s", media, r.StatusCode, row.Key())
	}
	if media != "application/json" && !strings.HasSuffix(media, "+json") || r.Header.Get("Content-Encoding") != "" {
		return nil // a text, a file, or compressed
	}
	if err := knownCode(codes, r.StatusCode, body); err != nil {
		return fmt.Errorf("%s: %w", row.Key(), err)
	}
	if request.URL.Query().Get("stack") != "" && r.StatusCode == http.StatusOK && operation.Extensions["x-kontor-stacked"] != nil {
		return c.visit(c.stacked(operation), body)
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: request,
			Route: &routers.Route{Spec: c.document, Path: row.Path, PathItem: item, Method: row.Method, Operation: operation}},
		Status: r.StatusCode, Header: r.Header, Body: io.NopCloser(bytes.NewReader([]byte(body))),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, SchemaValidationOptions: c.formats},
	})
}

// general contains the headers that HTTP defines for all answers, or that the description of the document names.
var general = []string{"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Allow", "Cache-Control", "Connection", "Content-Encoding", "Content-Language",
	"Content-Length", "Content-Security-Policy", "Content-Type", "Cross-Origin-Resource-Policy", "Date", "Ratelimit-Limit", "Ratelimit-Remaining",
	"Ratelimit-Reset", "Referrer-Policy", "Retry-After", "Server", "Set-Cookie", "Strict-Transport-Security", "Trailer", "Transfer-Encoding", "Vary",
	"Kontor-Ignored-Parameters", "Www-Authenticate", "X-Accel-Buffering", "X-Content-Type-Options", "X-Request-Id", "X-Explanation", "X-Padding"}

// checkHeaders rejects headers that the document does not name.
func (c *contract) checkHeaders(documented *openapi3.Response, r *http.Response) error {
	for name := range r.Header {
		listed := func(known string) bool { return http.CanonicalHeaderKey(known) == name }
		if !slices.Contains(general, name) && !slices.ContainsFunc(slices.Collect(maps.Keys(documented.Headers)), listed) {
			return fmt.Errorf("the header %s of status %d is not documented", name, r.StatusCode)
		}
	}
	return nil
}

// errorCodes returns the codes of the errors that an operation documents, by status.
func errorCodes(operation *openapi3.Operation) map[string][]string {
	byStatus := map[string][]string{}
	listed, _ := operation.Extensions["x-kontor-errors"].(map[string]any)
	for status, codes := range listed {
		for _, code := range codes.([]any) {
			byStatus[status] = append(byStatus[status], code.(string))
		}
	}
	return byStatus
}

// stacked returns the schema of a list's answer with the parameter stack.
func (c *contract) stacked(operation *openapi3.Operation) *openapi3.Schema {
	reference := operation.Extensions["x-kontor-stacked"].(map[string]any)["$ref"].(string)
	return c.document.Components.Schemas[path.Base(reference)].Value
}

// knownCode rejects an error whose code the operation does not document.
func knownCode(codes []string, status int, text string) error {
	var body struct {
		Code string `json:"code"`
	}
	if status < http.StatusBadRequest || strings.HasPrefix(text, `"`) { // an error of the AuthZEN interface is a message without a code
		return nil
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		return err
	}
	if body.Code != "" && !slices.Contains(codes, body.Code) {
		return fmt.Errorf("code %s of status %d is not documented: name it in the row's Faults", body.Code, status)
	}
	return nil
}

func (c *contract) visit(schema *openapi3.Schema, body string) error {
	var value any
	if err := json.Unmarshal([]byte(body), &value); err != nil {
		return err
	}
	return schema.VisitJSON(value, c.formats...)
}

// rowOf returns the row of a request, as the server's router does: a fixed segment wins over a name.
func rowOf(table []endpoint.Endpoint, method string, target *url.URL) *endpoint.Endpoint {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	segments := strings.Split(target.EscapedPath(), "/")
	var fits []*endpoint.Endpoint
	for i := range table {
		if strings.Count(table[i].Path, "/") == len(segments)-1 {
			fits = append(fits, &table[i])
		}
	}
	for at, segment := range segments {
		var fixed, named []*endpoint.Endpoint
		for _, e := range fits {
			switch own := strings.Split(e.Path, "/")[at]; {
			case own == segment:
				fixed = append(fixed, e)
			case strings.HasPrefix(own, "{") && segment != "":
				named = append(named, e)
			}
		}
		if fits = fixed; len(fixed) == 0 {
			fits = named
		}
	}
	for _, e := range fits {
		if e.Method == method {
			return e
		}
	}
	return nil
}
